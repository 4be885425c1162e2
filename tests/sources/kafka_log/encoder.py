"""Writes batches of message format v2 by the book, also such as no broker would write; and reads whole logs."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import google_crc32c
import pyarrow as pa

from keptlog.log.record import Record
from keptlog.sources.kafka_log.batches import Damage
from keptlog.sources.kafka_log.reader import Unfit, read_segment
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.transactions import LogScan, scan_log
from keptlog.storage.schema import from_arrow

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ABORT, COMMIT = 0, 1


def varint(number: int) -> bytes:
    """Folded, so that small negative numbers are short too."""
    folded = number * 2 if number >= 0 else -number * 2 - 1
    encoded = bytearray()
    while folded >= 0x80:
        encoded.append(folded & 0x7F | 0x80)
        folded >>= 7
    return bytes([*encoded, folded])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


@dataclass(frozen=True)
class BatchOptions:
    """What a batch's header says beside what follows from its records."""

    codec: str = "none"
    producer_id: int = -1
    is_transactional: bool = False
    is_control: bool = False
    is_append_time: bool = False
    delete_horizon_ms: int | None = None
    last_offset: int | None = None


PLAIN = BatchOptions()


def encoded_records(records: Sequence[Record], base_offset: int, base_ms: int) -> bytes:
    encoded = b""
    for record in records:
        body = b"\0" + varint(record.timestamp_ms - base_ms) + varint(record.offset - base_offset)
        body += sized(record.key) + sized(record.value) + varint(len(record.headers))
        body += b"".join(sized(name.encode()) + sized(value) for name, value in record.headers)
        encoded += sized(body)
    return encoded


def batch(records: Sequence[Record], options: BatchOptions = PLAIN) -> bytes:
    """One batch with these records."""
    base_offset = records[0].offset
    base_ms = records[0].timestamp_ms if options.delete_horizon_ms is None else options.delete_horizon_ms
    plain = encoded_records(records, base_offset, base_ms)
    payload = plain if options.codec == "none" else pa.compress(plain, codec=options.codec, asbytes=True)
    if options.codec == "snappy":
        # Arrow's bare block is one of the two framings that Kafka knows.
        assert not payload.startswith(b"\x82SNAPPY")
    last_offset = records[-1].offset if options.last_offset is None else options.last_offset
    return whole_batch(payload, (base_offset, last_offset), (base_ms, records[-1].timestamp_ms), len(records), options)


def whole_batch(
    payload: bytes,
    offsets: tuple[int, int],
    times_ms: tuple[int, int],
    record_count: int,
    options: BatchOptions = PLAIN,
) -> bytes:
    """A batch around any bytes, with the right checksum."""
    attributes = CODECS[options.codec] | options.is_append_time << 3 | options.is_transactional << 4
    attributes |= options.is_control << 5 | (options.delete_horizon_ms is not None) << 6
    checked = struct.pack(
        ">hiqqqhii", attributes, offsets[1] - offsets[0], *times_ms, options.producer_id, -1, -1, record_count
    )
    checked += payload
    return struct.pack(">qiibI", offsets[0], len(checked) + 9, 0, 2, google_crc32c.value(checked)) + checked


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    """The control batch that ends a transaction."""
    record = Record(offset, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0), 1_000)
    return batch([record], BatchOptions(producer_id=producer_id, is_transactional=True, is_control=True))


def write_segment(folder: Path, base_offset: int, content: bytes | Iterable[bytes], suffix: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020d}.log{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else b"".join(content))
    return path


@dataclass
class ReadLog:
    """All that a log's folder gives."""

    scan: LogScan
    records: list[Record] = field(default_factory=list)
    skipped: list[Damage] = field(default_factory=list)
    unfit: list[Unfit] = field(default_factory=list)

    def skip(self, each: Damage | Unfit) -> None:
        if isinstance(each, Unfit):
            self.unfit.append(each)
        else:
            self.skipped.append(each)

    @property
    def offsets(self) -> list[int]:
        return [record.offset for record in self.records]


def read_log(folder: Path, log_start_offset: int | None = None, *, skip_corrupt: bool = False) -> ReadLog:
    """Both passes over a log."""
    segments = segments_to_read(folder)
    read = ReadLog(scan_log(segments, log_start_offset, skip_corrupt=skip_corrupt))
    for segment in segments:
        skipped = read.skip if skip_corrupt else None
        for table in read_segment(segment, 0, read.scan.for_segment(segment), skipped):
            table.validate(full=True)
            read.records += from_arrow(table.to_batches())
    assert read.offsets == sorted(set(read.offsets))
    return read
