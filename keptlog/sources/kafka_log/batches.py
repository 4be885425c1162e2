"""Walks a segment file from batch to batch, and tells a good batch from a broken one.

A batch says how long it is, so the next one begins where it ends:

    | base offset | length | ... magic ... | checksum | attributes ... | records |  next batch ...

Format v2 has one header for many records. In v0 and v1 every record is a *message* with a header of its own, so each
counts as a batch of one; a compressed message holds further messages (``message_set``).

A batch is whole if it lies inside the file and its checksum is right. Where none is, the walk looks for the next
position at which one begins, and yields the ``Damage`` between them. If none follows, the damage reaches the end of
the file: in a log's last segment with any bytes that is what a crash leaves, a batch that was not written whole, and
is the end of the log.

The base offset is not under the checksum. So a whole batch is good only if its offsets can be right: they rise above
those before it, stay below the next segment's, and below the 2^31 that a segment of Kafka can have. One flipped bit can
pass all that, and puts the blame on whoever follows:

    [0..3] [1048580..1048583] [8..11] [12..15]      the second is wrong, since the third goes on from the first

Such a batch is damage wherever it is: no crash leaves it, so it never is the end of the log.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np

from keptlog.errors import LogCorrupt
from keptlog.log.words.counted import counted
from keptlog.sources.kafka_log.compression import BEGIN_BYTES, CODECS, may_begin
from keptlog.sources.kafka_log.first_record import may_be_first_record
from keptlog.sources.kafka_log.open_file import OpenFile, became_shorter, unread

_SEARCH_BYTES = 2**18
"""What is searched at once for the next good batch; zeros make a candidate of every byte."""

NO_END = 2**63 - 1
"""The end offset of a log's last segment."""
_SEEN_TOGETHER = 3
"""Batches, of which two can tell that the offsets of one are wrong."""
_UNCHECKED = "base offsets are under no checksum, so one of them is wrong"
_MOST_OFFSETS = 2**31
"""Of a segment, from its base offset on: its indexes hold them in 31 bits, so a broker rolls before."""

_LENGTH_END = 12
"""Of the base offset and the length, which a batch's length does not count."""
_MAGIC_END = 17
_HEADER_V2 = struct.Struct(">qiibIhiqqqhii")
_HEADER_V0 = struct.Struct(">qiIbb")
_HEADER_V1 = struct.Struct(">qiIbbq")
_HEADER_BYTES = (_HEADER_V0.size, _HEADER_V1.size, _HEADER_V2.size)
"""By the magic number."""
_CHECKED_FROM_V2 = 21
_CHECKED_FROM_LEGACY = 16
_LEAST_BYTES = (_HEADER_V0.size + 8, _HEADER_V1.size + 8, _HEADER_V2.size)
"""With the lengths of key and value, which a message always has."""

_CODEC_BITS = 0x07
_LOG_APPEND_TIME_BIT = 0x08
_TRANSACTIONAL_BIT = 0x10
_CONTROL_BIT = 0x20
_DELETE_HORIZON_BIT = 0x40
_UNUSED_BITS = 0xFF80
_NO_PRODUCER = -1


@dataclass(frozen=True, slots=True)
class LogSegment:
    """One file of a log. Its offsets are in [base offset, end offset)."""

    path: Path
    base_offset: int
    end_offset: int
    size_bytes: int
    is_last: bool
    """Whether no later file of the log has any bytes."""


class Batch(NamedTuple):
    """A good batch; its records are still as they lie in the file."""

    position: int
    """Where in the file it begins."""
    magic: int
    attributes: int
    base_offset: int
    """Of a v0 or v1 message, the least offset that a message in it can have; its own until that is known."""
    last_offset: int
    base_timestamp_ms: int
    """Of v2 the one that its records' timestamps are relative to, or its delete horizon; of v1 the message's."""
    max_timestamp_ms: int
    producer_id: int
    record_count: int
    """Of a v0 or v1 message 1, even if it holds others."""
    payload: memoryview
    """The records, compressed or not; of a v0 or v1 message its key and value with their lengths."""

    @property
    def size_bytes(self) -> int:
        return _HEADER_BYTES[self.magic] + len(self.payload)

    @property
    def codec(self) -> str:
        return CODECS[self.attributes & _CODEC_BITS]

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return self.magic == 2 and bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return self.magic == 2 and bool(self.attributes & _CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        has_horizon = self.magic == 2 and self.attributes & _DELETE_HORIZON_BIT
        return self.base_timestamp_ms if has_horizon else None


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a segment that are no good batches."""

    path: str
    position: int
    size_bytes: int
    next_offset: int
    """The first offset that can't be had; those before it are fine."""
    reason: str
    end_offset: int = NO_END
    """The first good offset behind it, as far as that is known: those before it may have been in it."""
    is_torn: bool = False
    """It is no whole batch, and nothing good follows in this file: so a crash leaves it, at the end of a log."""

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.size_bytes} bytes at position {self.position}, from offset {self.next_offset} on: "
            f"{self.reason}"
        )

    def as_error(self) -> LogCorrupt:
        """What stops a reader who may not skip it."""
        return LogCorrupt(f"{self}; restore the file, or skip what is corrupt and lose its records")


class BrokenBatch(Exception):
    """Here is no good batch, and why."""


def batches(segment: LogSegment) -> Iterator[Batch | Damage]:
    """The good batches of a segment in their order, and the damage between them.

    One that is shorter than it was listed is not read: what it lost may end between two batches, and then what is left
    looks whole.

    Raises:
        StorageUnavailable: the file is gone, can't be read, or became shorter.
    """
    try:
        with segment.path.open("rb") as file:
            size_bytes = file.seek(0, 2)
            if size_bytes < segment.size_bytes:
                raise became_shorter(segment.path)
            whole = _walk(OpenFile(file, size_bytes), str(segment.path))
            yield from _with_ends(segment, _in_order(segment, whole))
    except OSError as error:
        raise unread(f"{segment.path} can't be read", error, "a running broker may have removed it") from error


def _walk(file: OpenFile, path: str) -> Iterator[Batch | Damage]:
    """The whole batches, and what lies between them; a damage does not know its offset yet."""
    position = 0
    while position < file.size_bytes:
        try:
            batch = _batch_at(file, position)
        except BrokenBatch as broken:
            found = _next_whole(file, position + 1)
            size_bytes = (file.size_bytes if found is None else found) - position
            yield Damage(path, position, size_bytes, 0, str(broken), is_torn=found is None)
            position += size_bytes
            continue
        yield batch
        position += batch.size_bytes


def _in_order(segment: LogSegment, found: Iterator[Batch | Damage]) -> Iterator[Batch | Damage]:
    """The batches whose offsets can be right, and the damage before, between and behind them."""
    next_offset, end_offset = segment.base_offset, min(segment.end_offset, segment.base_offset + _MOST_OFFSETS)
    ahead: deque[Batch | Damage] = deque()
    while True:
        ahead.extend(islice(found, _SEEN_TOGETHER - len(ahead)))
        if not ahead:
            return
        each = ahead.popleft()
        if isinstance(each, Damage):
            yield replace(each, next_offset=next_offset)
            continue
        batch = each if each.magic == 2 else each._replace(base_offset=next_offset)
        behind = [one for one in takewhile(lambda one: isinstance(one, Batch), ahead) if isinstance(one, Batch)]
        why = _why_impossible(batch, next_offset, end_offset)
        wrong = [batch] if why else _contradicting(each, behind, next_offset)
        if not wrong:
            yield batch
            next_offset = batch.last_offset + 1
            continue
        why = why or f"offsets {_span(each)} and those of the next batch, {_span(behind[0])}, contradict each other"
        size_bytes = sum(one.size_bytes for one in wrong)
        yield Damage(str(segment.path), batch.position, size_bytes, next_offset, f"{why}; {_UNCHECKED}")
        if len(wrong) > 1:
            ahead.popleft()


def _with_ends(segment: LogSegment, found: Iterator[Batch | Damage]) -> Iterator[Batch | Damage]:
    """The same, once it is known of a damage where the next good batch begins."""
    waiting: list[Damage] = []
    for each in found:
        if isinstance(each, Damage):
            waiting.append(each)
            continue
        yield from (replace(damage, end_offset=_first_offset(each)) for damage in waiting)
        waiting.clear()
        yield each
    yield from (replace(damage, end_offset=segment.end_offset) for damage in waiting)


def _why_impossible(batch: Batch, next_offset: int, end_offset: int) -> str:
    """Why a batch can't be at its offsets, whatever follows; empty if it can."""
    if batch.base_offset < next_offset or batch.last_offset < batch.base_offset:
        return f"offsets {_span(batch)} do not rise from {next_offset}"
    if batch.last_offset >= end_offset:
        return f"offset {batch.last_offset} lies behind {end_offset - 1}, the last one that this segment can have"
    return ""


def _contradicting(batch: Batch, behind: Sequence[Batch], next_offset: int) -> list[Batch]:
    """Which batches are at wrong offsets, if one shows it that follows: none, this one, or the next too.

    Where no offset is missing before a batch, it is right, and the one that follows is wrong.
    """
    first = _first_offset(batch)
    if not behind or first == next_offset or not next_offset <= _first_offset(behind[0]) <= batch.last_offset:
        return []
    if len(behind) > 1 and (
        behind[1].last_offset <= batch.last_offset or _first_offset(behind[1]) == behind[0].last_offset + 1
    ):
        return [batch]
    return [batch, behind[0]]


def _first_offset(batch: Batch) -> int:
    """A message of v0 or v1 has its own, and those in it, which may be less, are not known yet."""
    return batch.base_offset if batch.magic == 2 else batch.last_offset


def _span(batch: Batch) -> str:
    return f"{_first_offset(batch)}..{batch.last_offset}"


def _batch_at(file: OpenFile, position: int) -> Batch:
    """The whole batch that begins here.

    Raises:
        BrokenBatch: none does.
    """
    left = file.size_bytes - position
    if left < _MAGIC_END:
        raise BrokenBatch(f"only {left} bytes are left, less than the header of a batch")
    start = file.read(position, _MAGIC_END)
    magic = start[_MAGIC_END - 1]
    if magic >= len(_LEAST_BYTES):
        raise BrokenBatch(f"message format {magic} is none of 0, 1, 2")
    size_bytes = int.from_bytes(start[8:_LENGTH_END], "big", signed=True) + _LENGTH_END
    if size_bytes < _LEAST_BYTES[magic]:
        reason = f"a batch of {size_bytes} bytes is shorter than its header" if any(start) else "only zeros"
        raise BrokenBatch(reason)
    if size_bytes > left:
        raise BrokenBatch(f"the batch has {size_bytes} bytes, of which {left} are there")
    whole = file.read(position, size_bytes)
    batch = _batch_v2(position, whole) if magic == 2 else _message(position, whole)
    if batch.attributes & _CODEC_BITS >= (len(CODECS) if magic == 2 else CODECS.index("zstd")):
        raise BrokenBatch(f"there is no codec {batch.attributes & _CODEC_BITS} in message format {magic}")
    return batch


def _batch_v2(position: int, whole: bytes) -> Batch:
    (base_offset, _, _, magic, checksum, attributes, last_offset_delta, base_ms, max_ms, producer_id, _, _, count) = (
        _HEADER_V2.unpack_from(whole)
    )
    _check(checksum, google_crc32c.value(whole[_CHECKED_FROM_V2:]))
    if not 0 <= count <= last_offset_delta + 1:
        raise BrokenBatch(f"it claims {counted(count, 'record')} in {counted(last_offset_delta + 1, 'offset')}")
    return Batch(
        position=position,
        magic=magic,
        attributes=attributes,
        base_offset=base_offset,
        last_offset=base_offset + last_offset_delta,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max_ms,
        producer_id=producer_id,
        record_count=count,
        payload=memoryview(whole)[_HEADER_V2.size :],
    )


def _message(position: int, whole: bytes) -> Batch:
    timestamp_ms = -1
    if whole[_MAGIC_END - 1] == 0:
        offset, _, checksum, magic, attributes = _HEADER_V0.unpack_from(whole)
    else:
        offset, _, checksum, magic, attributes, timestamp_ms = _HEADER_V1.unpack_from(whole)
    _check(checksum, zlib.crc32(whole[_CHECKED_FROM_LEGACY:]))
    return Batch(
        position=position,
        magic=magic,
        attributes=attributes,
        base_offset=offset,
        last_offset=offset,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=_NO_PRODUCER,
        record_count=1,
        payload=memoryview(whole)[_HEADER_V1.size if magic else _HEADER_V0.size :],
    )


def _check(expected: int, actual: int) -> None:
    if expected != actual:
        raise BrokenBatch(f"its checksum is {actual:08x}, its header says {expected:08x}")


def _may_begin(file: OpenFile, position: int) -> bool:
    """Whether what its header says can be: in numbers of four bytes a batch seems to begin at every other byte.

    A checksum is made of all that a header claims to be its batch, which may be all that is left of the file.
    """
    left = file.size_bytes - position
    start = file.read(position, min(left, _HEADER_V2.size))
    magic, size_bytes = start[_MAGIC_END - 1], int.from_bytes(start[8:_LENGTH_END], "big") + _LENGTH_END
    if size_bytes < _LEAST_BYTES[magic]:
        return False
    if magic == 2:
        # The base offset is under no checksum, so it may be damaged where the batch is not.
        *_, attributes, last_delta, _, _, producer_id, producer_epoch, sequence, count = _HEADER_V2.unpack_from(start)
        is_one = not attributes & _UNUSED_BITS and attributes & _CODEC_BITS < len(CODECS)
        if not is_one or min(producer_id, producer_epoch, sequence) < _NO_PRODUCER or not 0 <= count <= last_delta + 1:
            return False
        return _may_hold(file, (position + _HEADER_V2.size, position + size_bytes), attributes & _CODEC_BITS, count)
    header_bytes = _HEADER_BYTES[magic]
    key_bytes = max(0, int.from_bytes(start[header_bytes : header_bytes + 4], "big", signed=True))
    value_at = header_bytes + 4 + key_bytes
    if value_at + 4 > size_bytes:
        return False
    value_bytes = max(0, int.from_bytes(file.peek(position + value_at, 4), "big", signed=True))
    return value_at + 4 + value_bytes == size_bytes


def _may_hold(file: OpenFile, payload: tuple[int, int], codec: int, count: int) -> bool:
    """Whether so many records can lie between these positions, as their begin looks."""
    start, end = payload
    if count == 0 or start == end:
        return count == 0 and start == end
    if codec:
        return may_begin(CODECS[codec], file.peek(start, min(BEGIN_BYTES, end - start)), end - start)
    return may_be_first_record(file, start, end, is_only=count == 1)


def _next_whole(file: OpenFile, start: int) -> int | None:
    """The first position from here on at which a whole batch begins."""
    while start + _MAGIC_END <= file.size_bytes:
        piece = np.frombuffer(file.read(start, min(_SEARCH_BYTES, file.size_bytes - start)), np.uint8)
        heads = np.flatnonzero(piece[_MAGIC_END - 1 :] <= 2)
        lengths = sum(piece[heads + 8 + byte].astype(np.int64) << 8 * (3 - byte) for byte in range(4))
        sizes = lengths + _LENGTH_END
        least = min(_LEAST_BYTES)
        for head in heads[(sizes >= least) & (start + heads + sizes <= file.size_bytes)]:
            try:
                if _may_begin(file, start + int(head)):
                    _batch_at(file, start + int(head))
                    return start + int(head)
            except BrokenBatch:
                continue
        start += len(piece) - _MAGIC_END + 1
    return None
