"""Finds the records of some keys by the keyed hashes of these: no key has to be known, and none is told.

    keys in a row group    a  b  a  c  a        each of them once:     a  b  c
    their hashes                                f0 17 9c               wanted: 9c, 44
    found                           c           9c is the first of those that are wanted: row 3, which 0

A hash costs a microsecond, so each key of a row group is hashed once. To remember keys from one row group to the next
costs as much as it saves. What is found is hashed again by the plain function, so that nothing is ever taken for a key
that it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import InvariantViolated
from keptlog.log.search import KeyHits
from keptlog.storage.key_hash import KeyHasher
from keptlog.storage.keys import distinct, rows_of
from keptlog.storage.segment_reader import SegmentFile

FOUND_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("which", pa.int64()),
        ("offset", pa.int64()),
        ("partition", pa.int32()),
        ("has_value", pa.bool_()),
    ]
)
"""A row a record: where it stands in its row group, and which of the wanted hashes its key has."""


@dataclass(frozen=True)
class WantedKeys:
    """The hashes of the keys that are looked for, and what hashes others like them."""

    hasher: KeyHasher
    key_hashes: tuple[bytes, ...]
    """Each once; found keys are told by their place in it."""


@dataclass(frozen=True)
class KeyFinder:
    """Looks for wanted keys in one column after another."""

    wanted: WantedKeys
    _number_of: dict[bytes, int] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._number_of.update({key_hash: number for number, key_hash in enumerate(self.wanted.key_hashes)})

    def which(self, keys: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """Of each key (binary) the number of its hash among the wanted ones, or null; null if none of them is wanted.

        Raises:
            InvariantViolated: the two ways to hash a key differ.
        """
        met = distinct(keys).to_pylist()
        number_of = self._number_of
        hashes = self.wanted.hasher.hashes(met)
        found = {key: number_of[key_hash] for key, key_hash in zip(met, hashes, strict=True) if key_hash in number_of}
        for key, number in found.items():
            if self.wanted.hasher.hash(key) != self.wanted.key_hashes[number]:
                raise InvariantViolated("two ways to hash a key differ; nothing was changed, please report this")
        if not found:
            return None
        rows = rows_of(keys, pa.chunked_array([list(found)], keys.type))
        return pc.take(pa.array(list(found.values()), pa.int64()), rows)

    def found_in(self, opened: SegmentFile, row_group: int) -> pa.Table:
        """The records of wanted keys in a row group, of ``FOUND_SCHEMA``; of a segment without hits only keys are read.

        What its file has no column for is null; ``has_value`` is then true.
        """
        which = self.which(as_binary(opened.read(row_group, ["key"])["key"]))
        if which is None:
            return FOUND_SCHEMA.empty_table()
        is_found = pc.is_valid(which)
        there = [name for name in ("offset", "partition", "value") if name in opened.schema.names]
        records = opened.read(row_group, there).filter(is_found)
        columns = {"row": pa.array(np.flatnonzero(is_found.to_numpy())), "which": which.filter(is_found)}
        for name in ("offset", "partition"):
            columns[name] = records[name] if name in there else pa.nulls(records.num_rows)
        has_value = records["value"].is_valid() if "value" in there else np.ones(records.num_rows, dtype=bool)
        return pa.table(columns | {"has_value": has_value}).cast(FOUND_SCHEMA)


def as_binary(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of keys as binary: other programs write text, or long arrays.

    Raises:
        ValueError: they are something else.
    """
    kind = keys.type
    if pa.types.is_dictionary(kind):
        return as_binary(keys.cast(kind.value_type))
    if pa.types.is_binary(kind):
        return keys
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return keys.cast(pa.binary())
    raise ValueError(f"its keys are {kind}, not bytes")


def hits_of(tables: Sequence[pa.Table], wanted: WantedKeys) -> list[KeyHits]:
    """Tables of ``FOUND_SCHEMA`` by key and partition, in the order of the wanted hashes."""
    found = pa.concat_tables([FOUND_SCHEMA.empty_table(), *tables])
    if found.num_rows == 0:
        return []
    # One record without an offset may be older than all that have one, so that of such a group none is known.
    every = pc.ScalarAggregateOptions(skip_nulls=False)
    grouped = pa.TableGroupBy(found, ["which", "partition"], use_threads=False).aggregate(
        [("offset", "min", every), ("offset", "max", every), ("row", "count"), ("has_value", "max")]
    )
    return [
        KeyHits(
            key_hash=wanted.key_hashes[row["which"]],
            partition=row["partition"],
            records=row["row_count"],
            lowest_offset=row["offset_min"],
            highest_offset=row["offset_max"],
            has_value=bool(row["has_value_max"]),
        )
        for row in sorted(grouped.to_pylist(), key=lambda row: (row["which"], row["partition"] or 0))
    ]
