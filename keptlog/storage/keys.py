"""Looks keys up, and groups and sorts records by their keys, however many bytes these have together.

Arrow's binary arrays end at 2 GiB, and so do its hash tables: beyond, a lookup or a sort raises, and a group-by wraps
its offsets round, so that what it gives can't be read. This happens to maps that fit into memory: 40 million keys of 60
bytes. So a table of keys is a chunked array, of which no chunk is that large, and what goes into one hash table is a
lot of at most ``MOST_KEY_BYTES``:

    looked up    the keys that are looked among, cut by rows; a key is in one lot at most
    grouped      the records, cut by a hash of their keys; all records of a key are in one lot
    sorted       the records in their new order, cut by rows

Nearly always there is one lot, which costs nothing.

Many keys are looked up by a hash join, which takes half the time of Arrow's lookup table, few by that table, which is
made in less. Keys that all have one length, as numbers with leading zeros, UUIDs and hashes do, are hashed and compared
in two thirds of the time once Arrow is told so. But not those of 8 bytes: see ``_HASHED_AS_NUMBERS``. Those of 16 are
made longer for Arrow's lookup tables: see ``_HASHED_BY_HALVES``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

MOST_KEY_BYTES = 2**30
"""Half of what Arrow takes: what comes on top of a lot, a row group's keys, finds room."""
JOINED_KEYS = 250_000
"""Where so many and more are looked up, or looked among, it is by a join."""
_MOST_FIXED_BYTES = 64
"""Of a key that Arrow is told the length of; longer ones gain nothing."""
_HASHED_AS_NUMBERS = 8
"""Arrow takes fixed keys of so many bytes for numbers, and hashes them by a multiplication. Of those that differ in
their last bytes nearly all have one hash then: 80,000 longs as Kafka's LongSerializer writes them took 5.8 s in place
of 0.02, and 1.25 million records with them more than eight minutes.
"""
_HASHED_BY_HALVES = 16
"""Of keys of so many bytes Arrow's lookup tables (but not its joins) hash each half, and take an xor of the two. Of
those that are two small numbers, as pairs of ids, UUIDs made of them and addresses of IPv6 are, thousands have one hash
then: 131,072 took 9.9 s in place of 0.02. A key with one byte more is hashed as a whole.
"""
_MANY_HALVED = 100
"""So many keys of one hash take longer to be told apart than all are to be copied with one byte more."""
_HASHED_ROWS = 1_000_000
"""Keys that are Python's objects at one time."""
_NOT_FOUND = -1


def key_bytes(keys: pa.ChunkedArray) -> int:
    """How many bytes keys (binary) have together."""
    return int(pc.sum(pc.binary_length(keys)).as_py() or 0)


def fixed_length(*columns: pa.ChunkedArray) -> int | None:
    """How many bytes every key (binary) of these columns has, where it is worth telling Arrow.

    Null if they differ, are long, empty, or taken for numbers, or if there is none.
    """
    ends = [pc.min_max(pc.binary_length(keys)).as_py() for keys in columns]
    lengths = {length for end in ends for length in (end["min"], end["max"]) if length is not None}
    length = lengths.pop() if len(lengths) == 1 else 0
    return length if 0 < length <= _MOST_FIXED_BYTES and length != _HASHED_AS_NUMBERS else None


def rows_of(keys: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each key (binary) its row in ``among``, or null; ``among`` has no key twice, and none that is null."""
    if key_bytes(among) <= MOST_KEY_BYTES:
        return _rows_in_lot(keys, among)
    found: pa.ChunkedArray = pa.chunked_array([pa.nulls(len(keys), pa.int64())])
    start = 0
    for lot in _lots_by_rows(among):
        rows = pc.add(_rows_in_lot(keys, lot).cast(pa.int64()), start)
        found = pc.coalesce(found, rows)
        start += len(lot)
    return found


def are_among(keys: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.ChunkedArray:
    """A mask: for each key (binary) whether it is in ``among``, as ``rows_of``; no key is not."""
    if _are_few(keys, among) or key_bytes(among) > MOST_KEY_BYTES:
        return pc.is_valid(rows_of(keys, among))
    is_among = np.zeros(len(keys), dtype=bool)
    is_among[_joined(keys, among, ["row"])["row"].to_numpy()] = True
    return pa.chunked_array([pa.array(is_among)])


def _are_few(keys: pa.ChunkedArray, among: pa.ChunkedArray) -> bool:
    return len(keys) + len(among) < JOINED_KEYS


def _rows_in_lot(keys: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.ChunkedArray:
    if _are_few(keys, among):
        are_lengthened = _are_hashed_by_halves(among) and _have_room(keys)
        return pc.index_in(*(_lengthened(each) if are_lengthened else each for each in (keys, among)))
    joined = _joined(keys, among, ["row", "found"])
    rows = np.full(len(keys), _NOT_FOUND, np.int32)
    rows[joined["row"].to_numpy()] = joined["found"].to_numpy()
    return pa.chunked_array([pa.array(rows, mask=rows == _NOT_FOUND)])


def _joined(keys: pa.ChunkedArray, among: pa.ChunkedArray, wanted: list[str]) -> pa.Table:
    """For each key that is in ``among`` its ``row``, and the row where it was ``found`` (int32), in any order."""
    from pyarrow import acero  # noqa: PLC0415  # a fifth of a second, and only workers get here

    length = fixed_length(keys, among)
    given: Any = pa.binary(length) if length else pa.binary()
    sides = [
        pa.table({"key": keys.cast(given), "row": np.arange(len(keys), dtype=np.int32)}),
        pa.table({"key": among.cast(given), "found": np.arange(len(among), dtype=np.int32)}),
    ]
    # Of the second side a hash table is made, which costs more than to look a key up there.
    sides.sort(key=len, reverse=True)
    outputs = [[name for name in side.column_names if name in wanted] for side in sides]
    kind = "inner" if all(outputs) or not outputs[0] else "left semi"
    sources = [acero.Declaration("table_source", acero.TableSourceNodeOptions(side)) for side in sides]
    how = acero.HashJoinNodeOptions(kind, ["key"], ["key"], *outputs)
    return acero.Declaration("hashjoin", how, inputs=sources).to_table(use_threads=False)


def distinct(keys: pa.ChunkedArray) -> pa.Array:
    """Each of the keys (binary) once, without null."""
    if _are_hashed_by_halves(keys):
        return _shortened(pc.unique(_lengthened(keys)).drop_null())
    return pc.unique(keys).drop_null()


def numbered(keys: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Each of the keys (binary, without nulls; they fit one chunk) once, and of each key its place among those."""
    are_lengthened = _are_hashed_by_halves(keys)
    encoded = (_lengthened(keys) if are_lengthened else keys).combine_chunks().dictionary_encode()
    once = _shortened(encoded.dictionary) if are_lengthened else encoded.dictionary
    return once, encoded.indices.to_numpy()


def _are_hashed_by_halves(keys: pa.ChunkedArray) -> bool:
    """Whether so many are that it counts, and they have room to be made longer."""
    lengths = pc.binary_length(keys)
    halved = pc.sum(pc.equal(lengths, _HASHED_BY_HALVES)).as_py() or 0
    return halved >= _MANY_HALVED and _have_room(keys)


def _have_room(keys: pa.ChunkedArray) -> bool:
    """Whether Arrow takes them with one byte more each."""
    return len(keys) + key_bytes(keys) <= MOST_KEY_BYTES


def _lengthened(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(keys, b"", b"\0")


def _shortened(lengthened: pa.Array) -> pa.Array:
    return pc.binary_slice(lengthened, 0, -1)


def grouped_by_key(records: pa.Table, aggregations: Sequence[tuple[str, str]]) -> pa.Table:
    """Arrow's aggregations by the column ``key`` (binary, without nulls): a row a key, in any order."""
    lots = -(-key_bytes(records["key"]) // MOST_KEY_BYTES)
    if lots <= 1:
        return _grouped(records, aggregations)
    lot_of = _hashes(records["key"]) % lots
    return pa.concat_tables(_grouped(records.filter(pa.array(lot_of == lot)), aggregations) for lot in range(lots))


def in_order_of_keys(records: pa.Table) -> pa.Table:
    """The records in the order of their column ``key`` (binary, without nulls)."""
    if key_bytes(records["key"]) <= MOST_KEY_BYTES:
        return records.sort_by("key")
    column = records.schema.get_field_index("key")
    # What Arrow takes rows of is made one chunk first, and only this type has room for that.
    large = records.set_column(column, "key", records["key"].cast(pa.large_binary())).combine_chunks()
    order = pc.sort_indices(large["key"])
    lengths = pc.binary_length(large["key"]).to_numpy()[order.to_numpy()]
    lots = [large.take(order.slice(start, rows)).cast(records.schema) for start, rows in _cuts(lengths)]
    return pa.concat_tables(lots)


def without_fixed_length(records: pa.Table) -> pa.Table:
    """The records with ``key`` as binary, in chunks as long as they were; together the keys have less than 2 GiB.

    Arrow casts a slice by a copy of all that it is a slice of, and its hash tables give their keys in many slices.
    """
    column = records.schema.get_field_index("key")
    fixed = records["key"]
    whole = fixed.combine_chunks().cast(pa.binary())
    ends = np.cumsum([len(chunk) for chunk in fixed.chunks])
    chunks = [whole.slice(end - len(chunk), len(chunk)) for chunk, end in zip(fixed.chunks, ends, strict=True)]
    return records.set_column(column, "key", pa.chunked_array(chunks, pa.binary()))


def _grouped(records: pa.Table, aggregations: Sequence[tuple[str, str]]) -> pa.Table:
    given: Any = list(aggregations)
    if length := fixed_length(records["key"]):
        fixed = records["key"].cast(pa.binary(length))
        records = records.set_column(records.schema.get_field_index("key"), "key", fixed)
    grouped = pa.TableGroupBy(records, ["key"], use_threads=False).aggregate(given)
    return without_fixed_length(grouped) if length else grouped


def _lots_by_rows(keys: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The keys in their order, cut behind each ``MOST_KEY_BYTES``."""
    for start, rows in _cuts(pc.binary_length(keys).to_numpy()):
        yield keys.slice(start, rows)


def _cuts(lengths: npt.NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """The first row of each lot of keys of these lengths, and how many rows it has: one at least."""
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + MOST_KEY_BYTES, side="right")))
        yield start, stop - start
        start = stop


def _hashes(keys: pa.ChunkedArray) -> npt.NDArray[np.uint32]:
    hashes = np.empty(len(keys), np.uint32)
    for start in range(0, len(keys), _HASHED_ROWS):
        some = keys.slice(start, _HASHED_ROWS).to_pylist()
        hashes[start : start + len(some)] = np.fromiter(map(zlib.crc32, some), np.uint32, len(some))
    return hashes
