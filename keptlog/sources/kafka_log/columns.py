"""Records that were found, as positions in the bytes that hold them, and the table that is made of them.

Keys and values are never touched one by one. The bytes between two positions are an element of an Arrow array that lies
over the whole buffer, and Arrow's ``take`` copies the wanted elements out of it:

    buffer        ..kkkk...vvvvvvv...
    cuts            ^   ^  ^      ^        elements: key 0, gap, value 0, gap, key 1, ...
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from keptlog.storage.schema import LARGEST_STORABLE_MS, SCHEMA, US_PER_MS

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NO_HORIZON = -(2**63)

_HEADERS = SCHEMA.field("headers").type


@dataclass(frozen=True, slots=True)
class Slices:
    """Where in the buffer each of some byte strings lies, in rising order; where it is null, start and end are one."""

    start: Longs
    end: Longs
    is_null: Flags

    def of(self, chosen: Flags) -> Slices:
        """Some of them."""
        return Slices(self.start[chosen], self.end[chosen], self.is_null[chosen])


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers of all records, in their order; ``count`` has how many of them each record has."""

    count: Longs
    keys: Slices
    values: Slices

    def of(self, chosen: Flags) -> Headers:
        """Those of some of the records."""
        of_chosen = np.repeat(chosen, self.count)
        return Headers(self.count[chosen], self.keys.of(of_chosen), self.values.of(of_chosen))


@dataclass(frozen=True, slots=True)
class Columns:
    """Records, by column. ``delete_horizon_ms`` is that of the record's batch, ``NO_HORIZON`` if it has none."""

    data: bytes
    offset: Longs
    timestamp_ms: Longs
    timestamp_type: Longs
    delete_horizon_ms: Longs
    keys: Slices
    values: Slices
    headers: Headers | None = None

    def table(self, partition: int) -> pa.Table:
        """A table of ``SCHEMA``.

        Raises:
            pa.ArrowInvalid: a header's key is not UTF-8.
        """
        keys, values = _pairs(self.data, self.keys, self.values)
        # A batch's horizon is about its tombstones; its other records only share the batch with them.
        has_no_horizon = (self.delete_horizon_ms == NO_HORIZON) | ~self.values.is_null
        columns = [
            pa.array(np.full(len(self.offset), partition, np.int32)),
            pa.array(self.offset),
            _times(self.timestamp_ms),
            pa.array(self.timestamp_type.astype(np.int32)),
            keys,
            values,
            self._headers(),
            _times(np.where(has_no_horizon, 0, self.delete_horizon_ms), has_no_horizon),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def of(self, chosen: Flags) -> Columns:
        """Some of the records."""
        return Columns(
            self.data,
            self.offset[chosen],
            self.timestamp_ms[chosen],
            self.timestamp_type[chosen],
            self.delete_horizon_ms[chosen],
            self.keys.of(chosen),
            self.values.of(chosen),
            self.headers.of(chosen) if self.headers else None,
        )

    def keyed(self) -> pa.Table:
        """Offsets and keys, and which of the records are tombstones. Any record has these, whatever else it has."""
        keys, _ = _pairs(self.data, self.keys, self.values)
        return pa.table({"offset": self.offset, "key": keys, "is_tombstone": pa.array(self.values.is_null)})

    def have_storable_times(self) -> Flags:
        """Which records have a timestamp that microseconds can hold; a producer that gives nanoseconds has none."""
        return (self.timestamp_ms <= LARGEST_STORABLE_MS) & (self.timestamp_ms >= -LARGEST_STORABLE_MS)

    def have_text_names(self) -> Flags:
        """Which records have no header whose name is not UTF-8. Slow: each name is looked at."""
        found = np.ones(len(self.offset), np.bool_)
        if self.headers is not None:
            records = np.repeat(np.arange(len(self.offset)), self.headers.count)
            keys = self.headers.keys
            for record, start, end in zip(records, keys.start, keys.end, strict=True):
                try:
                    self.data[start:end].decode()
                except UnicodeDecodeError:
                    found[record] = False
        return found

    def _headers(self) -> pa.Array:
        if self.headers is None:
            counts, pairs = np.zeros(len(self.offset), np.int64), pa.array([], _HEADERS.value_type)
        else:
            counts = self.headers.count
            keys, values = _pairs(self.data, self.headers.keys, self.headers.values)
            fields = list(_HEADERS.value_type)
            pairs = pa.StructArray.from_arrays([keys.cast(pa.string()), values], fields=fields)
        starts = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=starts[1:])
        return pa.ListArray.from_arrays(pa.array(starts), pairs, type=_HEADERS)


def _pairs(data: bytes, first: Slices, second: Slices) -> tuple[pa.Array, pa.Array]:
    """The byte strings at two columns of positions, which take turns in the buffer."""
    count = len(first.start)
    if count == 0:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    cuts = np.stack([first.start, first.end, second.start, second.end], axis=1).ravel().astype(np.int32)
    elements = pa.Array.from_buffers(pa.binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(data)])
    places = np.arange(count, dtype=np.int64) * 4
    return (
        elements.take(pa.array(places, mask=first.is_null)),
        elements.take(pa.array(places + 2, mask=second.is_null)),
    )


def _times(times_ms: Longs, is_null: Flags | None = None) -> pa.Array:
    return pa.array(times_ms * US_PER_MS, mask=is_null).cast(SCHEMA.field("timestamp").type)
