"""Which records of a run of segments survive: ``keptlog.log.verdict``, a column at a time, reading as little as it can.

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
from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.inputs import Between, open_input
from keptlog.kernels.judged_offsets import JudgedOffsets, Standing
from keptlog.kernels.offset_map import OffsetMap, fits_one_lookup, grouped_for_lookup
from keptlog.log.result import Counts
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact
from keptlog.storage.files import Files
from keptlog.storage.schema import US_PER_MS

Latest = OffsetMap | JudgedOffsets
"""Which records are the latest of their keys: by key, or by offset where a shuffle has looked at the keys."""


class Way(Enum):
    """How a segment is judged."""

    BY_OFFSET = auto()
    BY_KEY = auto()
    BY_KEY_AND_OFFSET = auto()
    BY_LIST = auto()
    BY_HORIZON = auto()
    UNREAD = auto()


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
    """A run of segments, judged. ``counts`` has all that survive as kept: stamps are counted when they are set."""

    survives: Sequence[pa.ChunkedArray | None]
    """For each segment one boolean a record; null for a segment of which every record survives."""
    expired: Sequence[pa.ChunkedArray | None]
    """The same for the tombstones that go by their horizon, where they leave watermarks; null if there are none."""
    read: dict[int, list[pa.Table]]
    """By segment the columns that were read to judge it, a table a row group; none if one lookup can't hold it."""
    counts: Counts
    winners_found: int

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
    return Way.BY_HORIZON if segment.has_expired_tombstone(step.now_ms) else Way.UNREAD


def judge(files: Files, step: CleanStep, segments: Sequence[Segment], latest: Latest) -> Judgement:
    """Judge a run of a step's segments.

    Raises:
        StalePlan: a segment is gone.
    """
    by_way: dict[Way, list[int]] = defaultdict(list)
    for index, segment in enumerate(segments):
        by_way[way_to_judge(step, segment, latest)].append(index)
    counts = Counts(kept=sum(segments[index].record_count for index in by_way.pop(Way.UNREAD, [])))
    records = sum(segments[index].record_count for indexes in by_way.values() for index in indexes)
    is_held = fits_one_lookup(records)
    masks: dict[int, list[pa.ChunkedArray]] = defaultdict(list)
    expired: dict[int, list[pa.ChunkedArray]] = defaultdict(list)
    read: dict[int, list[pa.Table]] = defaultdict(list)
    winners_found = 0
    for way, indexes in by_way.items():
        pieces = _pieces(files, step, [(index, segments[index]) for index in indexes], way)
        for chunk in grouped_for_lookup(pieces, lambda piece: piece[1].num_rows):
            tables = pa.concat_tables((table for _, table in chunk), promote_options="default")
            judged = _judge_chunk(tables, step, latest, way)
            counts, winners_found = counts + judged.counts, winners_found + judged.winners_found
            position = 0
            for index, table in chunk:
                masks[index].append(judged.survives.slice(position, table.num_rows))
                if is_held:
                    read[index].append(table)
                if step.strategy.has_versions and segments[index].has_expired_tombstone(step.now_ms):
                    expired[index].append(judged.expired.slice(position, table.num_rows))
                position += table.num_rows
    # Without keys the unkeyed can't be told from the superseded one by one, but the metrics know how many they are.
    unkeyed = sum(segments[index].unkeyed_count for index in by_way[Way.BY_OFFSET])
    counts += Counts(superseded=-unkeyed, unkeyed=unkeyed)
    return Judgement(_joined(masks, len(segments)), _joined(expired, len(segments)), read, counts, winners_found)


@dataclass(frozen=True, slots=True)
class _ChunkJudgement:
    survives: pa.ChunkedArray
    expired: pa.ChunkedArray
    counts: Counts
    winners_found: int = 0


def _judge_chunk(table: pa.Table, step: CleanStep, latest: Latest, way: Way) -> _ChunkJudgement:
    due = _due(table, step)
    if way is Way.BY_HORIZON:
        survives = pc.invert(due)
        return _ChunkJudgement(survives, due, Counts(kept=_count(survives), expired=_count(due)))
    if way is Way.BY_OFFSET and isinstance(latest, OffsetMap):
        is_winner = latest.has_offsets(table["offset"])
        survives, expired = pc.and_not(is_winner, due), pc.and_(is_winner, due)
        found, kept = _count(is_winner), _count(survives)
        counts = Counts(kept=kept, superseded=table.num_rows - found, expired=found - kept)
        return _ChunkJudgement(survives, expired, counts, found)
    found = 0
    if isinstance(latest, JudgedOffsets):
        is_winner, superseded, unkeyed = (latest.are(judged, table["offset"]) for judged in Standing)
        found = _count(is_winner)
    elif way is Way.BY_KEY:
        superseded, unkeyed = latest.has_keys(table["key"]), pc.is_null(table["key"])
    else:
        is_inside = pc.less(table["offset"], step.end_offset)
        latest_offsets = latest.latest_offset_of(table["key"])
        found = _count(pc.equal(table["offset"], latest_offsets))
        superseded = pc.and_(_true(pc.not_equal(table["offset"], latest_offsets)), is_inside)
        unkeyed = pc.and_(pc.is_null(table["key"]), is_inside)
    expired = pc.and_not(pc.and_not(due, superseded), unkeyed)
    survives = pc.invert(pc.or_(pc.or_(superseded, unkeyed), expired))
    counts = Counts(_count(survives), 0, _count(superseded), _count(expired), _count(unkeyed))
    return _ChunkJudgement(survives, expired, counts, found)


def _due(table: pa.Table, step: CleanStep) -> pa.ChunkedArray:
    """Tombstones whose horizon has passed, of the records before the end of the clean."""
    if "delete_horizon" not in table.column_names:
        return pa.chunked_array([pa.repeat(pa.scalar(value=False), table.num_rows)])
    horizons = table["delete_horizon"]
    due = _true(pc.less_equal(horizons.cast(pa.int64()), step.now_ms * US_PER_MS))
    return pc.and_(due, pc.less(table["offset"], step.end_offset)) if "offset" in table.column_names else due


def _pieces(
    files: Files, step: CleanStep, segments: Iterable[tuple[int, Segment]], way: Way
) -> Iterator[tuple[int, pa.Table]]:
    """Row groups of the segments, each with the index of its segment."""
    for index, segment in segments:
        horizon = ("delete_horizon",) if segment.has_expired_tombstone(step.now_ms) else ()
        columns = list(dict.fromkeys((*_COLUMNS[way], *horizon)))
        with open_input(files, step, segment) as parquet:
            for row_group in range(parquet.num_row_groups):
                table = parquet.read_row_group(row_group, columns=columns, use_threads=False).select(columns)
                yield index, table.replace_schema_metadata(None)


def _joined(masks: Mapping[int, list[pa.ChunkedArray]], segments: int) -> list[pa.ChunkedArray | None]:
    """The masks of each segment as one; null for a segment that has none."""
    return [
        pa.chunked_array([chunk for mask in masks[index] for chunk in mask.chunks], pa.bool_())
        if index in masks
        else None
        for index in range(segments)
    ]


def _true(mask: pa.ChunkedArray) -> pa.ChunkedArray:
    """The mask with null as false."""
    return pc.fill_null(mask, fill_value=False)


def _count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(mask).as_py() or 0)
