"""Records of message format v2, many batches at once.

    record:   length  attributes  timestamp delta  offset delta  key length  key  value length  value  header count ...
    header:   key length  key  value length  value

All numbers but the attributes are varints, so nothing is at a fixed place, and a length of -1 is null. One Python loop
goes from record to record by their lengths; all else is done for all records together, field by field: read the varint
at each record's position, move the positions behind it.

    positions of 100,000 records -> their timestamp deltas -> their offset deltas -> their keys' lengths -> ...

That is worth it only for many records, and batches are often small; so the reader hands over as many batches as make
up some MiB. If one of them is broken the whole decoding fails and names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keptlog.log.words.counted import counted
from keptlog.sources.kafka_log.batches import Batch
from keptlog.sources.kafka_log.columns import NO_HORIZON, Columns, Flags, Headers, Longs, Slices
from keptlog.storage.schema import LARGEST_STORABLE_MS

_LONGEST_VARINT = 10
_LONGEST_SHIFT = 63
_PADDING = bytes(_LONGEST_VARINT + 1)
"""So that a varint that is cut off by the end of the data can still be read, and be found to reach beyond it."""


class BrokenRecords(Exception):
    """The records of one batch are not what its header promises."""

    def __init__(self, batch: int, reason: str) -> None:
        super().__init__(reason)
        self.batch = batch
        """Its place among those that were to be decoded."""


@dataclass
class _Cursor:
    """One position in each of the records, moved forward together."""

    data: npt.NDArray[np.uint8]
    position: Longs
    end: Longs
    batch: Longs
    """Which batch each record is in."""

    def number(self) -> Longs:
        """The varints here."""
        byte = self.data[self.position]
        self.position = self.position + 1
        value = (byte & 0x7F).astype(np.uint64)
        longer = np.flatnonzero(byte >= 0x80)
        for place in range(1, _LONGEST_VARINT + 1):
            if not longer.size:
                break
            if place == _LONGEST_VARINT:
                raise BrokenRecords(int(self.batch[longer[0]]), "a number does not end")
            byte = self.data[self.position[longer]]
            self.position[longer] += 1
            value[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * place)
            longer = longer[byte >= 0x80]
        self.check(self.position <= self.end, "a record ends inside of a number")
        return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)

    def slices(self) -> Slices:
        """The byte strings here, each behind its length."""
        length = self.number()
        is_null = length < 0
        length = np.maximum(length, 0)
        self.check(length <= self.end - self.position, "a key or value is longer than its record")
        start = self.position
        self.position = start + length
        return Slices(start, self.position, is_null)

    def check(self, is_right: Flags, reason: str) -> None:
        if not is_right.all():
            raise BrokenRecords(int(self.batch[np.argmin(is_right)]), reason)

    def at(self, chosen: npt.NDArray[np.intp]) -> _Cursor:
        """The cursor of some of the records."""
        return _Cursor(self.data, self.position[chosen], self.end[chosen], self.batch[chosen])


def decode(batches: Sequence[Batch], payloads: Sequence[bytes | memoryview]) -> Columns:
    """The records of batches, in order; ``payloads`` has the decompressed records of each.

    Raises:
        BrokenRecords: a batch does not hold what its header promises.
    """
    data = b"".join([*payloads, _PADDING])
    start, end = _bounds(data, batches, payloads)
    counts = [batch.record_count for batch in batches]
    cursor = _Cursor(np.frombuffer(data, np.uint8), start + 1, end, np.repeat(np.arange(len(batches)), counts))

    def of_batch(values: Sequence[int]) -> Longs:
        return np.repeat(np.array(values, np.int64), counts)

    cursor.check(start < end, "a record is empty")
    timestamp_ms = of_batch([batch.base_timestamp_ms for batch in batches]) + cursor.number()
    is_log_append_time = of_batch([batch.is_log_append_time for batch in batches])
    timestamp_ms = np.where(is_log_append_time, of_batch([batch.max_timestamp_ms for batch in batches]), timestamp_ms)
    horizon_ms = of_batch([NO_HORIZON if (ms := each.delete_horizon_ms) is None else ms for each in batches])
    _check_horizons(cursor, horizon_ms)
    offset = of_batch([batch.base_offset for batch in batches]) + cursor.number()
    _check_offsets(cursor, offset, of_batch([each.base_offset for each in batches]), batches)
    keys, values = cursor.slices(), cursor.slices()
    headers = _headers(cursor)
    cursor.check(cursor.position == cursor.end, "a record is longer than its fields")
    return Columns(data, offset, timestamp_ms, is_log_append_time, horizon_ms, keys, values, headers)


def _bounds(data: bytes, batches: Sequence[Batch], payloads: Sequence[bytes | memoryview]) -> tuple[Longs, Longs]:
    """Where each record begins, behind its length, and where it ends."""
    starts: list[int] = []
    ends: list[int] = []
    position = batch_end = 0
    for index, (batch, payload) in enumerate(zip(batches, payloads, strict=True)):
        batch_end += len(payload)
        for _ in range(batch.record_count):
            length = data[position]
            position += 1
            if length >= 0x80:
                second = data[position]
                if second < 0x80:
                    # Most records have such a length; a call for each of them would cost a sixth of the whole.
                    length += (second << 7) - 0x80
                    position += 1
                else:
                    length, position = _longer(data, length, position)
            position_after = position + (length >> 1)
            if length & 1 or position_after > batch_end:
                raise BrokenRecords(index, "a record reaches beyond its batch")
            starts.append(position)
            ends.append(position_after)
            position = position_after
        if position != batch_end:
            raise BrokenRecords(
                index, f"{batch_end - position} bytes follow its {counted(batch.record_count, 'record')}"
            )
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _longer(data: bytes, first: int, position: int) -> tuple[int, int]:
    """A varint of more than one byte, of which the first is known, before it is unfolded; and the position behind."""
    number, shift = first & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        # The padding behind the data ends any varint; one that is longer than any length is too long by its value.
        if byte < 0x80 or shift > _LONGEST_SHIFT:
            return number, position


def _check_horizons(cursor: _Cursor, horizon_ms: Longs) -> None:
    """A horizon is the broker's own; the timestamps of records are their producers', and may be anything."""
    times_ms = np.where(horizon_ms == NO_HORIZON, 0, horizon_ms)
    is_right = (times_ms <= LARGEST_STORABLE_MS) & (times_ms >= -LARGEST_STORABLE_MS)
    cursor.check(is_right, f"a delete horizon is beyond {LARGEST_STORABLE_MS} ms, which microseconds can't hold")


def _check_offsets(cursor: _Cursor, offset: Longs, base: Longs, batches: Sequence[Batch]) -> None:
    last = np.array([batch.last_offset for batch in batches], np.int64)[cursor.batch]
    cursor.check((offset >= base) & (offset <= last), "a record's offset is outside of its batch")
    rises = np.ones(len(offset), np.bool_)
    rises[1:] = offset[1:] > offset[:-1]
    cursor.check(rises, "the records' offsets do not rise")


def _headers(cursor: _Cursor) -> Headers | None:
    """All headers: the first of each record that has one, then the second of each that has two, and so on, sorted."""
    count = cursor.number()
    cursor.check((count >= 0) & (2 * count <= cursor.end - cursor.position), "the number of headers is impossible")
    most = int(count.max(initial=0))
    if most == 0:
        return None
    records, found = [], []
    for rank in range(most):
        chosen = np.flatnonzero(count > rank)
        some = cursor.at(chosen)
        keys = some.slices()
        some.check(~keys.is_null, "a header has no key")
        found.append((keys, some.slices()))
        cursor.position[chosen] = some.position
        records.append(chosen)
    order = np.argsort(np.concatenate(records), kind="stable")
    return Headers(count, _sorted([keys for keys, _ in found], order), _sorted([values for _, values in found], order))


def _sorted(parts: Sequence[Slices], order: npt.NDArray[np.intp]) -> Slices:
    return Slices(
        np.concatenate([part.start for part in parts])[order],
        np.concatenate([part.end for part in parts])[order],
        np.concatenate([part.is_null for part in parts])[order],
    )


def first_key(payload: bytes | memoryview) -> bytes | None:
    """The key of a batch's first record, without any column: control batches are many and hold one record each.

    Raises:
        BrokenRecords: the record is cut off.
    """
    data = bytes(payload)
    position, length = 0, 0
    try:
        # The record's length; behind its attributes the timestamp's and the offset's delta and the key's length.
        for place in range(4):
            length, position = _longer(data, 0, position) if data[position] >= 0x80 else (data[position], position + 1)
            position += place == 0
    except IndexError:
        raise BrokenRecords(0, "a control record is cut off") from None
    if length & 1:
        return None
    return data[position : position + (length >> 1)]
