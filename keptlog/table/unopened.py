"""The topics of a home to which nobody has opened the catalog yet, for a command that looks and goes.

What the topics' tables said at the last look lies on the disk (``keptlog.table.reading.cache``), and the embedded
catalog's database says which of it still holds. What has changed since, and what is not remembered, is read from the
tables' own files (``keptlog.table.reading.bare``). The store is opened for what can't be told so: importing its
libraries takes longer than looking at a thousand topics without it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.log.config import TopicConfig
from keptlog.log.given.unknown_topic import unknown_topic
from keptlog.log.segment import Log
from keptlog.log.told.stored_files import live_paths
from keptlog.settings import home_folder
from keptlog.table.catalogs.embedded import embedded_location, embedded_locations
from keptlog.table.catalogs.home_location import warehouse_named, why_copied, why_elsewhere
from keptlog.table.metadata.logs import Locations, ObservedTopic, StoredTopic, config_of, logs_from
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.reading.cache import TopicCache
from keptlog.table.reading.standings import StandingCache
from keptlog.table.waiting.side_by_side import Patience

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from keptlog.log.record import Record
    from keptlog.table.chain.sealed_receipts import SealedReceipts
    from keptlog.table.io.files import TableFiles
    from keptlog.table.purging.clock_guard import ClockGuard
    from keptlog.table.reading.bare import BareTable
    from keptlog.table.reading.lost import LostFiles, LostMemory
    from keptlog.table.reading.read import Reader
    from keptlog.table.store import LogStore


class DescribedTopic(NamedTuple):
    """What is known of a topic by its properties alone."""

    partitions: int
    config: TopicConfig


@dataclass(frozen=True, slots=True)
class EmbeddedTables:
    """Where the tables of topics lie in a home with an embedded catalog."""

    home: Path

    @property
    def parent(self) -> str:
        """The folder below which the catalog puts them; raises what ``named_at`` does."""
        return f"{warehouse_named(self.home)}/{NAMESPACE}"

    def folders(self) -> list[str]:
        """Where they lie now, also those of topics that are being deleted.

        Raises:
            StorageUnavailable: the catalog can't be read.
        """
        # In this order: a topic whose deletion begins meanwhile is in both.
        found = [embedded_locations(self.home, namespace=namespace) for namespace in (NAMESPACE, DELETING)]
        if None in found:
            raise StorageUnavailable(f"the catalog of home {self.home} can't be read")
        return [path.rpartition("/metadata/")[0] for locations in found for path in (locations or {}).values()]

    @property
    def is_usual(self) -> bool:
        """Whether the path of each table's metadata tells where it lies; an older keptlog has named some otherwise."""
        from keptlog.table.metadata.references import comparable  # few looks ask

        parent = comparable(self.parent)
        return all(comparable(each) == parent for each in {folder.rpartition("/")[0] for folder in self.folders()})


class UnopenedStore:
    """As much of a ``LogStore`` as looking needs; ``open_store`` is called when there is no other way.

    Who looks for damage does not trust what is remembered: a file that was read once may have rotted since.
    """

    def __init__(
        self,
        home: Path,
        broker_settings: Mapping[str, str],
        open_store: Callable[[], LogStore],
        *,
        trusts: bool = True,
        clock_ms: Callable[[], int] | None = None,
    ) -> None:
        self._home = home_folder(home)
        self.broker_settings = broker_settings
        self._open_store = open_store
        self._opening = threading.Lock()
        self._cache = TopicCache(home)
        self.standings = StandingCache(self._cache, broker_settings)
        """How topics stood at the last look, where nothing has changed since."""
        self._trusts = trusts
        self._clock_ms = clock_ms
        self._embedded = embedded_locations(home)

    @property
    def read_only(self) -> str | None:
        """Why nothing may be changed here, in one line: the home is a copy, or was moved. Null if all may be."""
        return self._store.read_only if self._embedded is None else why_elsewhere(self._home)

    @property
    def copied(self) -> str | None:
        """That the home is a copy, in one line: it does not know what came since. Null if it is none."""
        if self._embedded is None and not self._store.read_only:  # another catalog is configured, or may be
            return None
        return why_copied(self._home)

    def done_ms(self, as_of_ms: int) -> int:
        """What the clock shows by now, or this time where nobody has given one."""
        return self._clock_ms() if self._clock_ms else as_of_ms

    @cached_property
    def clock_guard(self) -> ClockGuard:
        """What tells whether a purge would believe the clock."""
        from keptlog.table.purging.clock_guard import ClockGuard

        def locations() -> dict[str, str]:
            return dict(self.metadata_locations())

        return ClockGuard(self.broker_settings, self.load_table, locations, self, self._clock_ms)

    def topics(self) -> list[str]:
        """Names of all topics, sorted."""
        return self._store.topics() if self._embedded is None else sorted(self._embedded)

    def being_deleted(self) -> list[str]:
        """Topics whose deletion was begun and is not finished, sorted."""
        embedded = None if self._embedded is None else embedded_locations(self._home, namespace=DELETING)
        return self._store.being_deleted() if embedded is None else sorted(embedded)

    @property
    def is_embedded(self) -> bool:
        """Whether the database of the embedded catalog says which topics there are."""
        return self._embedded is not None

    def refuse_unknown(self, topics: Iterable[str], besides: str = "") -> None:
        """Refuse a topic that certainly is not there; one whose deletion was begun is left to the opened catalog.

        ``besides`` ends the message.

        Raises:
            UnknownTopic: the first that is not there.
        """
        known = embedded_locations(self._home)
        if known is None:
            return
        for topic in topics:
            if topic not in known and topic not in self.being_deleted():
                raise unknown_topic(topic, sorted(known), besides=besides)

    def metadata_locations(self, patience: Patience | None = None) -> Locations:
        """Topic to the location of its current metadata."""
        # Who looks again and again is to see what has changed since.
        self._embedded = embedded_locations(self._home)
        return self._store.metadata_locations(patience) if self._embedded is None else Locations(self._embedded)

    def observe(self, topic: str, location: str | None = None) -> ObservedTopic:
        """What is to be seen of a topic, from memory or from its table; raises what ``LogStore.observe`` does."""
        known = location or self._location(topic)
        remembered = self._remembered(topic, known)
        stored = remembered or self._read_anew(topic, known)
        if stored is None:
            return self._store_of(topic).observe(topic, known)
        # Where readers have come to stands in files that no commit moves.
        is_remembered = remembered is not None and not stored.has_readers
        return replace(self._observed(stored), is_remembered=is_remembered)

    def logs(self, topic: str) -> Sequence[Log]:
        """The logs of a topic as they are now, to be judged; raises what ``LogStore.logs`` does."""
        stored = self._stored(topic, self._location(topic))
        return self._observed(stored).logs if stored else self._store_of(topic).logs(topic)

    def lost_files(self, topic: str) -> LostFiles:
        """What is live in the topic now: which of the files that were missed before are lost."""
        location = self._location(topic)
        if location is None:
            return self._store_of(topic).lost_files(topic)

        def logs() -> Sequence[Log]:
            stored = self._stored(topic, location)
            return stored.observed(self.broker_settings).logs if stored else self._store_of(topic).logs(topic)

        return self._lost_memory.at(location, self.files, logs)

    @cached_property
    def _lost_memory(self) -> LostMemory:
        from keptlog.table.reading.lost import LostMemory

        return LostMemory()

    @property
    def files(self) -> TableFiles:
        """Where the tables lie; of an embedded catalog it is a disk, and nothing is changed through this."""
        if self._embedded is None:
            return self._store.files
        from keptlog.table.unopened_files import unopened_files

        return unopened_files()

    def load_table(self, topic: str) -> Table:
        """The table of a topic as it is now, to be looked at; raises what ``LogStore.load_table`` does."""
        from keptlog.table.reading.bare import as_table

        bare = self._bare(topic, self._location(topic))
        return as_table(bare) if bare else self._store_of(topic).load_table(topic)

    def describe_topic(self, topic: str) -> DescribedTopic:
        """How many partitions a topic has, and its configuration; raises what ``LogStore.describe_topic`` does."""
        stored = self._stored(topic, self._location(topic))
        if stored:
            config = config_of(topic, stored.properties, self.broker_settings)
            return DescribedTopic(partition_count(topic, stored.properties), config)
        described = self._store_of(topic).describe_topic(topic)
        return DescribedTopic(described.partitions, described.config)

    def read(
        self, topic: str, partition: int | None = None, from_offset: int = 0, *, latest: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """As ``LogStore.read`` does, of the current snapshot; what it raises is raised here too."""
        return self.reader(topic, partition).records(from_offset, latest=latest)

    def reader(self, topic: str, partition: int | None = None) -> Reader:
        """As ``LogStore.reader``, of the current snapshot; raises what that does.

        Segments of a disk that are remembered are opened by their paths. Why one can't be had only the table tells.
        """
        read = self._logs_on_disk(topic, partition)
        if not read:
            return self._store_of(topic).reader(topic, partition)
        from keptlog.table.reading.read import Reader

        return Reader(self.files, read, lambda: self._store.logs(topic))

    def readable_logs(self, topic: str, partition: int | None = None) -> Sequence[Log]:
        """The logs that ``read`` would read, as they are now; raises what ``LogStore.reader`` does."""
        self.load_table(topic)  # memory does not know that the home was moved, or its disk is not mounted
        return self._logs_on_disk(topic, partition) or self._store.reader(topic, partition).logs

    def _logs_on_disk(self, topic: str, partition: int | None) -> list[Log]:
        """The logs of a topic, or one of them, as they are now, if all of the topic is on a disk; else none."""
        stored = self._stored(topic, self._location(topic))
        if stored is None:
            return []
        from keptlog.table.io.files import local_path

        with contextlib.suppress(KeptlogError):  # what is wrong is told by the store
            config = config_of(topic, stored.properties, self.broker_settings)
            logs = logs_from(topic, stored.properties, stored.segments, config, stored.topic_id)
            paths = [path for log in logs for path in live_paths(log)]
            wanted = [log for log in logs if partition in {None, log.topic_partition.partition}]
            return wanted if None not in map(local_path, paths) else []
        return []

    def _location(self, topic: str) -> str | None:
        """Where a topic's metadata lies now; null if only the opened catalog can tell."""
        return None if self._embedded is None else embedded_location(self._home, topic)

    def _stored(self, topic: str, location: str | None) -> StoredTopic | None:
        """What a topic's table says there, which is remembered from now on; null if the store is to be asked."""
        return self._remembered(topic, location) or self._read_anew(topic, location)

    def _remembered(self, topic: str, location: str | None) -> StoredTopic | None:
        return self._cache.get(topic, location) if location and self._trusts else None

    def _read_anew(self, topic: str, location: str | None) -> StoredTopic | None:
        with contextlib.suppress(KeptlogError, OSError):  # what is wrong is told by the store
            bare = self._bare(topic, location)
            if bare:
                from keptlog.table.reading.bare import as_table
                from keptlog.table.table_look import TableLook

                stored = TableLook().at(as_table(bare))
                self._cache.put(stored)
                return stored
        return None

    def _observed(self, stored: StoredTopic) -> ObservedTopic:
        observed = stored.observed(self.broker_settings)
        if not stored.has_readers:
            return observed
        from keptlog.table.reading.readers import observed_with_holds

        # Where readers have come to stands in files that no commit moves.
        return observed_with_holds(self.files, stored, observed, self.load_table)

    def _bare(self, topic: str, location: str | None) -> BareTable | None:
        from keptlog.table.reading.bare import bare_table

        return bare_table((NAMESPACE, topic), location) if location else None

    @property
    def receipts(self) -> SealedReceipts:
        """The chain of what was deleted for good."""
        from keptlog.table.chain.unopened_receipts import UnopenedReceipts

        return UnopenedReceipts(self._home, self.files, lambda: self._store.committer.catalog)

    def embedded_tables(self) -> EmbeddedTables | None:
        """Where the tables of all topics lie; null if only the opened catalog can tell."""
        tables = EmbeddedTables(self._home)
        return tables if self._embedded is not None and tables.is_usual else None

    @property
    def opened(self) -> LogStore:
        """The store itself, for what can't be told without it."""
        return self._store

    def _store_of(self, topic: str) -> LogStore:
        """The store, for what it alone can tell of a topic; that there is none is told without it."""
        self.refuse_unknown([topic])
        return self._store

    @property
    def _store(self) -> LogStore:
        with self._opening:
            return self._opened

    @cached_property
    def _opened(self) -> LogStore:
        return self._open_store()
