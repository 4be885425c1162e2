"""Which row groups may hold a mapped key: those between whose smallest and largest key there is one.

    row group    keys         mapped: h, p
    0            a .. g       none between them: no record is superseded, and not even its keys are read
    1            h .. n       h
    2            o .. t       p
    3            u .. z       none

It helps where keys come in the order of time, as ids of events and orders do, and new records mostly have new keys, or
those of late. An old key among them costs the row group that has it.

Where keys are in no order, nearly every mapped key lies in every range. A sample of them shows that, for next to
nothing. Only ranges that none of the sample lies in are compared with all mapped keys, and only if they have so many
records that it pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SAMPLED_KEYS = 1_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys of a row group, every one of whose ``records`` has a key: both ends may be among them."""

    smallest: bytes
    largest: bytes
    records: int


def may_hold(ranges: Sequence[KeyRange], keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """For each of these ranges whether one of the keys (binary, no nulls) may lie in it: true where that is not known.

    Keys are compared byte by byte, unsigned, as Parquet compares them for its statistics.
    """
    sample = _each_nth(keys, len(keys) // SAMPLED_KEYS + 1)
    has_one = _have_one(ranges, sample)
    others = np.flatnonzero(~has_one).tolist()
    if len(sample) < len(keys):
        # To compare a key with a few hundred ranges costs as much as to read and look up one.
        is_worth_it = sum(ranges[index].records for index in others) >= len(keys)
        has_one[others] = _have_one([ranges[index] for index in others], keys) if is_worth_it else True
    return has_one


def _each_nth(keys: pa.ChunkedArray, step: int) -> pa.ChunkedArray:
    """The first of the keys, and every so many on: from chunk to chunk, as Arrow's take would make one chunk of all."""
    taken, passed = [], 0
    for chunk in keys.chunks:
        taken.append(chunk.take(pa.array(np.arange(-passed % step, len(chunk), step))))
        passed += len(chunk)
    return pa.chunked_array(taken, pa.binary())


def _have_one(ranges: Sequence[KeyRange], keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """For each range whether one of the keys lies in it: more are at its start or above than are above its end.

    All ends of ranges are put in order, and each key finds its place among them: a key is at an end or above if as many
    ends are at the key or below as are at that end or below.

        ends              a    g    h    n
        key h             3 ends are at h or below: as many as at h, so h is at the start of h .. n or above
                          2 ends are below h: fewer than are below n, so h is not above the end
    """
    ends = pa.array(sorted({end for each in ranges for end in (each.smallest, each.largest)}), pa.binary())
    starts = _places(ends, pa.array([each.smallest for each in ranges], pa.binary()), "right")
    stops = _places(ends, pa.array([each.largest for each in ranges], pa.binary()), "left")
    at_or_below = np.bincount(_places(ends, keys, "right"), minlength=len(ends) + 1)
    below = np.bincount(_places(ends, keys, "left"), minlength=len(ends) + 1)
    not_before = np.cumsum(at_or_below[::-1])[::-1]
    behind = len(keys) - np.cumsum(below)
    return np.asarray(not_before[starts] > behind[stops])


def _places(ends: pa.Array, keys: pa.Array | pa.ChunkedArray, side: str) -> Any:
    """For each key how many ends are below it, or with the side ``right`` at it or below."""
    return pc.search_sorted(ends, keys, side=side).to_numpy().astype(np.int64)
