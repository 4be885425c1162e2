"""Which open erasures an adoption undoes: nothing would remove the records of their keys that are there then.

dropped here    the records were dropped, and files that begin below the bound are adopted
tombstones      one was acknowledged, and would be no more
or they have gone, once they had done their work, and values below them would be back

How far a request is says nothing of its tombstones: they may have done their work since somebody last looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    adopted = _Adopted(plan, files)
    return tuple(each.id for each in erasures if each.is_open and _is_undone(each, adopted, back))


def reaches_into(erasure: Erasure, back: Mapping[int, int]) -> bool:
    """Whether segments that begin there, by partition, begin below a bound of it."""
    return any(each.end_offset > back.get(each.partition, each.end_offset) for each in erasure.bounds)


def tombstones_in(files: Files, segment: Segment) -> Offsets:
    """Offsets of a segment's tombstones."""
    return _keyed_offsets(files, segment, have_values=False)


def joined(pieces: Sequence[Offsets]) -> Offsets:
    """All of them in one array; there may be none."""
    return np.concatenate(pieces) if pieces else np.array([], np.int64)


def _keyed_offsets(files: Files, segment: Segment, *, have_values: bool) -> Offsets:
    found: list[Offsets] = []
    for table in read_row_groups(files, segment, ["offset", "key", "value"]):
        value = table["value"].is_valid() if have_values else table["value"].is_null()
        found.append(table["offset"].filter(pc.and_(table["key"].is_valid(), value)).to_numpy())
    return joined(found)


def _is_undone(erasure: Erasure, adopted: _Adopted, back: Mapping[int, int]) -> bool:
    reaches = reaches_into(erasure, back)
    if erasure.way == ErasureWay.HERE:
        return erasure.has_reached(ErasureState.COMPACTED) and reaches
    bounds = [each for each in erasure.bounds if each.has_tombstones]
    return any(map(adopted.gives_up, bounds)) or (reaches and any(map(adopted.brings_back, bounds)))


@dataclass(frozen=True)
class _Adopted:
    """The logs as they would be; each file is read once for a question, however many erasures ask."""

    plan: RepairPlan
    files: Files
    _first_back: dict[int, int | None] = field(default_factory=dict)
    """By partition."""
    _tombstones: dict[str, Offsets] = field(default_factory=dict)
    """By segment."""

    def gives_up(self, bound: ErasureBound) -> bool:
        """Whether tombstones that were acknowledged would be none any more."""
        return any(
            bound.partition == gone.partition
            and bound.base_offset <= gone.last_offset
            and bound.end_offset > gone.first_offset
            for gone in self.plan.given_up
        )

    def brings_back(self, bound: ErasureBound) -> bool:
        """Whether values below the tombstones would be there that were not, and tombstones would not."""
        if self._has_all_tombstones(bound):  # asked first: they lie in few files, and values in all
            return False
        number = bound.partition
        if number not in self._first_back:
            self._first_back[number] = self._first_value_back(number)
        first = self._first_back[number]
        return first is not None and first < bound.base_offset

    def _first_value_back(self, partition: int) -> int | None:
        live, acknowledged = self._live(partition), (self.plan.acknowledged or {}).get(partition, ())
        had: list[Offsets] = []
        for segment in _without(acknowledged, live):
            try:
                had.append(_keyed_offsets(self.files, segment, have_values=True))
            except (LogCorrupt, FileNotFoundError):
                continue  # What nobody can read any more may as well be back.
        known = joined(had)
        for segment in _without(live, acknowledged):
            values = np.setdiff1d(_keyed_offsets(self.files, segment, have_values=True), known)
            if values.size:
                return int(values[0])
        return None

    def _has_all_tombstones(self, bound: ErasureBound) -> bool:
        found = 0
        for segment in self._live(bound.partition):
            if segment.base_offset < bound.end_offset and segment.last_offset >= bound.base_offset:
                if segment.path not in self._tombstones:
                    self._tombstones[segment.path] = tombstones_in(self.files, segment)
                offsets = self._tombstones[segment.path]
                found += int(np.count_nonzero((offsets >= bound.base_offset) & (offsets < bound.end_offset)))
        return found >= bound.end_offset - bound.base_offset

    def _live(self, partition: int) -> list[Segment]:
        logs = (each for each in self.plan.logs if each.topic_partition.partition == partition)
        return [segment for log in logs for segment in log.segments]


def _without(segments: Sequence[Segment], others: Sequence[Segment]) -> list[Segment]:
    """By rising offset."""
    paths = {segment.path for segment in others}
    return sorted((each for each in segments if each.path not in paths), key=lambda each: each.base_offset)
