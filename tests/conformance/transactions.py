"""What a case appends, and what of it comes in at the door: records that are committed, below the last stable offset.

keptlog's sources bring what a consumer with ``isolation.level=read_committed`` would get: aborted records, records of
transactions that are still open, and control batches never enter a log (ADR 15).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from keptlog.log.record import Header, Record
from tests.conformance.cases import Fields, NotUnderstoodError, understood

_PRODUCER = {"pid", "epoch", "seq", "txn"}
_DECIDING = {"COMMIT", "ABORT"}
_CONTROLS = {*_DECIDING, "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"}
"""Kafka's types of control records. Only a producer's marker decides about transactions."""

_COMPRESSIONS = {None, "none", "uncompressed", "gzip", "snappy", "lz4", "zstd"}
"""How a batch may be compressed; which records are in it does not hang on that."""

NO_TIMESTAMP_MS = -1
"""What Kafka gives to a record without one."""


@dataclass(frozen=True)
class Batch:
    """One batch as it is appended; a control batch has no records."""

    base_offset: int
    last_offset: int
    records: tuple[Record, ...]
    producer_id: int | None = None
    is_transactional: bool = False
    control: str | None = None
    epoch: int = 0
    base_sequence: int | None = None

    @property
    def offsets(self) -> set[int]:
        """Those of its records."""
        return {record.offset for record in self.records}


@dataclass
class Source:
    """Kafka's log as a case tells it: segments of batches, the last of them active."""

    segment_bases: list[int] = field(default_factory=lambda: [0])
    batches: list[Batch] = field(default_factory=list)
    high_watermark: int | None = None
    """Null where a case says nothing of it: all is replicated."""

    @property
    def log_end_offset(self) -> int:
        return max(self.segment_bases[-1], self.batches[-1].last_offset + 1 if self.batches else 0)

    @property
    def has_unreplicated(self) -> bool:
        """Whether something lies at or above the high watermark."""
        return self.high_watermark is not None and any(b.last_offset >= self.high_watermark for b in self.batches)

    @property
    def has_transactions(self) -> bool:
        return any(batch.is_transactional or batch.control for batch in self.batches)

    def roll(self, base_offset: int | None) -> None:
        """Begin a new active segment; an empty one is replaced."""
        base_offset = self.log_end_offset if base_offset is None else base_offset
        if base_offset > self.segment_bases[-1]:
            self.segment_bases.append(base_offset)

    def segment_base_at(self, offset: int) -> int:
        """The base of the segment that holds this offset."""
        return max((base for base in self.segment_bases if base <= offset), default=self.segment_bases[0])

    def by_segment(self, records: Sequence[Record]) -> Iterator[list[Record]]:
        """The records, a list for each segment that holds any of them."""
        for base_offset, after in zip(self.segment_bases, [*self.segment_bases[1:], 2**63], strict=True):
            here = [record for record in records if base_offset <= record.offset < after]
            if here:
                yield here

    @property
    def last_stable_offset(self) -> int:
        _, offset = self._decisions()
        return offset if self.high_watermark is None else min(offset, self.high_watermark)

    def entered(self) -> Iterator[Record]:
        """All records that may come in by now."""
        decided, last_stable_offset = self._decisions()[0], self.last_stable_offset
        for batch in self.batches:
            if batch.last_offset < last_stable_offset and decided.get(batch.base_offset, True):
                yield from batch.records

    def never_entered(self) -> Iterator[Record]:
        """Records that an abort, or an open transaction, keeps out by now."""
        entered = {record.offset for record in self.entered()}
        for batch in self.batches:
            yield from (record for record in batch.records if record.offset not in entered)

    def _decisions(self) -> tuple[dict[int, bool], int]:
        """Of every transactional batch, by its base offset, whether it was committed; and the last stable offset."""
        decided: dict[int, bool] = {}
        undecided: dict[int | None, list[int]] = {}
        for batch in self.batches:
            if batch.control in _DECIDING:
                for base_offset in undecided.pop(batch.producer_id, []):
                    decided[base_offset] = batch.control == "COMMIT"
            elif batch.is_transactional and not batch.control:
                undecided.setdefault(batch.producer_id, []).append(batch.base_offset)
        open_offsets = [base_offset for bases in undecided.values() for base_offset in bases]
        return decided, min(open_offsets, default=self.log_end_offset)


def batch_of(fields: Fields) -> Batch:
    """Read a batch: ``{base, last?, records, pid?, epoch?, seq?, txn?, control?, ts?, compression?}``.

    A marker needs no records.
    """
    control = fields.get("control") or None
    known, required = {"last", "control", "ts", "compression", *_PRODUCER}, {"base"} if control else {"base", "records"}
    understood(fields, "batch", known | {"records"}, required)
    if fields.get("compression") not in _COMPRESSIONS:
        raise NotUnderstoodError(f"there is no compression {fields['compression']!r}")
    if control and control not in _CONTROLS:
        raise NotUnderstoodError(f"there is no control batch {control!r}")
    # The one record of a control batch is the marker itself.
    records = () if control else tuple(record_of(row) for row in fields["records"])
    last_offset = fields.get("last", records[-1].offset if records else fields["base"])
    pid = fields.get("pid")
    return Batch(
        fields["base"],
        last_offset,
        records,
        None if pid is None or pid < 0 else pid,
        bool(fields.get("txn")),
        control,
        fields.get("epoch") or 0,
        fields.get("seq"),
    )


def record_of(row: Sequence[object]) -> Record:
    """Read ``[offset, key, value|null, timestamp, headers?]``; without a timestamp, or with null, it has none."""
    offset, key, value, *rest = row
    timestamp_ms = NO_TIMESTAMP_MS if not rest or rest[0] is None else rest[0]
    assert isinstance(offset, int)
    assert isinstance(timestamp_ms, int)
    if len(rest) > 2:
        raise NotUnderstoodError(f"a record has at most five parts: {row}")
    headers = headers_of(rest[1] if len(rest) == 2 else None)
    return Record(offset, in_bytes(in_text(key)), in_bytes(in_text(value)), timestamp_ms, headers=headers)


def headers_of(described: object) -> tuple[Header, ...]:
    """Headers as pairs of name and value, or as objects with ``key`` and ``value``; null if there are none."""
    if described is None:
        return ()
    assert isinstance(described, list)
    return tuple(map(_header, described))


def _header(described: object) -> Header:
    if isinstance(described, dict):
        fields = understood(described, "header", set(), {"key", "value"})
        return fields["key"], in_bytes(fields["value"])
    assert isinstance(described, list)
    name, value = described
    return name, in_bytes(value)


def in_text(value: object) -> str | None:
    """What a row says of a key or a value; Kafka's tests write a number's digits."""
    return None if value is None else str(value)


def text_of(value: bytes | None) -> str | None:
    """What a row says of a stored key or value."""
    return None if value is None else value.decode()


def is_listed(record: Record) -> bool:
    """Whether Kafka's tests list a record: with a key and a value."""
    return record.key is not None and record.value is not None


def in_bytes(value: object) -> bytes | None:
    """Text as UTF-8, a number as an 8-byte big-endian long."""
    if isinstance(value, int):
        return struct.pack(">q", value)
    return None if value is None else str(value).encode()
