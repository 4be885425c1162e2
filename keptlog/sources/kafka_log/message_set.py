"""Records of message formats v0 and v1, as brokers wrote them before version 0.11 and kept them until 4.0.

A message is one record: big-endian lengths, no headers, and in v0 no timestamp either. A message with a codec is a
*wrapper*: its value, decompressed, is a run of messages. In v1 those carry offsets relative to each other, and the
wrapper has the offset of the last:

    wrapper at offset 17:   0 a   1 b   3 c      ->  14 a   15 b   17 c        offset 16 was cleaned away

In v0 they carry their real offsets. A wrapper whose timestamp is the time of the append stands for all in it.

Messages are found one by one; their keys and values lie at fixed places behind each other, and are found together.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from keptlog.log.record import TimestampType
from keptlog.sources.kafka_log.batches import Batch
from keptlog.sources.kafka_log.columns import NO_HORIZON, Columns, Flags, Longs, Slices
from keptlog.sources.kafka_log.compression import Undecodable, decompress
from keptlog.sources.kafka_log.record_batch import BrokenRecords

_HEADER = struct.Struct(">qiIbb")
_CHECKED_FROM = 16
_LENGTH_END = 12
_LENGTH_BYTES = 4
_PADDING = bytes(2 * _LENGTH_BYTES)
"""So that a length that is cut off by the end of the data can still be read, and be found to reach beyond it."""
_TIMESTAMP_BYTES = (0, 8)
_CODEC_BITS = 0x07


class _Broken(Exception):
    pass


@dataclass
class _Messages:
    """Messages without their headers: only key and value are left of each, with their lengths."""

    body: list[bytes | memoryview] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    timestamp_ms: list[int] = field(default_factory=list)
    timestamp_type: list[int] = field(default_factory=list)
    batch: list[int] = field(default_factory=list)
    """Which of the batches each message is in."""

    def add(self, batch: int, offset: int, timestamp_ms: int, kind: TimestampType, body: bytes | memoryview) -> None:
        self.batch.append(batch)
        self.offset.append(offset)
        self.timestamp_ms.append(timestamp_ms)
        self.timestamp_type.append(kind)
        self.body.append(body)


def unwrapped(batch: Batch) -> bytes | memoryview:
    """What a message holds: of a wrapper the messages in it, decompressed.

    Raises:
        Undecodable: it is not what it should be.
    """
    if batch.attributes & _CODEC_BITS == 0:
        return batch.payload
    try:
        return decompress(batch.codec, _wrapped(bytes(batch.payload)))
    except _Broken as broken:
        raise Undecodable(str(broken)) from None


def decode(batches: Sequence[Batch], payloads: Sequence[bytes | memoryview]) -> Columns:
    """The records of messages, in order; ``payloads`` has what each of them holds.

    Raises:
        BrokenRecords: a message or a wrapper is not what it should be.
    """
    messages = _Messages()
    for index, (batch, payload) in enumerate(zip(batches, payloads, strict=True)):
        if batch.attributes & _CODEC_BITS == 0:
            messages.add(index, batch.last_offset, batch.base_timestamp_ms, _kind(batch), payload)
            continue
        try:
            _add_wrapped(messages, index, batch, bytes(payload))
        except _Broken as broken:
            raise BrokenRecords(index, str(broken)) from None
    return _columns(messages)


def _columns(messages: _Messages) -> Columns:
    data = b"".join([*messages.body, _PADDING])
    end = np.cumsum([len(body) for body in messages.body], dtype=np.int64)
    start = np.concatenate([np.zeros(1, np.int64), end[:-1]])
    view = np.frombuffer(data, np.uint8)
    keys = _slices(view, start, end, messages)
    values = _slices(view, keys.end, end, messages)
    _check(values.end == end, messages, "a message is longer than its key and value")
    return Columns(
        data=data,
        offset=np.array(messages.offset, np.int64),
        timestamp_ms=np.array(messages.timestamp_ms, np.int64),
        timestamp_type=np.array(messages.timestamp_type, np.int64),
        delete_horizon_ms=np.full(len(end), NO_HORIZON, np.int64),
        keys=keys,
        values=values,
    )


def _slices(data: npt.NDArray[np.uint8], position: Longs, end: Longs, messages: _Messages) -> Slices:
    """The byte strings here, each behind its length; null has a length below 0."""
    length = np.zeros(len(position), np.int32)
    for byte in range(_LENGTH_BYTES):
        length = length << 8 | data[position + byte]
    start = position + _LENGTH_BYTES
    slices = Slices(start, start + np.maximum(length, 0), length < 0)
    _check(slices.end <= end, messages, "a key or value is longer than its message")
    return slices


def _check(is_right: Flags, messages: _Messages, reason: str) -> None:
    if not is_right.all():
        raise BrokenRecords(messages.batch[int(np.argmin(is_right))], reason)


def _kind(batch: Batch) -> TimestampType:
    return TimestampType.LOG_APPEND_TIME if batch.magic and batch.is_log_append_time else TimestampType.CREATE_TIME


def _add_wrapped(messages: _Messages, index: int, batch: Batch, data: bytes) -> None:
    kind = _kind(batch)
    offsets: list[int] = []
    times_ms: list[int] = []
    bodies: list[bytes] = []
    position = 0
    while position < len(data):
        offset, timestamp_ms, start, end = _inner(data, position, batch.magic)
        offsets.append(offset)
        times_ms.append(batch.base_timestamp_ms if kind is TimestampType.LOG_APPEND_TIME else timestamp_ms)
        bodies.append(data[start:end])
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
    for offset, timestamp_ms, body in zip(offsets, times_ms, bodies, strict=True):
        messages.add(index, offset, timestamp_ms, kind, body)


def _wrapped(body: bytes) -> bytes:
    """A wrapper's value."""
    key_length = int.from_bytes(body[:_LENGTH_BYTES], "big", signed=True)
    start = 2 * _LENGTH_BYTES + max(key_length, 0)
    value_length = int.from_bytes(body[start - _LENGTH_BYTES : start], "big", signed=True)
    if value_length < 0 or start + value_length != len(body):
        raise _Broken(f"a compressed message of {len(body)} bytes claims a value of {value_length}")
    return body[start:]


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
