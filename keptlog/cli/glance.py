"""All logs at a glance, for a command that looks and goes.

What the topics' tables said at the last look lies on the disk (``keptlog.table.cache``), and the embedded catalog's
database says which of it still holds. Only for topics that have changed since is the store opened: importing its
libraries takes longer than looking at a thousand topics without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.cli.output import refuse_unknown
from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.log.metrics import LastPass
from keptlog.log.segment import Log
from keptlog.log.topic_partition import TopicPartition
from keptlog.settings import BROKER_FILE, broker_settings, home_path
from keptlog.table.cache import TopicCache
from keptlog.table.embedded import embedded_locations

if TYPE_CHECKING:
    from keptlog.table.logs import ObservedTopic
    from keptlog.table.store import LogStore


@dataclass(slots=True)
class Glance:
    """What was seen."""

    logs: list[Log] = field(default_factory=list)
    last_passes: dict[TopicPartition, LastPass] = field(default_factory=dict)
    unreadable: dict[str, KeptlogError] = field(default_factory=dict)
    """Name to the reason why its logs can't be had."""


def glance(names: Sequence[str] = ()) -> Glance:
    """The logs that ``names`` mean, all of the home if there are none.

    Raises:
        UnknownTopic: a name means nothing.
        InvalidConfig: a broker setting is unknown or out of range.
        StorageUnavailable: the catalog can't be opened.
    """
    return _named(names) if names else _all()


def _named(names: Sequence[str]) -> Glance:
    from keptlog.passes.names import named_logs  # noqa: PLC0415  # only where the store is opened anyway

    store = _Home(home_path()).store
    named = named_logs(store, names)
    refuse_unknown(named.unreadable)
    topics = {log.topic_partition.topic for log in named.logs}
    passes = {name: last for topic in topics for name, last in store.last_passes(topic).items()}
    return Glance(list(named.logs), passes, named.unreadable)


def _all() -> Glance:
    home, seen = _Home(home_path()), Glance()
    for topic, location in sorted(home.locations().items()):
        try:
            observed = home.observe(topic, location)
        except UnknownTopic:  # it was deleted just now
            continue
        except KeptlogError as error:
            seen.unreadable[topic] = error
            continue
        seen.logs += observed.logs
        seen.last_passes |= observed.last_passes
    return seen


class _Home:
    """A home that is only opened when there is no other way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cache = TopicCache(path)

    @cached_property
    def settings(self) -> dict[str, str]:
        """The broker settings."""
        return broker_settings(self.path / BROKER_FILE)

    @cached_property
    def store(self) -> LogStore:
        """The opened store."""
        from keptlog.home import open_home  # noqa: PLC0415  # it takes long, and is seldom needed

        return open_home(self.path).store

    def locations(self) -> dict[str, str]:
        """Topic to the location of its current metadata."""
        known = embedded_locations(self.path)
        return self.store.metadata_locations() if known is None else known

    def observe(self, topic: str, location: str) -> ObservedTopic:
        """What is to be seen of a topic, from memory or from its table."""
        stored = self._cache.get(topic, location)
        return stored.observed(self.settings) if stored else self.store.observe(topic, location)
