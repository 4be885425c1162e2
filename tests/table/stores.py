"""Real stores for the tests: SQLite catalog, local files, real commits, and the faults that can be put into them."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import CommitTableResponse, Table

from keptlog.log.assessment import assess
from keptlog.log.plan import plan_step
from keptlog.log.record import NewRecord, Record
from keptlog.log.result import Counts, RewriteResult
from keptlog.log.segment import Log, Segment
from keptlog.log.steps import CleanStep, Compact, Expire
from keptlog.storage.schema import to_arrow
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded import DATABASE
from keptlog.table.store import LogStore

NOW_MS = 1_700_000_000_000
TOPIC = "shop.users-v2"
COMPACTED = {"cleanup.policy": "compact"}


def new_id() -> str:
    return uuid.uuid4().hex


def store_at(home: Path, broker: Mapping[str, str] | None = None) -> LogStore:
    return LogStore(open_catalog(home), broker or {}, time.sleep, new_id)


def store_over(catalog: Catalog) -> LogStore:
    """A store that does not really wait between attempts."""
    return LogStore(catalog, {}, lambda _: None, new_id)


def new_records(*pairs: tuple[str, str | None], partition: int | None = None) -> list[NewRecord]:
    """Records of key and value; null as value is a tombstone."""
    return [
        NewRecord(key.encode(), None if value is None else value.encode(), NOW_MS, partition) for key, value in pairs
    ]


def values(store: LogStore, topic: str = TOPIC, **how: Any) -> list[tuple[int, int, bytes | None]]:
    """Partition, offset and value of what a reader gets."""
    return [(partition, record.offset, record.value) for partition, record in store.read(topic, **how)]


def files_below(home: Path) -> set[Path]:
    return set((home / "warehouse").rglob("*.parquet"))


def step_for(log: Log) -> Compact:
    """The plan of a clean of all that is closed long after ``NOW_MS``."""
    step = plan_step(assess(log, NOW_MS + 30 * 24 * 3_600_000), requested=True)
    assert isinstance(step, Compact)
    return step


def expiry_for(log: Log, segments: Sequence[Segment], first_dirty_offset: int = 5) -> Expire:
    """The expiry of what may be expired in these segments."""
    step = step_for(log)
    return Expire(
        topic_partition=step.topic_partition,
        segments=tuple(segments),
        first_dirty_offset=first_dirty_offset,
        checkpoint=step.checkpoint,
        log_start_offset=step.log_start_offset,
        now_ms=step.now_ms,
        segment_bytes=step.segment_bytes,
        strategy=step.strategy,
        cleanable_ratio=step.cleanable_ratio,
    )


def rewritten(store: LogStore, step: CleanStep, keep: Callable[[Record], bool] | None = None) -> RewriteResult:
    """A step carried out by the plainest means: the latest record of each key, tombstones kept, in one segment."""
    topic_partition = step.topic_partition
    records = [
        record
        for _, record in store.read(topic_partition.topic, topic_partition.partition)
        if record.offset < step.segments[-1].last_offset + 1
    ]
    latest = {record.key: record.offset for record in records}
    retained = [record for record in records if (keep or (lambda each: latest[each.key] == each.offset))(record)]
    added = staged(store, step.topic_partition.topic, topic_partition.partition, retained)
    counts = Counts(kept=len(retained), superseded=len(records) - len(retained))
    return RewriteResult(step, step.segments, tuple(added), counts, len(latest), len(latest))


def staged(store: LogStore, topic: str, partition: int, records: Sequence[Record]) -> list[Segment]:
    """Records written into a segment that is not live."""
    folder = f"{store.data_location(topic)}/partition={partition}"
    writer = SegmentWriter(store.files, lambda base: f"{folder}/{base:020d}-staged-{new_id()}.parquet", 2**30)
    if records:
        writer.write(to_arrow(partition, records))
    return writer.finish()


class FaultyCatalog(NoopCatalog):
    """A real catalog whose commits meet faults: each commit takes the next of ``faults`` and is done with it."""

    def __init__(self, real: Catalog) -> None:
        super().__init__(real.name, **real.properties)
        self.real = real
        self.faults: list[Callable[[Callable[[], CommitTableResponse]], CommitTableResponse]] = []
        self.commits = 0

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        self.commits += 1

        def commit() -> CommitTableResponse:
            return self.real.commit_table(table, requirements, updates)

        return self.faults.pop(0)(commit) if self.faults else commit()

    def load_table(self, identifier: Any) -> Table:
        table = self.real.load_table(identifier)
        table.catalog = self
        return table

    def list_tables(self, namespace: Any) -> list[Any]:
        return self.real.list_tables(namespace)


def create(home: Path, partitions: int = 1, config: Mapping[str, str] | None = None) -> LogStore:
    """A store at a new home, with ``TOPIC``."""
    store = store_at(home)
    store.create_topic(TOPIC, partitions, COMPACTED | dict(config or {}))
    return store


def append_each(store: LogStore, *batches: Iterable[tuple[str, str | None]]) -> None:
    """Append batches, a commit each, to partition 0."""
    for batch in batches:
        store.append(TOPIC, new_records(*batch, partition=0), new_id(), NOW_MS)


def clean(store: LogStore) -> RewriteResult:
    """Clean partition 0 of ``TOPIC``."""
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.swap(TOPIC, [outcome], new_id())
    return outcome


def forget_id(home: Path) -> None:
    """Make it the home of a keptlog that did not know yet where a home was made, nor what tells it from others."""
    with sqlite3.connect(home / DATABASE) as connection:
        connection.execute("delete from iceberg_namespace_properties where property_key <> 'exists'")


@contextmanager
def counted_loads() -> Iterator[list[str]]:
    """The topics whose tables are asked for meanwhile."""
    loaded: list[str] = []
    really = LogStore.load_table

    def load(store: LogStore, topic: str) -> Table:
        loaded.append(topic)
        return really(store, topic)

    with patch.object(LogStore, "load_table", load):
        yield loaded
