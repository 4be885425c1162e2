"""The topics of a home to which nobody has opened the catalog yet, for a command that looks and goes.

What the topics' tables said at the last look lies on the disk (``keptlog.table.cache``), and the embedded catalog's
database says which of it still holds. Only for topics that have changed since is the store opened: importing its
libraries takes longer than looking at a thousand topics without it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from keptlog.errors import KeptlogError
from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log
from keptlog.log.stored_files import live_paths
from keptlog.settings import home_folder
from keptlog.table.cache import TopicCache
from keptlog.table.embedded import DELETING, embedded_locations
from keptlog.table.home_location import why_elsewhere
from keptlog.table.logs import Locations, ObservedTopic, StoredTopic, config_of, logs_from
from keptlog.table.side_by_side import Patience
from keptlog.table.standings import StandingCache
from keptlog.table.state import partition_count

if TYPE_CHECKING:
    from keptlog.log.record import Record
    from keptlog.table.store import LogStore


class DescribedTopic(NamedTuple):
    """What is known of a topic by its properties alone."""

    partitions: int
    config: TopicConfig


class UnopenedStore:
    """As much of a ``LogStore`` as looking needs; ``open_store`` is called when there is no other way."""

    def __init__(self, home: Path, broker_settings: Mapping[str, str], open_store: Callable[[], LogStore]) -> None:
        self._home = home_folder(home)
        self.broker_settings = broker_settings
        self._open_store = open_store
        self._opening = threading.Lock()
        self._cache = TopicCache(home)
        self.standings = StandingCache(self._cache, broker_settings)
        """How topics stood at the last look, where nothing has changed since."""
        self._embedded = embedded_locations(home)

    @property
    def read_only(self) -> str | None:
        """Why nothing may be changed here, in one line: the home is a copy, or was moved. Null if all may be."""
        return self._store.read_only if self._embedded is None else why_elsewhere(self._home)

    def topics(self) -> list[str]:
        """Names of all topics, sorted."""
        return self._store.topics() if self._embedded is None else sorted(self._embedded)

    def being_deleted(self) -> list[str]:
        """Topics whose deletion was begun and is not finished, sorted."""
        embedded = None if self._embedded is None else embedded_locations(self._home, namespace=DELETING)
        return self._store.being_deleted() if embedded is None else sorted(embedded)

    def metadata_locations(self, patience: Patience | None = None) -> Locations:
        """Topic to the location of its current metadata."""
        # Who looks again and again is to see what has changed since.
        self._embedded = embedded_locations(self._home)
        return self._store.metadata_locations(patience) if self._embedded is None else Locations(self._embedded)

    def observe(self, topic: str, location: str | None = None) -> ObservedTopic:
        """What is to be seen of a topic, from memory or from its table; raises what ``LogStore.observe`` does."""
        known = location or (self._embedded or {}).get(topic)
        stored = self._cache.get(topic, known) if known else None
        # Where readers have come to stands in files that no commit moves.
        is_known = stored is not None and not stored.has_readers
        if stored and is_known:
            return replace(stored.observed(self.broker_settings), is_remembered=True)
        return self._store.observe(topic, known)

    def describe_topic(self, topic: str) -> DescribedTopic:
        """How many partitions a topic has, and its configuration; raises what ``LogStore.describe_topic`` does."""
        location, stored = self._remembered(topic)
        if stored:
            config = config_of(topic, stored.properties, self.broker_settings)
            return DescribedTopic(partition_count(topic, stored.properties), config)
        with contextlib.suppress(KeptlogError):
            # What is seen is remembered for the next time; a log that is broken is none of this question's.
            self._store.observe(topic, location)
        described = self._store.describe_topic(topic)
        return DescribedTopic(described.partitions, described.config)

    def read(
        self, topic: str, partition: int | None = None, from_offset: int = 0, *, latest: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """As ``LogStore.read`` does, of the current snapshot; what it raises is raised here too.

        Segments of a disk that are remembered are opened by their paths. Why one can't be had only the table tells.
        """
        logs = self._remembered_logs(topic)
        read = [log for log in logs if partition in {None, log.topic_partition.partition}]
        if not read:
            return self._store.read(topic, partition, from_offset, latest=latest)
        from keptlog.table.files import TableFiles  # noqa: PLC0415  # who only looks needs no Arrow
        from keptlog.table.read import Reader  # noqa: PLC0415

        return Reader(TableFiles(), read, lambda: self._store.logs(topic)).records(from_offset, latest=latest)

    def _remembered_logs(self, topic: str) -> list[Log]:
        """The logs of a topic as they are now, if they are remembered and all on a disk; else none."""
        _, stored = self._remembered(topic)
        if stored is None:
            return []
        from keptlog.table.files import local_path  # noqa: PLC0415  # as above

        with contextlib.suppress(KeptlogError):  # what is wrong is told by the store
            config = config_of(topic, stored.properties, self.broker_settings)
            logs = logs_from(topic, stored.properties, stored.segments, config)
            paths = [path for log in logs for path in live_paths(log)]
            return logs if None not in map(local_path, paths) else []
        return []

    def _remembered(self, topic: str) -> tuple[str | None, StoredTopic | None]:
        """Where a topic's metadata lies, and what it says there; null for what is not known."""
        location = (self._embedded or {}).get(topic)
        return location, self._cache.get(topic, location) if location else None

    @property
    def _store(self) -> LogStore:
        with self._opening:
            return self._opened

    @cached_property
    def _opened(self) -> LogStore:
        return self._open_store()
