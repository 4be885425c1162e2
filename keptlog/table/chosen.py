"""Some of a catalog's topics, as a ``LogStore`` that knows no others: for who is to look after these alone.

All that lists topics, loads one by its name or commits a change goes through here; so whatever is done with the store,
to all topics or to named ones, leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pyiceberg.table import Table

from keptlog.errors import UnknownTopic
from keptlog.log.given.given import texts
from keptlog.table.commits.commit import Committer, Prepare
from keptlog.table.commits.topics import Topic
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.logs import Locations, ObservedTopic
from keptlog.table.metadata.runs import LandedChange
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.topic_deletion import TopicDeletion
from keptlog.table.store import LogStore
from keptlog.table.waiting.side_by_side import Patience


@dataclass(frozen=True, slots=True)
class Patterns:
    """Which topics are meant: those whose names fit one of these, as a shell has them for files."""

    patterns: tuple[str, ...]

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Those of some topics, sorted."""
        return sorted(name for name in names if self.fits(name))

    def require(self, name: str) -> None:
        """Refuse any other topic; raises UnknownTopic."""
        if not self.fits(name):
            raise UnknownTopic(
                f"topic {name!r} is none of those that are looked after here ({', '.join(self.patterns)}): name one of "
                "them, or widen the patterns"
            )

    def fits(self, name: str) -> bool:
        """Whether a topic is meant."""
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class ChosenCommitter(Committer):
    """Commits changes to no other topic."""

    patterns: Patterns

    def commit(self, change: Change, prepare: Prepare) -> LandedChange | None:
        if change.namespace == NAMESPACE:
            self.patterns.require(change.topic)
        return Committer.commit(self, change, prepare)


class ChosenTopics(LogStore):
    """The topics of a store whose names fit one of some patterns, such as ``crm.*``; ``whole`` is the store of all."""

    def __init__(self, store: LogStore, patterns: Sequence[str]) -> None:
        # What the store has read and opened is shared with it. So is the guard of the clock: how far a clock may be
        # ahead is judged by the newest commit of all topics.
        vars(self).update(vars(store))
        self.whole = store
        self._patterns = Patterns(texts(patterns, "the patterns of topics"))
        of_all = store.committer
        self.committer = ChosenCommitter(of_all.catalog, of_all.sleep, of_all.files, self._patterns)

    def topics(self) -> list[str]:
        return self._patterns.chosen(super().topics())

    def being_deleted(self) -> list[str]:
        return self._patterns.chosen(super().being_deleted())

    def fitting(self, names: Iterable[str]) -> list[str]:
        """Those of some names that fit, sorted."""
        return self._patterns.chosen(names)

    def metadata_locations(self, patience: Patience | None = None) -> Locations:
        found = super().metadata_locations(patience)
        chosen = Locations({name: found[name] for name in self._patterns.chosen(found)})
        chosen.to_be_asked, chosen.asked_ago_ms = found.to_be_asked, found.asked_ago_ms
        return chosen

    def load_table(self, topic: str) -> Table:
        self._patterns.require(topic)
        return super().load_table(topic)

    def observe(self, topic: str, location: str | None = None) -> ObservedTopic:
        self._patterns.require(topic)
        return super().observe(topic, location)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> Topic:
        self._patterns.require(name)
        return super().create_topic(name, partitions, config)

    def delete_topic(self, name: str, now_ms: int, topic_id: str | None = None) -> TopicDeletion:
        self._patterns.require(name)
        return super().delete_topic(name, now_ms, topic_id)


def whole(store: LogStore) -> LogStore:
    """The store of all topics, for what is bounded by them: what a machine remembers of topics that are gone."""
    return store.whole if isinstance(store, ChosenTopics) else store


def fitting(store: LogStore, names: Iterable[str]) -> list[str]:
    """Those of some names of topics, which need not be there, that a store looks after, sorted."""
    return store.fitting(names) if isinstance(store, ChosenTopics) else sorted(names)
