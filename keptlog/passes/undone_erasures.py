"""Which open erasures an adoption undoes: nothing would remove the records of their keys that are there then.

dropped here    the records were dropped, and files that begin below the bound are adopted
tombstones      one was acknowledged, and would be no more
or they have gone, once they had done their work, and values below them would be back
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from keptlog.errors import LogCorrupt
from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ErasureWay
from keptlog.log.segment import Segment
from keptlog.storage.files import Files
from keptlog.storage.segment_reader import read_row_groups

if TYPE_CHECKING:
    from keptlog.table.changes.repair import RepairPlan

Offsets = npt.NDArray[np.int64]


def undone_erasures(
    erasures: Iterable[Erasure], plan: RepairPlan, back: Mapping[int, int], files: Files
) -> tuple[str, ...]:
    """Ids of those that are open; ``back`` is where segments that were not acknowledged begin, by partition."""
    return tuple(each.id for each in erasures if each.is_open and _is_undone(each, plan, back, files))


def reaches_into(erasure: Erasure, back: Mapping[int, int]) -> bool:
    """Whether segments that begin there, by partition, begin below a bound of it."""
    return any(each.end_offset > back.get(each.partition, each.end_offset) for each in erasure.bounds)


def tombstones_in(files: Files, segment: Segment) -> Offsets:
    """Offsets of a segment's tombstones."""
    return _keyed_offsets(files, segment, have_values=False)


def _keyed_offsets(files: Files, segment: Segment, *, have_values: bool) -> Offsets:
    found = [np.array([], np.int64)]
    for table in read_row_groups(files, segment, ["offset", "key", "value"]):
        value = table["value"].is_valid() if have_values else table["value"].is_null()
        found.append(table["offset"].filter(pc.and_(table["key"].is_valid(), value)).to_numpy())
    return np.concatenate(found)


def _is_undone(erasure: Erasure, plan: RepairPlan, back: Mapping[int, int], files: Files) -> bool:
    is_compacted = erasure.has_reached(ErasureState.COMPACTED)
    if erasure.way == ErasureWay.HERE:
        return is_compacted and reaches_into(erasure, back)
    bounds = [each for each in erasure.bounds if each.has_tombstones]
    if any(_is_given_up(each, plan) for each in bounds):
        return True
    return is_compacted and reaches_into(erasure, back) and any(_is_back(each, plan, files) for each in bounds)


def _is_given_up(bound: ErasureBound, plan: RepairPlan) -> bool:
    return any(
        bound.partition == gone.partition
        and bound.base_offset <= gone.last_offset
        and bound.end_offset > gone.first_offset
        for gone in plan.given_up
    )


def _is_back(bound: ErasureBound, plan: RepairPlan, files: Files) -> bool:
    """Whether values below the tombstones would be there that were not, and tombstones would not."""
    live = [
        segment for log in plan.logs if log.topic_partition.partition == bound.partition for segment in log.segments
    ]
    near = [each for each in live if each.base_offset < bound.end_offset and each.last_offset >= bound.base_offset]
    tombstones = {offset for segment in near for offset in tombstones_in(files, segment).tolist()}
    if tombstones.issuperset(range(bound.base_offset, bound.end_offset)):
        return False
    acknowledged = (plan.acknowledged or {}).get(bound.partition, ())
    had = _values_below(bound, files, _without(acknowledged, live), may_be_gone=True)
    return bool(_values_below(bound, files, _without(live, acknowledged)) - had)


def _without(segments: Sequence[Segment], others: Sequence[Segment]) -> list[Segment]:
    paths = {segment.path for segment in others}
    return [segment for segment in segments if segment.path not in paths]


def _values_below(
    bound: ErasureBound, files: Files, segments: Sequence[Segment], *, may_be_gone: bool = False
) -> set[int]:
    """Offsets of records with key and value."""
    found: set[int] = set()
    for segment in segments:
        if segment.base_offset < bound.base_offset:
            try:
                offsets = _keyed_offsets(files, segment, have_values=True)
            except (LogCorrupt, FileNotFoundError):
                if not may_be_gone:
                    raise
                continue
            found.update(offset for offset in offsets.tolist() if offset < bound.base_offset)
    return found
