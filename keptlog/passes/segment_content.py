"""What one segment's file really holds, as far as ``verify`` asks: offsets, and which records have a delete horizon.

Whether a record is a tombstone its value tells, and values are most of a file. So they are read only of a row group
that has tombstones and other records, and then only for which of them are null. Of all others the file's statistics
tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keptlog.log.sections import appended_from
from keptlog.log.words.counted import counted

if TYPE_CHECKING:
    from keptlog.log.sections import Sections
    from keptlog.log.segment import Log
    from keptlog.storage.segment_reader import SegmentFile

_Offsets = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


@dataclass
class Some:
    """Some records: how many, and where the first lies."""

    count: int = 0
    first_offset: int = -1

    def add(self, offsets: _Offsets) -> None:
        if offsets.size and not self.count:
            self.first_offset = int(offsets[0])
        self.count += int(offsets.size)

    def told(self, kind: str, has: str) -> str:
        """How many of a kind there are, what they have, and where."""
        where = "at offset" if self.count == 1 else "the first at offset"
        return f"{counted(self.count, kind)} {has}, {where} {self.first_offset}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is asked of the records of a log, by their offsets."""

    log_start_offset: int
    first_dirty_offset: int
    appended_from: int
    """From here on the log is as it was appended."""

    @classmethod
    def of(cls, log: Log, sections: Sections) -> Bounds:
        return cls(log.log_start_offset, sections.first_dirty_offset, appended_from(log, sections))

    def are_clean(self, offsets: _Offsets) -> _Mask:
        return np.asarray((offsets >= self.log_start_offset) & (offsets < self.first_dirty_offset))


@dataclass
class SegmentContent:
    """What one segment's file really holds."""

    records: int = 0
    first_offset: int = -1
    last_offset: int = -1
    rises: bool = True
    """Whether every offset is above the one before, that of the segment before included."""
    tombstones: int = 0
    unkeyed: Some = field(default_factory=Some)
    """Clean records without a key."""
    unstamped: Some = field(default_factory=Some)
    """Clean tombstones without a delete horizon."""
    stamped_values: Some = field(default_factory=Some)
    """Clean values with a delete horizon."""
    counted_tombstones: int = 0
    """Clean ones that were only counted, for values were not to be read."""
    counted_horizons: int = 0
    """Delete horizons of the same row groups."""
    is_only_counted: bool = False
    """Whether there are such row groups."""
    dirty_records: int = 0
    """From where on the log is as it was appended, which may be inside of a segment."""
    dirty_stamped: int = 0


def content_of(opened: SegmentFile, bounds: Bounds, last_offset: int, *, with_values: bool) -> SegmentContent:
    """Walk one segment, which comes behind ``last_offset``."""
    found = SegmentContent(last_offset=last_offset)
    for number in range(len(opened.row_groups)):
        table = opened.read(number, ["offset", "delete_horizon"])
        offsets, is_stamped = table["offset"].to_numpy(), table["delete_horizon"].is_valid().to_numpy()
        if found.records == 0:
            found.first_offset = int(offsets[0])
        found.rises &= bool(offsets[0] > found.last_offset) and bool((offsets[1:] > offsets[:-1]).all())
        found.last_offset = int(offsets[-1])
        found.records += table.num_rows
        found.tombstones += opened.null_count(number, "value")
        is_dirty = offsets >= bounds.appended_from
        found.dirty_records += int(is_dirty.sum())
        found.dirty_stamped += int((is_stamped & is_dirty).sum())
        row_group = _RowGroup(opened, number, offsets, is_stamped)
        _look_at_clean(found, row_group, bounds.are_clean(offsets), with_values=with_values)
    return found


@dataclass(frozen=True)
class _RowGroup:
    opened: SegmentFile
    number: int
    offsets: _Offsets
    is_stamped: _Mask

    def nulls_by_statistics(self, column: str) -> _Mask | None:
        """Which records have no value in a column, if how many there are says it: none or all."""
        count = self.opened.null_count(self.number, column)
        return np.full(self.offsets.size, count > 0) if count in {0, self.offsets.size} else None

    def nulls(self, column: str) -> _Mask:
        known = self.nulls_by_statistics(column)
        if known is not None:
            return known
        table = self.opened.read_for_rewrite(self.number, ["offset", column])
        return np.asarray(table[column].is_null().to_numpy())


def _look_at_clean(found: SegmentContent, row_group: _RowGroup, is_clean: _Mask, *, with_values: bool) -> None:
    """Look at the records of the clean section among those of a row group."""
    if not is_clean.any():
        return
    offsets, is_stamped = row_group.offsets, row_group.is_stamped
    found.unkeyed.add(offsets[row_group.nulls("key") & is_clean])
    if not with_values and row_group.nulls_by_statistics("value") is None:
        found.is_only_counted = True
        if is_clean.all():
            found.counted_tombstones += row_group.opened.null_count(row_group.number, "value")
            found.counted_horizons += int(is_stamped.sum())
        return
    is_tombstone = row_group.nulls("value")
    found.unstamped.add(offsets[is_tombstone & ~is_stamped & is_clean])
    found.stamped_values.add(offsets[is_stamped & ~is_tombstone & is_clean])
