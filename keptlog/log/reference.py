"""The executable specification: what a log holds after any history, in plain Python, with nothing clever.

Where this file and the rest of keptlog differ, one of them is wrong; the state machine in ``tests/model`` looks for
such histories. It shares no rule with the modules beside it, only the record. Sizes do not exist here: a test that
compares with it lets time alone decide what is active, and cleans by request. Where records have versions, a tombstone
that expired is remembered for a while: it still has a say on who is the latest, and nobody sees it.

Registered readers hold tombstones: one goes only once every reader has met it, or has had his time. Here a position is
between records; who compares with the rest of keptlog rounds it down to the segment that it lies in.

A log is a list of appended batches that were not cleaned yet, behind a list of clean records:

    clean_records                  batches
    [ one record of a key, in order ][ as appended ][ as appended ][ as appended ]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

from keptlog.log.record import LARGEST_TIMESTAMP_MS, Record

FORGOTTEN = -1
"""Where an expired tombstone is remembered: no reader ever sees this offset."""


@dataclass
class ReferenceConfig:
    """The settings that matter here; times are ms."""

    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = 2**63 - 1
    segment_ms: int = 7 * 24 * 3_600_000
    delete_retention_ms: int = 24 * 3_600_000
    strategy: str = "offset"
    header: str = ""
    watermark_retention_ms: int = 7 * 24 * 3_600_000

    def rank(self, record: Record) -> tuple[int, int, int]:
        """The record of a key with the highest rank is the latest."""
        version = None
        if self.strategy not in {"offset", "timestamp", "header"}:
            raise ValueError(f"the specification knows no strategy {self.strategy}: say here which record it keeps")
        if self.strategy == "timestamp":
            version = record.timestamp_ms
        for name, value in record.headers:
            if self.strategy == "header" and name == self.header:
                is_long = value is not None and len(value) == 8
                version = int.from_bytes(value or b"", "big", signed=True) if is_long else None
        return (0, 0, record.offset) if version is None else (1, version, record.offset)


@dataclass
class ReferenceReader:
    """A registered reader. Times are ms."""

    hold_max_ms: int
    position: int = 0
    missed: list[int] = field(default_factory=list)
    """Offsets of tombstones that went before he met them."""


@dataclass
class ReferenceLog:
    """One log. Times are ms."""

    config: ReferenceConfig = field(default_factory=ReferenceConfig)
    clean_records: list[Record] = field(default_factory=list)
    remembered: list[Record] = field(default_factory=list)
    """Tombstones that expired, at offset -1, with the time at which they went for a horizon.

    None by offset, where nothing older can come.
    """
    batches: list[list[Record]] = field(default_factory=list)
    first_dirty_offset: int = 0
    log_end_offset: int = 0
    readers: dict[str, ReferenceReader] = field(default_factory=dict)
    erasure_end_ms: int | None = None
    """From then on nobody holds a tombstone."""

    @property
    def records(self) -> list[Record]:
        """Everything that a reader sees, in offset order."""
        return self.clean_records + [record for batch in self.batches for record in batch]

    def append(self, records: Sequence[Record]) -> None:
        """Take a batch; its records' own offsets are replaced by the next free ones."""
        batch = [replace(record, offset=self.log_end_offset + index) for index, record in enumerate(records)]
        self.ingest(batch, self.log_end_offset + len(batch))

    def ingest(self, records: Sequence[Record], end_offset: int) -> None:
        """Take a batch at the offsets that its records have at their source, where the log ends at ``end_offset``."""
        if records:
            self.batches.append(list(records))
        self.log_end_offset = end_offset

    def cleanable_batches(self, now_ms: int) -> int:
        """How many of the oldest batches may be cleaned: those before the active run and before the first young one."""
        closed = len(self.batches) - self._active_batches(now_ms)
        for index in range(closed):
            newest_ms = max(record.timestamp_ms for record in self.batches[index])
            if self.config.min_compaction_lag_ms > 0 and now_ms - newest_ms < self.config.min_compaction_lag_ms:
                return index
        return closed

    def _active_batches(self, now_ms: int) -> int:
        limit_ms = min(self.config.segment_ms, self.config.max_compaction_lag_ms)
        oldest_ms: list[int] = []
        for batch in self.batches:
            times = [record.timestamp_ms for record in batch]
            if oldest_ms and max(times) - oldest_ms[0] > limit_ms:
                oldest_ms = []
            # 0 and less is no time, and counts only where no record of a batch has one.
            oldest_ms.append(min(times) if min(times) > 0 else max(times))
        if oldest_ms and now_ms - min(oldest_ms) > limit_ms:
            return 0
        return len(oldest_ms)

    def clean(self, now_ms: int, expires_from: int | None = 0) -> bool:
        """Clean all that may be cleaned now; says whether there was anything.

        Of a clean in several commits this is the last. It expires tombstones from its first offset on; null for none,
        as where records have versions.
        """
        count = self.cleanable_batches(now_ms)
        if count == 0:
            return False
        dirty = [record for batch in self.batches[:count] for record in batch]
        self.batches = self.batches[count:]
        before = self.clean_records
        latest = latest_offsets([*self.remembered, *before, *dirty], self.config)
        of_keys = [record for record in [*before, *dirty] if latest.get(record.key) == record.offset]
        due = [r for r in of_keys if expires_from is not None and r.offset >= expires_from and _is_expired(r, now_ms)]
        staying = [record for record in of_keys if record not in due or self._is_held(record, now_ms)]
        expired = [record for record in of_keys if record not in staying]
        self._tell_the_slow(expired)
        self.clean_records = stamped(staying, _horizon_ms(now_ms, self.config.delete_retention_ms))
        self.remembered = [record for record in self.remembered if latest[record.key] == FORGOTTEN]
        self._forget(now_ms)
        self._remember(expired, now_ms)
        self.first_dirty_offset = self.batches[0][0].offset if self.batches else self.log_end_offset
        return True

    def clean_up_to(self, offset: int, now_ms: int, expires_from: int | None = 0) -> bool:
        """A commit of a clean in several that is not the last: what lies behind ``offset`` is as it was.

        So is where the dirty section begins.
        """
        whole = deepcopy(self)
        if not whole.clean(now_ms, expires_from):
            return False
        judged = {record.offset: record for record in whole.records}

        def after(records: Sequence[Record]) -> list[Record]:
            now = (record if record.offset > offset else judged.get(record.offset) for record in records)
            return [record for record in now if record]

        self.clean_records = after(self.clean_records)
        self.batches = [batch for batch in map(after, self.batches) if batch]
        for name, reader in self.readers.items():
            reader.missed += [each for each in whole.readers[name].missed[len(reader.missed) :] if each <= offset]
        return True

    def expire(self, now_ms: int, up_to_offset: int | None = None) -> bool:
        """Remove the tombstones whose horizon has passed, up to an offset (inclusive); says whether there was one."""
        before = self.clean_records
        self.clean_records = [
            record
            for record in before
            if self._is_held(record, now_ms)
            or not _is_expired(record, now_ms)
            or (up_to_offset is not None and record.offset > up_to_offset)
        ]
        self._tell_the_slow([record for record in before if record not in self.clean_records])
        self._remember(before, now_ms)
        return len(self.clean_records) < len(before)

    def drop(self, end_offsets: Mapping[bytes, int]) -> bool:
        """Drop every record of these keys, each below its offset, wherever it lies; says whether there was one.

        What is remembered of a key goes with its records. No position moves.
        """
        before = len(self.records)
        self.clean_records = [record for record in self.clean_records if not _is_dropped(record, end_offsets)]
        left = ([record for record in batch if not _is_dropped(record, end_offsets)] for batch in self.batches)
        self.batches = [batch for batch in left if batch]
        self.remembered = [record for record in self.remembered if record.key not in end_offsets]
        return len(self.records) < before

    def _is_held(self, record: Record, now_ms: int) -> bool:
        """Whether a reader who has not met this tombstone still has time."""
        if self.erasure_end_ms is not None and now_ms >= self.erasure_end_ms:
            return False
        readers = self.readers.values() if record.delete_horizon_ms is not None else ()
        waits_ms = [reader.hold_max_ms for reader in readers if reader.position <= record.offset]
        return any(now_ms < (record.delete_horizon_ms or 0) + wait_ms for wait_ms in waits_ms)

    def _tell_the_slow(self, expired: Sequence[Record]) -> None:
        for reader in self.readers.values():
            reader.missed += [record.offset for record in expired if reader.position <= record.offset]

    def _remember(self, before: Sequence[Record], now_ms: int) -> None:
        """Remember the tombstones that expired just now."""
        left = {record.offset for record in self.clean_records}
        latest = {record.key for record in self.clean_records}
        for record in before:
            if record.offset not in left and record.key not in latest and _is_expired(record, now_ms):
                gone = replace(record, offset=FORGOTTEN, delete_horizon_ms=now_ms)
                if self.config.rank(gone)[0] and self.config.watermark_retention_ms:
                    self.remembered.append(gone)

    def _forget(self, now_ms: int) -> None:
        """Forget what is remembered long enough; an expiry does not, as a late record may wait for the next clean."""
        remembered_ms = self.config.watermark_retention_ms
        self.remembered = [
            record for record in self.remembered if now_ms < (record.delete_horizon_ms or 0) + remembered_ms
        ]


def latest_offsets(records: Sequence[Record], config: ReferenceConfig) -> dict[bytes | None, int]:
    """Of every key the offset of its latest record."""
    latest: dict[bytes | None, Record] = {}
    for record in records:
        if record.key is not None and config.rank(record) >= config.rank(latest.get(record.key, record)):
            latest[record.key] = record
    return {key: record.offset for key, record in latest.items()}


def clean_records(
    clean: Sequence[Record], dirty: Sequence[Record], now_ms: int, delete_retention_ms: int
) -> list[Record]:
    """The clean section after ``dirty`` was cleaned into it, where the last record of a key is its latest."""
    latest = {record.key: record.offset for record in [*clean, *dirty]}
    of_keys = [r for r in [*clean, *dirty] if r.key is not None and latest[r.key] == r.offset]
    return stamped([r for r in of_keys if not _is_expired(r, now_ms)], _horizon_ms(now_ms, delete_retention_ms))


def _horizon_ms(now_ms: int, delete_retention_ms: int) -> int:
    """A tombstone that is to stay for ever has the last time that a table can hold."""
    return min(now_ms + delete_retention_ms, LARGEST_TIMESTAMP_MS)


def stamped(records: Sequence[Record], horizon_ms: int) -> list[Record]:
    """The records, with this delete horizon on each tombstone that has none."""
    return [
        replace(r, delete_horizon_ms=horizon_ms) if r.value is None and r.delete_horizon_ms is None else r
        for r in records
    ]


def latest_values(
    records: Sequence[Record], config: ReferenceConfig | None = None, remembered: Sequence[Record] = ()
) -> dict[bytes, bytes]:
    """The state that the log tells: the value of every key whose latest record is no tombstone."""
    latest = latest_offsets([*remembered, *records], config or ReferenceConfig())
    return {
        record.key: record.value
        for record in records
        if record.key is not None and record.value is not None and latest[record.key] == record.offset
    }


def _is_dropped(record: Record, end_offsets: Mapping[bytes, int]) -> bool:
    return record.key is not None and record.offset < end_offsets.get(record.key, -1)


def _is_expired(record: Record, now_ms: int) -> bool:
    return record.value is None and record.delete_horizon_ms is not None and now_ms >= record.delete_horizon_ms
