"""Which record a topic does not take, known from its settings before anything is sent.

A broker refuses a record long after it was sent, and what was committed before stays there. So the log is looked at
first: a record that has no key where the topic is compacted, one that is too large, one whose timestamp is too far off.

A record is too large if it is so in a batch of its own, which is the smallest that there is for it:

    batch's header 61    length  attributes 1  time delta 1  offset delta 1  length key  length value  count headers

Whether a batch that is compressed is too large only the broker knows; it says so later (``failures``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import InvalidRecord
from keptlog.log.words.units import LONG_MAX
from keptlog.sinks.kafka_broker.target import Target

COLUMNS = ("offset", "key", "value", "timestamp", "headers")
"""What is to be read of a record to judge it."""
_BATCH_HEADER_BYTES = 61
_FIXED_BYTES = 3
_VARINT_STEPS = 2 ** np.array([6, 13, 20, 27], np.int64)
"""From each of them on a length takes one byte more."""

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def no_key(where: str, target: Target) -> InvalidRecord:
    """For a record without a key; ``where`` says which one."""
    return InvalidRecord(
        f"{where}: it has no key, and {target.name} is compacted: restore to a topic with cleanup.policy=delete"
    )


def too_large(where: str, target: Target) -> InvalidRecord:
    """For a record that is too large."""
    limit = target.batch_limit
    told = f"{limit[1]}={limit[0]}" if limit else "max.message.bytes"
    remedy = _remedy(target, "it", "a larger one")
    return InvalidRecord(f"{where}: it is larger than {told} of {target.name}: {remedy}")


def untimely(where: str, target: Target) -> InvalidRecord:
    """For a record whose timestamp is too far off."""
    names = dict.fromkeys(name for _, name in target.timestamp_limits)
    remedy = _remedy(target, *(("them", "larger ones") if len(names) > 1 else ("it", "a larger one")))
    return InvalidRecord(f"{where}: its timestamp is outside of {' and '.join(names)} of {target.name}: {remedy}")


def _remedy(target: Target, limits: str, larger: str) -> str:
    if target.is_there:
        return f"raise {limits} there, and run this again; it goes on from here"
    return f"there is no topic {target.name} yet: create it with {larger}, and run this again"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What a topic takes, at a time. A limit that nobody knows is none."""

    target: Target
    now_ms: int
    compresses: bool
    """Whether the client does."""

    def refused(self, table: pa.Table) -> tuple[int, Callable[[str, Target], InvalidRecord]] | None:
        """The offset of the first record of ``COLUMNS`` that is not taken, and the error for it; null if all are."""
        limit = self.target.batch_limit
        judged = {
            no_key: self._unkeyed(table),
            too_large: self._oversized(table, limit[0] if limit else LONG_MAX),
            untimely: self._untimely(table["timestamp"], *(limit_ms for limit_ms, _ in self.target.timestamp_limits)),
        }
        found = [(int(np.argmax(wrong)), error) for error, wrong in judged.items() if wrong.any()]
        if not found:
            return None
        row, error = min(found, key=lambda each: each[0])
        return table["offset"][row].as_py(), error

    def _unkeyed(self, table: pa.Table) -> Flags:
        return _flags(table["key"].is_null()) if self.target.is_compacted else np.zeros(table.num_rows, np.bool_)

    def _oversized(self, table: pa.Table, limit_bytes: int) -> Flags:
        if self.compresses:
            return np.zeros(table.num_rows, np.bool_)
        body = _FIXED_BYTES + _sized(table["key"]) + _sized(table["value"]) + _headers(table["headers"])
        is_too_large: Flags = _BATCH_HEADER_BYTES + _varint(body) + body > limit_bytes
        return is_too_large

    def _untimely(self, column: pa.ChunkedArray, before_max_ms: int, after_max_ms: int) -> Flags:
        time_ms: Longs = column.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()).to_numpy()
        age_ms = self.now_ms - time_ms
        is_untimely: Flags = (time_ms >= 0) & ((age_ms > before_max_ms) | (-age_ms > after_max_ms))
        return is_untimely


def _flags(column: pa.ChunkedArray) -> Flags:
    flags: Flags = column.to_numpy()
    return flags


def _varint(length: Longs) -> Longs:
    """How many bytes a length takes itself."""
    size_bytes: Longs = np.searchsorted(_VARINT_STEPS, length, side="right").astype(np.int64) + 1
    return size_bytes


def _sized(column: pa.ChunkedArray | pa.Array) -> Longs:
    """How many bytes a key or value takes with its length; null is a length of -1."""
    length: Longs = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return length + _varint(length)


def _headers(column: pa.ChunkedArray) -> Longs:
    """How many bytes a record's headers take with their number."""
    count: Longs = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    flat = pc.list_flatten(column)
    if isinstance(flat, pa.ChunkedArray):
        flat = flat.combine_chunks()
    each = _sized(flat.field("key")) + _sized(flat.field("value")) if len(flat) else np.zeros(0, np.int64)
    ends = np.cumsum(count)
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
    size_bytes: Longs = _varint(count) + total[ends] - total[ends - count]
    return size_bytes
