"""Topics with keys to erase, and whoever cleans, purges and erases them: all of it real, but for Spark.

Time is the wall clock's, from which it is moved on: a purge compares it with the times of snapshots and files.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from keptlog.log.erasures.erasure import Erasure
from keptlog.log.record import NewRecord, Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.passes.clean import Cleaner
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureRequest, ErasureResult, ErasureRow
from keptlog.passes.purge import Purger
from keptlog.receipts.receipt import Receipt
from keptlog.storage.erasure_secret import load_hasher
from keptlog.storage.key_hash import KeyHasher
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.table.receipt_chains import chain_at, require_sound
from tests.table.stores import staged

SECOND_MS, HOUR_MS, DAY_MS = 1000, 3_600_000, 24 * 3_600_000
SETTINGS = {
    "cleanup.policy": "compact",
    "max.compaction.lag.ms": str(HOUR_MS),
    "segment.ms": str(HOUR_MS),
    "delete.retention.ms": str(HOUR_MS),
    "file.delete.delay.ms": "0",
}
KEY, OTHER = b"user-7@example.org", b"user-8@example.org"
VALUE = b"lives in Rotterdam"
SECRET = bytes(range(32))


@dataclass
class World:
    """A home with topics."""

    home: Path
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    @property
    def store(self) -> LogStore:
        store = LogStore(open_catalog(self.home), {}, lambda _: None, new_id)
        store.seal = chain_at(self.home).append
        return store

    @property
    def receipts(self) -> list[Receipt]:
        """Those of erasures; the chain is sound."""
        chain = chain_at(self.home)
        require_sound(chain)
        return [each for each in chain.receipts() if each.kind == "erasure"]

    @property
    def hasher(self) -> KeyHasher:
        return load_hasher(self.home, {}, lambda: SECRET)

    @property
    def eraser(self) -> Eraser:
        store = self.store
        loading = partial(load_hasher, self.home, {}, lambda: SECRET)
        eraser = Eraser(store, in_process_engine(store.files), loading, new_id)
        return replace(eraser, list_receipts=lambda: chain_at(self.home).listed())

    def create(self, topic: str = "users", settings: Mapping[str, str] | None = None, *, partitions: int = 1) -> None:
        self.store.create_topic(topic, partitions, SETTINGS | dict(settings or {}))

    def append(self, *pairs: tuple[bytes, bytes | None], topic: str = "users", partition: int = 0) -> None:
        self.append_records([NewRecord(k, v, self.now_ms, partition) for k, v in pairs], topic)

    def append_records(self, records: Sequence[NewRecord], topic: str = "users") -> None:
        self.store.append(topic, records, new_id(), self.now_ms)

    def ingest(
        self,
        records: Mapping[int, tuple[bytes, bytes | None]],
        end: int,
        topic: str = "users",
        timestamps_ms: Mapping[int, int] | None = None,
    ) -> None:
        """What a source has up to an offset, by offset, into partition 0; of now, where no timestamp is given."""
        store, times_ms = self.store, timestamps_ms or {}
        known = store.source_of(topic)
        position, truncations = known.positions[0], known.truncations.get(0, 0)
        stored = [
            Record(offset, key, value, times_ms.get(offset, self.now_ms)) for offset, (key, value) in records.items()
        ]
        read = OffsetRange(0, position, position or 0, end, truncations=truncations)
        arrival = Arrival(read, tuple(staged(store, topic, 0, stored)))
        store.ingest(topic, [arrival], SourceIdentity("there"), 1, new_id())

    def clean(self, topic: str = "users") -> None:
        store = self.store
        cleaner = Cleaner(store, in_process_engine(store.files))
        done = carry_out(cleaner, cleaner.plan([topic], now_ms=self.now_ms, requested=True))
        assert done.failed == {}

    def purge(self, topic: str = "users", grace_ms: int = 0) -> None:
        result = Purger(self.store).purge([topic], now_ms=self.now_ms, orphan_grace_ms=grace_ms)
        assert result.failed == {}

    def later(self, ms: int) -> None:
        self.now_ms = max(self.now_ms, time.time_ns() // 1_000_000) + ms

    def ask(self, *keys: bytes, topics: Sequence[str] = ("users",), **how: object) -> ErasureResult:
        request = ErasureRequest(str(how.pop("id", "r1")), topics, keys or (KEY,), **how)  # type: ignore[arg-type]
        eraser = self.eraser
        return eraser.request(eraser.propose(request, now_ms=self.now_ms), now_ms=self.now_ms)

    def ask_by_hash(self, *key_hashes: str, **how: object) -> ErasureResult:
        """As ``ask``, by who has nothing but keyed hashes, as a run of Dagster has."""
        request = ErasureRequest(str(how.pop("id", "r1")), ("users",), key_hashes=key_hashes, **how)  # type: ignore[arg-type]
        eraser = self.eraser
        return eraser.request(eraser.propose(request, now_ms=self.now_ms), now_ms=self.now_ms)

    def row(self, topic: str = "users", erasure_id: str = "r1") -> ErasureRow:
        found = self.eraser.list([topic], now_ms=self.now_ms)
        assert dict(found.failed) == {}
        return next(row for row in found.rows if row.id == erasure_id)

    def erasure(self, topic: str = "users", erasure_id: str = "r1") -> Erasure:
        return self.row(topic, erasure_id).erasure

    def verified(self, topic: str = "users") -> ErasureRow:
        found = self.eraser.verify(topics=[topic], now_ms=self.now_ms)
        assert dict(found.failed) == {}
        return found.rows[0]

    def to_deleted(self, topic: str = "users") -> ErasureRow:
        """Everything that a schedule would do until the files are gone."""
        self.bring_on(topic)
        return self.row(topic)

    def bring_on(self, topic: str = "users") -> None:
        """The same, and nobody looks how far it is."""
        for _ in range(3):
            self.later(2 * HOUR_MS)
            self.clean(topic)
            self.purge(topic)
        self.later(SECOND_MS)
        self.purge(topic)

    def records(self, topic: str = "users") -> list[tuple[int, bytes | None, bytes | None]]:
        return [(each.offset, each.key, each.value) for _, each in self.store.read(topic)]

    def commits(self, topic: str = "users") -> int:
        return self.store.load_table(topic).last_sequence_number

    def files_with(self, *needles: bytes) -> list[Path]:
        """Files of the home whose bytes have one of these, or whose name has."""
        paths = [path for path in self.home.rglob("*") if path.is_file()]
        return [
            path
            for path in paths
            if any(needle in path.read_bytes() or needle.decode() in path.name for needle in needles)
        ]

    @property
    def register_files(self) -> list[Path]:
        return sorted(self.home.rglob("metadata/receipts/erasures/*"))


def new_id() -> str:
    return uuid.uuid4().hex
