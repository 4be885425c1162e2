"""The version of every record, and the latest of every key by it: ``keptlog.log.strategy``, a column at a time.

By offset there is no version column at all. By timestamp or by header there is one, null for a record without a
version, and the order of two records of a key is (has a version, version, offset).

Headers are a list a record, and the last one of the topic's name counts. They are flattened, those of that name
found, and of these the ones that no other of the same record follows:

    record   headers                flattened, named v      last of its record    version
    0        v=1, x=7               0: v=1                  0: v=1                1
    1        -                                                                    null
    2        v=1, v=2               2: v=1   2: v=2         2: v=2                2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.words.units import LONG_MAX
from keptlog.storage import keys
from keptlog.storage.keys import grouped_by_key, key_bytes, without_fixed_length
from keptlog.storage.schema import US_PER_MS

_LONG_BYTES = 8
_END_BYTES = 4
"""Of the number that says where a value ends, in Arrow's ``binary``."""
_NO_LENGTH = -1
_Numbers = npt.NDArray[np.int64]
_FEW_RECORDS, _FEW_KEYS_BYTES = 50_000, 2**24
"""Of so many records the latest are found without a stream."""
_KEYS_AND_OFFSETS = pa.schema([("key", pa.binary()), ("offset", pa.int64())])


def version_columns(strategy: Strategy) -> tuple[str, ...]:
    """What has to be read of a segment to know its records' versions."""
    match strategy.kind:
        case StrategyKind.OFFSET:
            return ()
        case StrategyKind.TIMESTAMP:
            return ("timestamp",)
        case StrategyKind.HEADER:
            return ("headers",)
        case untaught:
            assert_never(untaught)


def with_versions(table: pa.Table, strategy: Strategy) -> pa.Table:
    """The table with the columns ``version`` (int64) and ``is_malformed``: the header is there, but no version in it.

    The strategy must have versions, and the table ``version_columns``: ``timestamp`` (timestamp in us, UTC) or
    ``headers`` (list of key and value), neither null, one row a record. ``version`` is null for a record without one,
    by timestamp in ms and never null; ``is_malformed`` (bool) is never null.

    Raises:
        AssertionError: nobody has taught this module where a strategy's versions are.
    """
    match strategy.kind:
        case StrategyKind.TIMESTAMP:
            times_us = table["timestamp"].cast(pa.int64()).to_numpy()
            versions = pa.array(times_us // US_PER_MS, pa.int64())
            is_malformed = pa.array(np.zeros(len(versions), dtype=bool))
        case StrategyKind.HEADER:
            headers = table["headers"]
            whole = headers.chunk(0) if headers.num_chunks == 1 else headers.combine_chunks()
            versions, is_malformed = _header_versions(whole, strategy.header)
        case StrategyKind.OFFSET:
            raise AssertionError("records that are compared by offset have no versions")
        case untaught:
            assert_never(untaught)
    return table.append_column("version", versions).append_column("is_malformed", is_malformed)


def _header_versions(headers: pa.ListArray, name: str) -> tuple[pa.Array, pa.Array]:
    """``version`` and ``is_malformed`` of ``len(headers)`` records, as the module head shows.

    Three lengths follow each other, and an array of each says which of the one before it stays:

        is_named     of all headers of all records: those of this name
        is_last      of these: those which no other of the same record follows
        is_long      of these: those which hold eight bytes

    ``records`` are rows of the table; from ``is_last`` on each is there once, so that versions are put by them. Mostly
    all of them stay, and then nothing is copied.
    """
    entries = pc.list_flatten(headers)
    is_named = pc.equal(pc.struct_field(entries, "key"), name)
    values, parents = pc.struct_field(entries, "value"), pc.list_parent_indices(headers)
    if not pc.all(is_named).as_py():
        values, parents = values.filter(is_named), parents.filter(is_named)
    # For each entry of that name the record it belongs to (int64, rising): where the next one differs, it is the last.
    records = parents.to_numpy()
    is_last = np.append(records[1:] != records[:-1], values=True)[: len(records)]
    if not is_last.all():
        records, values = records[is_last], values.filter(pa.array(is_last))
    is_long = _lengths(values) == _LONG_BYTES
    is_malformed = np.zeros(len(headers), dtype=bool)
    if len(values) == len(headers) and is_long.all():
        return pa.array(_longs(values)), pa.array(is_malformed)
    with_long, longs = records[is_long], _longs(values.filter(pa.array(is_long)))
    versions, has_none = np.zeros(len(headers), dtype=np.int64), np.ones(len(headers), dtype=bool)
    versions[with_long], has_none[with_long] = longs, False
    is_malformed[records] = has_none[records]
    return pa.array(versions, mask=has_none), pa.array(is_malformed)


def _lengths(values: pa.BinaryArray) -> _Numbers:
    """How many bytes each has; -1 for null."""
    lengths: _Numbers = pc.fill_null(pc.binary_length(values), _NO_LENGTH).to_numpy()
    return lengths


def _longs(values: pa.BinaryArray) -> _Numbers:
    """Big-endian numbers of eight bytes, none null: they lie behind each other, and are read there."""
    if not len(values):
        return np.empty(0, dtype=np.int64)
    _, ends, content = values.buffers()
    begin = np.frombuffer(ends, np.int32, 1, values.offset * _END_BYTES)[0]
    return np.frombuffer(content, ">i8", len(values), int(begin)).astype(np.int64)


def ranks(records: pa.Table) -> pa.ChunkedArray:
    """A number (int64) for each record, higher the later it is by its strategy; those of a key's records differ.

    ``records`` has ``offset``, and ``version`` (null for none) if the strategy has versions; neither need rise. Without
    versions an offset is a rank. With them a rank is the two packed into one number (``_Packing``) or, where these span
    too much for that, the record's place among all of them, 0 to n - 1:

        version     7   -   9   7
        offset      2   3   0   1
        in_order    1   3   0   2       rows from the lowest: no version, then 7 at 1, 7 at 2, 9
        rank        2   0   3   1       the place of each row in that order: ``in_order`` turned round
    """
    if "version" not in records.column_names:
        return records["offset"]
    packing = _Packing.of(records)
    return pa.chunked_array([packing.packed(records) if packing else _places(records)])


def latest_of_each_key(tables: Sequence[pa.Table]) -> pa.Table:
    """Of every key its latest record: a row a key, in any order.

    The tables, of which there is at least one, have ``key`` (binary), ``offset`` (int64) and, with versions,
    ``version`` (int64, null for none), and so has what comes back. Their order does not matter. Records without a key
    are passed over.
    """
    if "version" not in tables[0].column_names:
        return latest_by_offset(tables)
    records = _with_key(pa.concat_tables(tables))
    packing = _Packing.of(records)
    rank = packing.packed(records) if packing else _places(records)
    highest = grouped_by_key(pa.table({"key": records["key"], "rank": rank}), [("rank", "max")])
    rank_max = highest["rank_max"].to_numpy()
    if packing:
        offsets, versions = packing.unpacked(rank_max)
        return pa.table({"key": highest["key"], "offset": offsets, "version": versions})
    # Places are 0 to n - 1, each once, so they can be turned round into rows.
    row_at = np.empty(len(rank), dtype=np.int64)
    row_at[rank] = np.arange(len(rank))
    rest = records.select(["offset", "version"]).take(pa.array(row_at[rank_max]))
    return pa.table({"key": highest["key"], "offset": rest["offset"], "version": rest["version"]})


@dataclass(frozen=True, slots=True)
class _Packing:
    """Version and offset as one number, in the order of the two: to sort records that come in any order costs 30 times.

        number = level * width + offset - lowest offset         the level of a version is 1 and more, that of none 0

    As long as they span less than 63 bits together: a year of milliseconds and 250 million offsets do.
    """

    lowest_version: int
    lowest_offset: int
    width: int
    """How many offsets there are from the lowest to the highest."""

    @classmethod
    def of(cls, records: pa.Table) -> _Packing | None:
        """That of records with ``offset`` and ``version``; null if these span too much."""
        offsets, versions = (pc.min_max(records[name]).as_py() for name in ("offset", "version"))
        if offsets["min"] is None or versions["min"] is None:
            # There is no record, or none with a version.
            lowest, levels = 0, 1
        else:
            lowest, levels = versions["min"], versions["max"] - versions["min"] + 2
        width = (offsets["max"] or 0) - (offsets["min"] or 0) + 1
        return cls(lowest, offsets["min"] or 0, width) if levels * width <= LONG_MAX else None

    def packed(self, records: pa.Table) -> _Numbers:
        """A number for each of these records, of which this is the packing."""
        offsets, versions = records["offset"].to_numpy(), records["version"]
        levels = pc.fill_null(versions, self.lowest_version).to_numpy() - self.lowest_version + 1
        if versions.null_count:
            levels *= pc.is_valid(versions).to_numpy()
        numbers: _Numbers = levels * self.width + (offsets - self.lowest_offset)
        return numbers

    def unpacked(self, numbers: _Numbers) -> tuple[pa.Array, pa.Array]:
        """The offsets, and the versions, null for none, that numbers were packed from."""
        levels, offsets = np.divmod(numbers, self.width)
        versions = levels - 1 + self.lowest_version
        return pa.array(offsets + self.lowest_offset), pa.array(versions, mask=levels == 0)


def _places(records: pa.Table) -> _Numbers:
    versions = records["version"]
    filled = pc.fill_null(versions, 0).to_numpy()
    # lexsort sorts by its last key first: has a version, then the version, then the offset.
    in_order = np.lexsort((records["offset"].to_numpy(), filled, pc.is_valid(versions).to_numpy()))
    places = np.empty(len(in_order), dtype=np.int64)
    places[in_order] = np.arange(len(in_order))
    return places


def latest_by_offset(tables: Iterable[pa.Table]) -> pa.Table:
    """Of every key its latest record (``key``, ``offset``), where records have no versions, but as a stream.

    Each table is read when its turn comes, and let go of once its keys are hashed: memory is that of distinct keys. One
    stream may take a lot of keys (``keys``); what is behind it is a stream of its own, and the two are grouped. Few
    records are not worth a stream, which takes a millisecond to be set up.
    """
    read: list[pa.Table] = []
    read_records, read_bytes = 0, 0
    keyed = filter(len, map(_with_key, tables))
    for records in keyed:
        read.append(records)
        read_records, read_bytes = read_records + len(records), read_bytes + key_bytes(records["key"])
        if read_records > _FEW_RECORDS or read_bytes > _FEW_KEYS_BYTES:
            return _latest_of_stream(chain(read, keyed))
    return _latest_of_few(read) if read else _KEYS_AND_OFFSETS.empty_table()


def _latest_of_few(tables: Sequence[pa.Table]) -> pa.Table:
    records = pa.concat_tables(tables)
    distinct, places = keys.numbered(records["key"])
    highest = np.full(len(distinct), -1, np.int64)
    np.maximum.at(highest, places, records["offset"].to_numpy())
    return pa.table([distinct, highest], schema=_KEYS_AND_OFFSETS)


def _latest_of_stream(tables: Iterable[pa.Table]) -> pa.Table:
    latest = _KEYS_AND_OFFSETS.empty_table()
    for lot, of_lot in groupby(tables, _Lots()):
        hashed = _hashed((batch for records in of_lot for batch in records.to_batches()), lot.length)
        if len(latest):
            highest = grouped_by_key(pa.concat_tables([latest, hashed]), [("offset", "max")])
            hashed = pa.table({"key": highest["key"], "offset": highest["offset_max"]})
        latest = hashed
    return latest


@dataclass(frozen=True, slots=True)
class _Lot:
    """What goes into one hash table: ``length`` is that of all its keys, in bytes, null where they may differ."""

    number: int
    length: int | None


@dataclass
class _Lots:
    """Says of each of the tables, in their order, to which lot it belongs.

    A lot ends when it is large, and once where a key of another length comes: from there on lengths may differ.
    """

    _lot: _Lot | None = None
    _lot_bytes: int = 0

    def __call__(self, records: pa.Table) -> _Lot:
        length = keys.fixed_length(records["key"])
        if self._lot is None:
            self._lot = _Lot(0, length)
        elif self._lot_bytes >= keys.MOST_KEY_BYTES or self._lot.length not in (length, None):
            same = length if length == self._lot.length else None
            self._lot, self._lot_bytes = _Lot(self._lot.number + 1, same), 0
        self._lot_bytes += key_bytes(records["key"])
        return self._lot


def _hashed(batches: Iterator[pa.RecordBatch], length: int | None) -> pa.Table:
    from pyarrow import acero  # noqa: PLC0415  # a fifth of a second, and only workers get here

    # Arrow asks for the batches in a thread for reading, and whoever reads a file for them needs another one.
    pa.set_io_thread_count(max(2, pa.io_thread_count()))
    schema = _KEYS_AND_OFFSETS.set(0, pa.field("key", pa.binary(length))) if length else _KEYS_AND_OFFSETS
    records = pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches))
    source = acero.Declaration("record_batch_reader_source", acero.RecordBatchReaderSourceNodeOptions(records))
    highest = acero.AggregateNodeOptions([("offset", "hash_max", None, "offset")], keys=["key"])
    of_keys = acero.Declaration("aggregate", highest, inputs=[source])
    latest = of_keys.to_table(use_threads=False).select(_KEYS_AND_OFFSETS.names)
    return without_fixed_length(latest) if length else latest


def _with_key(records: pa.Table) -> pa.Table:
    return records.filter(pc.field("key").is_valid()) if records["key"].null_count else records
