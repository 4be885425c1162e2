"""Which records of a segment run survive: ``keptlog.log.verdict``, a column at a time, reading as little as it can.

Most segments are judged without their values, many without their keys, some without being opened:

1. **Dirty** segments: a record survives if its offset is one of the map's. No key is read.
2. **Clean** segments: a record is superseded if its key is in the map, for what is mapped is later. No offset is read,
   and nothing of a row group between whose smallest and largest key no mapped one lies (``key_ranges``).
3. Nothing is mapped, but the file metrics know of a tombstone past its horizon: only the horizons are read.
4. The metrics prove that nothing can go: not opened.

Where a segment holds both clean and dirty records, or records beyond the end, a record at another offset than its key's
latest is superseded, which is right for every segment. Where the keys were judged before, by a shuffle
(``key_shuffle``) or because records have versions (``rivals``), there is no map but a list of offsets, and no key is
read at all.

Values are never read here. A tombstone that still lacks its horizon always gets one, so the metrics say enough: its
segment changes, and the stamp is set when the segment is rewritten. Expiry needs the horizon alone, for only tombstones
have one. What was read of a segment is handed on with the verdict, for whoever writes its survivors.

An expire step removes tombstones past their horizon and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.inputs import Between, OpenInputs
from keptlog.kernels.judged_offsets import JudgedOffsets
from keptlog.kernels.key_ranges import KeyRange, may_hold
from keptlog.kernels.offset_map import RECORD_BYTES, OffsetMap, fits_one_lookup, grouped_for_lookup, weight_of
from keptlog.kernels.ways import ChunkJudgement, Latest, Way, due_tombstones, judged_chunk
from keptlog.log.result import Counts, Overrun
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact, has_due_tombstone, overruns_readers

_NOTHING_READ = pa.table({})
_Masks = defaultdict[int, dict[int, pa.ChunkedArray]]
"""By the index of a segment, and then by the number of a row group."""
_COLUMNS = {
    Way.BY_OFFSET: ("offset",),
    Way.BY_KEY: ("key",),
    Way.BY_KEY_AND_OFFSET: ("key", "offset"),
    Way.BY_LIST: ("offset",),
    Way.BY_HORIZON: ("offset", "delete_horizon"),
}
"""What is read for it; horizons too if one may have passed."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A segment run, judged. ``counts`` has all that survive as kept: stamps are counted when they are set."""

    survives: Sequence[pa.ChunkedArray | None]
    """For each segment a mask, one element a record; null for a segment that was not read: every record survives."""
    expired: Sequence[pa.ChunkedArray | None]
    """The same for the tombstones that go by their horizon, where they leave watermarks; null if there are none."""
    read: dict[int, list[pa.Table]]
    """By the index of a segment the columns that were read to judge it, a table a row group, without columns where
    nothing was; empty if a segment run has more records, or longer keys, than one lookup takes."""
    counts: Counts
    winners_found: int
    overrun: tuple[Overrun, ...] = ()
    """Tombstones that go although a reader has not met them, a segment each, in offset order."""

    def loses_records(self, index: int) -> bool:
        """Whether a record of this segment goes."""
        mask = self.survives[index]
        return mask is not None and not pc.all(mask, min_count=0).as_py()


def way_to_judge(step: CleanStep, segment: Segment, latest: Latest) -> Way:
    """How a segment is judged at the least cost."""
    if isinstance(step, Compact):
        if isinstance(latest, JudgedOffsets):
            if latest.has_any_between(segment.base_offset, segment.last_offset):
                return Way.BY_LIST
        elif Between.dirty(step).holds(segment):
            return Way.BY_OFFSET
        elif len(latest) or segment.unkeyed_count:
            is_clean = segment.last_offset < step.first_dirty_offset
            return Way.BY_KEY if is_clean else Way.BY_KEY_AND_OFFSET
    return Way.BY_HORIZON if has_due_tombstone(step, segment) else Way.UNREAD


def judge(inputs: OpenInputs, segments: Sequence[Segment], latest: Latest) -> Judgement:
    """Judge a segment run: neighbouring segments of a step, in offset order.

    Raises:
        StalePlan: a segment is gone.
    """
    step = inputs.step
    by_way: dict[Way, list[int]] = defaultdict(list)
    for index, segment in enumerate(segments):
        by_way[way_to_judge(step, segment, latest)].append(index)
    unread = by_way.pop(Way.UNREAD, [])
    map_weight = latest.weight if isinstance(latest, OffsetMap) else 0
    # What was read is only handed on where it is little: all of it is held until the segment run is rewritten. How long
    # the keys are is known when they are read.
    to_read = sum(segments[index].record_count for indexes in by_way.values() for index in indexes)
    is_held = fits_one_lookup(to_read * RECORD_BYTES, map_weight)
    collected = _Collected(step, segments, map_weight, is_held=is_held)
    unmet = _unmet(inputs, segments, by_way[Way.BY_KEY], latest)
    for way, indexes in by_way.items():
        row_groups = _row_groups(inputs, [(index, segments[index]) for index in indexes], way, unmet)
        for chunk in grouped_for_lookup(row_groups, lambda row_group: row_group.columns, map_weight):
            columns = pa.concat_tables((each.columns for each in chunk), promote_options="default")
            due = [due_tombstones(each.columns, step, segments[each.segment]) for each in chunk]
            mask = pa.chunked_array([part for mask in due for part in mask.chunks], pa.bool_())
            collected.add(chunk, judged_chunk(columns, step, latest, way, mask))
    for row_group, records in unmet.items():
        collected.add_unread(row_group, records)
    # Without keys the unkeyed can't be told from the superseded one by one, but the metrics know how many they are.
    unkeyed = sum(segments[index].unkeyed_count for index in by_way[Way.BY_OFFSET])
    unopened = sum(segments[index].record_count for index in unread)
    return collected.judgement(Counts(kept=unopened, superseded=-unkeyed, unkeyed=unkeyed))


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """What was read of one to judge it; ``segment`` is the index of its segment, ``number`` its own in there."""

    segment: int
    number: int
    columns: pa.Table


def _unmet(
    inputs: OpenInputs, segments: Sequence[Segment], indexes: Iterable[int], latest: Latest
) -> dict[tuple[int, int], int]:
    """The row groups of clean segments in whose range of keys no mapped one lies, with the records that they have.

    Each is named by the index of its segment and its own number. Where tombstones are due all row groups are read: the
    segment changes anyhow.
    """
    if not isinstance(latest, OffsetMap):
        return {}
    ranges: dict[tuple[int, int], KeyRange] = {}
    for index in indexes:
        if segments[index].unkeyed_count or has_due_tombstone(inputs.step, segments[index]):
            continue
        with inputs.open(segments[index]) as opened:
            for number, records in enumerate(opened.row_groups):
                if ends := opened.key_range(number):
                    ranges[index, number] = KeyRange(*ends, records)
    found = may_hold(list(ranges.values()), latest.latest["key"]) if ranges else ()
    return {place: each.records for (place, each), is_met in zip(ranges.items(), found, strict=True) if not is_met}


class _Collected:
    """What is known of each segment of a segment run, while chunk after chunk is judged."""

    def __init__(self, step: CleanStep, segments: Sequence[Segment], map_weight: int, *, is_held: bool) -> None:
        self._segments = len(segments)
        self._map_weight = map_weight
        self._is_held, self._held_weight = is_held, 0
        self._leave_watermarks = {
            index
            for index, segment in enumerate(segments)
            if step.strategy.has_versions and has_due_tombstone(step, segment)
        }
        self._are_overrun = {index for index, segment in enumerate(segments) if overruns_readers(step, segment)}
        self._overrun: dict[int, Overrun] = {}
        self._survives: _Masks = defaultdict(dict)
        self._expired: _Masks = defaultdict(dict)
        self._read: dict[int, dict[int, pa.Table]] = defaultdict(dict)
        self._counts = Counts()
        self._winners_found = 0

    def add(self, chunk: Iterable[_RowGroup], judged: ChunkJudgement) -> None:
        """Give each row group of a chunk its part of the chunk's masks.

        The masks have the rows of all row groups one after the other: where those of one end, those of the next begin.
        """
        self._counts += judged.counts
        self._winners_found += judged.winners_found
        position = 0
        for each in chunk:
            index, number, rows = each.segment, each.number, each.columns.num_rows
            self._survives[index][number] = judged.survives.slice(position, rows)
            self._hold(index, number, each.columns)
            if index in self._leave_watermarks:
                self._expired[index][number] = judged.expired.slice(position, rows)
            if index in self._are_overrun:
                self._add_overrun(index, each.columns["offset"].filter(judged.expired.slice(position, rows)))
            position += rows

    def add_unread(self, row_group: tuple[int, int], records: int) -> None:
        """Take in a row group of which all records survive; all that were read are there already.

        Of a segment of which nothing was read nothing is kept: that says the same.
        """
        self._counts += Counts(kept=records)
        index, number = row_group
        if index in self._survives:
            self._survives[index][number] = pa.chunked_array([pa.repeat(pa.scalar(value=True), records)])
            self._hold(index, number, _NOTHING_READ)

    def _hold(self, index: int, number: int, columns: pa.Table) -> None:
        """Keep what was read of a row group; of none any more once all that is kept is more than one lookup takes."""
        if not self._is_held:
            return
        self._held_weight += weight_of(columns)
        self._is_held = fits_one_lookup(self._held_weight, self._map_weight)
        if self._is_held:
            self._read[index][number] = columns
        else:
            self._read.clear()

    def _add_overrun(self, index: int, offsets: pa.ChunkedArray) -> None:
        """Count tombstones of one segment, at rising offsets, that go although a reader is behind them."""
        if len(offsets):
            before = self._overrun.get(index) or Overrun(offsets[0].as_py(), 0, 0)
            counted = before.tombstones + len(offsets)
            self._overrun[index] = replace(before, last_offset=offsets[-1].as_py(), tombstones=counted)

    def judgement(self, others: Counts) -> Judgement:
        """All of it; ``others`` are the counts of what was not looked at record by record."""
        survives, expired = _joined(self._survives, self._segments), _joined(self._expired, self._segments)
        overrun = tuple(each for _, each in sorted(self._overrun.items()))
        read = {index: [tables[number] for number in sorted(tables)] for index, tables in self._read.items()}
        return Judgement(survives, expired, read, self._counts + others, self._winners_found, overrun)


def _row_groups(
    inputs: OpenInputs, segments: Iterable[tuple[int, Segment]], way: Way, unmet: Container[tuple[int, int]]
) -> Iterator[_RowGroup]:
    """Row groups of the segments, which come with their indexes; but for the unmet ones."""
    step = inputs.step
    for index, segment in segments:
        horizon = ("delete_horizon",) if has_due_tombstone(step, segment) else ()
        place = ("offset",) if overruns_readers(step, segment) else ()
        columns = list(dict.fromkeys((*_COLUMNS[way], *horizon, *place)))
        with inputs.open(segment) as opened:
            for number in range(len(opened.row_groups)):
                if (index, number) not in unmet:
                    yield _RowGroup(index, number, opened.read(number, columns).select(columns))


def _joined(masks: _Masks, segments: int) -> list[pa.ChunkedArray | None]:
    """The masks of each segment as one; null for a segment that has none."""
    return [
        pa.chunked_array(
            [chunk for number in sorted(masks[index]) for chunk in masks[index][number].chunks], pa.bool_()
        )
        if index in masks
        else None
        for index in range(segments)
    ]
