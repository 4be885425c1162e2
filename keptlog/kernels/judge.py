"""Which records of a segment run survive: ``keptlog.log.verdict``, a column at a time, reading as little as it can.

Most segments are judged without their values, many without their keys, some without being opened:

1. **Dirty** segments: a record survives if its offset is one of the map's. No key is read.
2. **Clean** segments: a record is superseded if its key is in the map, for what is mapped is later. No offset is read.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.inputs import Between, open_input
from keptlog.kernels.judged_offsets import JudgedOffsets
from keptlog.kernels.offset_map import fits_one_lookup, grouped_for_lookup
from keptlog.kernels.ways import ChunkJudgement, Latest, Way, due_tombstones, judged_chunk
from keptlog.log.result import Counts, Overrun
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact, has_due_tombstone, overruns_readers
from keptlog.storage.files import Files

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
    """By the index of a segment the columns that were read to judge it, a table a row group; empty if a segment run has
    more records than one lookup takes."""
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


def judge(files: Files, step: CleanStep, segments: Sequence[Segment], latest: Latest) -> Judgement:
    """Judge a segment run: neighbouring segments of a step, in offset order.

    Raises:
        StalePlan: a segment is gone.
    """
    by_way: dict[Way, list[int]] = defaultdict(list)
    for index, segment in enumerate(segments):
        by_way[way_to_judge(step, segment, latest)].append(index)
    unread = by_way.pop(Way.UNREAD, [])
    collected = _Collected(step, segments, [index for indexes in by_way.values() for index in indexes])
    for way, indexes in by_way.items():
        row_groups = _row_groups(files, step, [(index, segments[index]) for index in indexes], way)
        for chunk in grouped_for_lookup(row_groups, lambda row_group: row_group[1].num_rows):
            columns = pa.concat_tables((table for _, table in chunk), promote_options="default")
            due = [mask for index, table in chunk for mask in due_tombstones(table, step, segments[index]).chunks]
            mask = pa.chunked_array(due, pa.bool_())
            collected.add(chunk, judged_chunk(columns, step, latest, way, mask))
    # Without keys the unkeyed can't be told from the superseded one by one, but the metrics know how many they are.
    unkeyed = sum(segments[index].unkeyed_count for index in by_way[Way.BY_OFFSET])
    unopened = sum(segments[index].record_count for index in unread)
    return collected.judgement(Counts(kept=unopened, superseded=-unkeyed, unkeyed=unkeyed))


class _Collected:
    """What is known of each segment of a segment run, while chunk after chunk is judged."""

    def __init__(self, step: CleanStep, segments: Sequence[Segment], read: Iterable[int]) -> None:
        self._segments = len(segments)
        # What was read is only handed on where it is little: all of it is held until the segment run is rewritten.
        self._is_held = fits_one_lookup(sum(segments[index].record_count for index in read))
        self._leave_watermarks = {
            index
            for index, segment in enumerate(segments)
            if step.strategy.has_versions and has_due_tombstone(step, segment)
        }
        self._are_overrun = {index for index, segment in enumerate(segments) if overruns_readers(step, segment)}
        self._overrun: dict[int, Overrun] = {}
        self._survives: dict[int, list[pa.ChunkedArray]] = defaultdict(list)
        self._expired: dict[int, list[pa.ChunkedArray]] = defaultdict(list)
        self._read: dict[int, list[pa.Table]] = defaultdict(list)
        self._counts = Counts()
        self._winners_found = 0

    def add(self, chunk: Iterable[tuple[int, pa.Table]], judged: ChunkJudgement) -> None:
        """Give each row group of a chunk its part of the chunk's masks.

        A chunk is row groups with the indexes of their segments, and its masks have the rows of all of them one after
        the other: where those of a row group end, those of the next begin.
        """
        self._counts += judged.counts
        self._winners_found += judged.winners_found
        position = 0
        for index, table in chunk:
            self._survives[index].append(judged.survives.slice(position, table.num_rows))
            if self._is_held:
                self._read[index].append(table)
            if index in self._leave_watermarks:
                self._expired[index].append(judged.expired.slice(position, table.num_rows))
            if index in self._are_overrun:
                self._add_overrun(index, table["offset"].filter(judged.expired.slice(position, table.num_rows)))
            position += table.num_rows

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
        return Judgement(survives, expired, self._read, self._counts + others, self._winners_found, overrun)


def _row_groups(
    files: Files, step: CleanStep, segments: Iterable[tuple[int, Segment]], way: Way
) -> Iterator[tuple[int, pa.Table]]:
    """Row groups of the segments, each with the index of its segment."""
    for index, segment in segments:
        horizon = ("delete_horizon",) if has_due_tombstone(step, segment) else ()
        place = ("offset",) if overruns_readers(step, segment) else ()
        columns = list(dict.fromkeys((*_COLUMNS[way], *horizon, *place)))
        with open_input(files, step, segment) as opened:
            for row_group in range(len(opened.row_groups)):
                table = opened.read(row_group, columns).select(columns)
                yield index, table.replace_schema_metadata(None)


def _joined(masks: Mapping[int, list[pa.ChunkedArray]], segments: int) -> list[pa.ChunkedArray | None]:
    """The masks of each segment as one; null for a segment that has none."""
    return [
        pa.chunked_array([chunk for mask in masks[index] for chunk in mask.chunks], pa.bool_())
        if index in masks
        else None
        for index in range(segments)
    ]
