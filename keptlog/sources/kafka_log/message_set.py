"""Records of message formats v0 and v1, as brokers wrote them before version 0.11 and kept them until 4.0.

A message is one record: big-endian lengths, no headers, and in v0 no timestamp either. A message with a codec is a
*wrapper*: its value, decompressed, is a run of messages. In v1 those carry offsets relative to each other, and the
wrapper has the offset of the last:

    wrapper at offset 17:   0 a   1 b   3 c      ->  14 a   15 b   17 c        offset 16 was cleaned away

In v0 they carry their real offsets. A wrapper whose timestamp is the time of the append stands for all in it.

There are few bytes of this kind left in the world, so messages are read one by one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from keptlog.log.record import TimestampType
from keptlog.sources.kafka_log.batches import Batch
from keptlog.sources.kafka_log.columns import LARGEST_TIMESTAMP_MS, NO_HORIZON, Columns, Slices
from keptlog.sources.kafka_log.compression import Undecodable, decompress
from keptlog.sources.kafka_log.record_batch import BrokenRecords

_HEADER = struct.Struct(">qiIbb")
_CHECKED_FROM = 16
_LENGTH_END = 12
_TIMESTAMP_BYTES = (0, 8)
_CODEC_BITS = 0x07


class _Broken(Exception):
    pass


@dataclass
class _Found:
    """What was found so far, in the parts of ``data`` that are joined at the end."""

    data: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    offset: list[int] = field(default_factory=list)
    timestamp_ms: list[int] = field(default_factory=list)
    timestamp_type: list[int] = field(default_factory=list)
    slices: list[tuple[int, int]] = field(default_factory=list)
    """Of a key and a value in turns: start and length in ``data``, -1 if it is null."""

    def add_data(self, data: bytes) -> None:
        self.data.append(data)
        self.size_bytes += len(data)

    def add(self, offset: int, timestamp_ms: int, kind: TimestampType) -> None:
        if not -LARGEST_TIMESTAMP_MS <= timestamp_ms <= LARGEST_TIMESTAMP_MS:
            raise _Broken(f"timestamp {timestamp_ms} ms is more than microseconds can hold")
        self.offset.append(offset)
        self.timestamp_ms.append(timestamp_ms)
        self.timestamp_type.append(kind)


def decode(batches: Sequence[Batch]) -> Columns:
    """The records of messages, in order.

    Raises:
        BrokenRecords: a message or a wrapper is not what it should be.
    """
    found = _Found()
    for index, batch in enumerate(batches):
        try:
            if batch.codec == "none":
                _add_plain(found, batch)
            else:
                _add_wrapped(found, batch)
        except (_Broken, Undecodable) as broken:
            raise BrokenRecords(index, str(broken)) from None
    keys, values = (_slices(found.slices[first::2]) for first in (0, 1))
    count = len(found.offset)
    return Columns(
        data=b"".join(found.data),
        offset=np.array(found.offset, np.int64),
        timestamp_ms=np.array(found.timestamp_ms, np.int64),
        timestamp_type=np.array(found.timestamp_type, np.int64),
        delete_horizon_ms=np.full(count, NO_HORIZON, np.int64),
        keys=keys,
        values=values,
    )


def _slices(places: list[tuple[int, int]]) -> Slices:
    start, length = np.array(places, np.int64).reshape(-1, 2).T
    return Slices(start, start + np.maximum(length, 0), length < 0)


def _kind(batch: Batch) -> TimestampType:
    return TimestampType.LOG_APPEND_TIME if batch.magic and batch.is_log_append_time else TimestampType.CREATE_TIME


def _add_plain(found: _Found, batch: Batch) -> None:
    payload = bytes(batch.payload)
    places = _key_and_value(payload, 0, len(payload))
    found.add(batch.last_offset, batch.base_timestamp_ms, _kind(batch))
    found.slices += [(start + found.size_bytes, length) for start, length in places]
    found.add_data(payload)


def _add_wrapped(found: _Found, batch: Batch) -> None:
    (_, _), (start, length) = _key_and_value(bytes(batch.payload), 0, len(batch.payload))
    if length < 0:
        raise _Broken("a compressed message has no value")
    data = decompress(batch.codec, bytes(batch.payload[start : start + length]))
    offsets: list[int] = []
    position = 0
    while position < len(data):
        offset, timestamp_ms, body, end = _inner(data, position, batch.magic)
        offsets.append(offset)
        if _kind(batch) is TimestampType.LOG_APPEND_TIME:
            timestamp_ms = batch.base_timestamp_ms
        found.add(offset, timestamp_ms, _kind(batch))
        found.slices += [(start + found.size_bytes, length) for start, length in _key_and_value(data, body, end)]
        position = end
    if not offsets:
        raise _Broken("a compressed message holds no messages")
    if batch.magic == 1:
        first = batch.last_offset - offsets[-1]
        offsets = [first + offset for offset in offsets]
    if any(after <= before for before, after in zip([batch.base_offset - 1, *offsets], offsets, strict=False)):
        raise _Broken("the offsets of its messages do not rise")
    if offsets[-1] > batch.last_offset:
        raise _Broken(f"it holds offset {offsets[-1]}, beyond its own, {batch.last_offset}")
    found.offset[len(found.offset) - len(offsets) :] = offsets
    found.add_data(data)


def _inner(data: bytes, position: int, magic: int) -> tuple[int, int, int, int]:
    """Of the message that begins here in a wrapper: offset, timestamp, where its key begins, where it ends."""
    body = position + _HEADER.size + _TIMESTAMP_BYTES[magic]
    if body > len(data):
        raise _Broken("a message in it is cut off")
    offset, length, checksum, inner_magic, attributes = _HEADER.unpack_from(data, position)
    end = position + _LENGTH_END + length
    if not body <= end <= len(data):
        raise _Broken(f"a message in it claims {length} bytes")
    if checksum != zlib.crc32(data[position + _CHECKED_FROM : end]):
        raise _Broken("the checksum of a message in it is wrong")
    if inner_magic != magic or attributes & _CODEC_BITS:
        raise _Broken("a message in it has another format, or is compressed itself")
    timestamp_ms = int.from_bytes(data[body - 8 : body], "big", signed=True) if magic else -1
    return offset, timestamp_ms, body, end


def _key_and_value(data: bytes, position: int, end: int) -> list[tuple[int, int]]:
    """Start and length of both; null has length -1."""
    places = []
    for _ in range(2):
        length = int.from_bytes(data[position : position + 4], "big", signed=True)
        position += 4
        if position + max(length, 0) > end:
            raise _Broken("a key or value is longer than its message")
        places.append((position, length))
        position += max(length, 0)
    if position != end:
        raise _Broken("a message is longer than its key and value")
    return places
