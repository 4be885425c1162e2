"""Which records of a run of segments survive: ``keptlog.log.verdict``, a column at a time, reading as little as it can.

Most segments are judged without their values, many without their keys, some without being opened:

1. **Dirty** segments: a record survives if its offset is one of the map's. No key is read.
2. **Clean** segments: the key is looked up in the map; a record below its key's latest offset is superseded.
3. Nothing is mapped, but the file metrics know of a tombstone past its horizon: only the horizons are read.
4. The metrics prove that nothing can go: not opened.

A segment that holds both clean and dirty records, or records beyond the end, goes the second way, which is right for
every segment.

Values are never read here. A tombstone that still lacks its horizon always gets one, so the metrics say enough: its
segment changes, and the stamp is set when the segment is rewritten. Expiry needs the horizon alone, for only tombstones
have one.

An expire step removes tombstones past their horizon and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.log.plan import Step, StepKind
from keptlog.log.result import Counts
from keptlog.log.segment import Segment
from keptlog.spark.inputs import open_input
from keptlog.spark.offset_map import OffsetMap
from keptlog.storage.files import Files

CHUNK_RECORDS = 8_000_000
"""Records judged at once, about 40 bytes each. A lookup hashes the whole map anew, so chunks are few and large."""

_US_PER_MS = 1000


class Way(Enum):
    """What has to be read to judge a segment."""

    BY_OFFSET = ("offset",)
    BY_KEY = ("key", "offset")
    BY_HORIZON = ("offset", "delete_horizon")
    UNREAD = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A run of segments, judged. ``counts`` has all that survive as kept: stamps are counted when they are set."""

    survives: Sequence[pa.ChunkedArray | None]
    """For each segment one boolean a record; null for a segment of which every record survives."""
    counts: Counts
    winners_found: int

    def loses_records(self, index: int) -> bool:
        """Whether a record of this segment goes."""
        mask = self.survives[index]
        return mask is not None and not pc.all(mask, min_count=0).as_py()


def way_to_judge(step: Step, segment: Segment, offset_map: OffsetMap) -> Way:
    """What has to be read of a segment."""
    has_expired = segment.has_expired_tombstone(step.now_ms)
    if step.kind is StepKind.COMPACT:
        if step.first_dirty_offset <= segment.base_offset and segment.last_offset < step.end_offset:
            return Way.BY_OFFSET
        if len(offset_map) or segment.unkeyed_count:
            return Way.BY_KEY
    return Way.BY_HORIZON if has_expired else Way.UNREAD


def judge(files: Files, step: Step, segments: Sequence[Segment], offset_map: OffsetMap) -> Judged:
    """Judge a run of a step's segments.

    Raises:
        StalePlan: a segment is gone.
    """
    by_way: dict[Way, list[int]] = defaultdict(list)
    for index, segment in enumerate(segments):
        by_way[way_to_judge(step, segment, offset_map)].append(index)
    counts = Counts(kept=sum(segments[index].record_count for index in by_way.pop(Way.UNREAD, [])))
    masks: dict[int, list[pa.ChunkedArray]] = defaultdict(list)
    winners_found = 0
    for way, indexes in by_way.items():
        pieces = _pieces(files, step, [(index, segments[index]) for index in indexes], way)
        for chunk in _chunks(pieces):
            judged = _judge_chunk(pa.concat_tables(table for _, table in chunk), step, offset_map, way)
            counts, winners_found = counts + judged.counts, winners_found + judged.winners_found
            position = 0
            for index, table in chunk:
                masks[index].append(judged.survives.slice(position, table.num_rows))
                position += table.num_rows
    # Without keys the unkeyed can't be told from the superseded one by one, but the metrics know how many they are.
    unkeyed = sum(segments[index].unkeyed_count for index in by_way[Way.BY_OFFSET])
    counts += Counts(superseded=-unkeyed, unkeyed=unkeyed)
    joined = [_joined(masks[index]) if index in masks else None for index in range(len(segments))]
    return Judged(joined, counts, winners_found)


@dataclass(frozen=True, slots=True)
class _JudgedChunk:
    survives: pa.ChunkedArray
    counts: Counts
    winners_found: int = 0


def _judge_chunk(table: pa.Table, step: Step, offset_map: OffsetMap, way: Way) -> _JudgedChunk:
    offsets = table["offset"]
    expired = _expired(table, step)
    if way is Way.BY_HORIZON:
        survives = pc.invert(expired)
        return _JudgedChunk(survives, Counts(kept=_count(survives), expired=_count(expired)))
    if way is Way.BY_OFFSET:
        winners = offset_map.offsets_between(offsets[0].as_py(), offsets[-1].as_py())
        is_winner = pc.is_in(offsets, value_set=winners)
        survives = pc.and_not(is_winner, expired)
        found, kept = _count(is_winner), _count(survives)
        return _JudgedChunk(survives, Counts(kept=kept, superseded=len(offsets) - found, expired=found - kept), found)
    latest = offset_map.latest_offset_of(table["key"])
    superseded = _true(pc.less(offsets, latest))
    unkeyed = pc.and_(pc.is_null(table["key"]), pc.less(offsets, step.end_offset))
    expired = pc.and_not(pc.and_not(expired, superseded), unkeyed)
    survives = pc.invert(pc.or_(pc.or_(superseded, unkeyed), expired))
    return _JudgedChunk(
        survives,
        Counts(kept=_count(survives), superseded=_count(superseded), expired=_count(expired), unkeyed=_count(unkeyed)),
        _count(_true(pc.equal(offsets, latest))),
    )


def _expired(table: pa.Table, step: Step) -> pa.ChunkedArray:
    """Tombstones whose horizon has passed, of the records before the end of the clean."""
    horizons = table["delete_horizon"]
    if horizons.null_count == table.num_rows:
        return pc.is_valid(horizons)
    due = pc.less_equal(horizons.cast(pa.int64()), step.now_ms * _US_PER_MS)
    return pc.and_(_true(due), pc.less(table["offset"], step.end_offset))


def _pieces(
    files: Files, step: Step, segments: Iterable[tuple[int, Segment]], way: Way
) -> Iterator[tuple[int, pa.Table]]:
    """Row groups of the segments, each with the index of its segment; horizons are null where none can have passed."""
    for index, segment in segments:
        has_expired = segment.has_expired_tombstone(step.now_ms)
        columns = list(dict.fromkeys((*way.value, "delete_horizon") if has_expired else way.value))
        with open_input(files, step, segment) as parquet:
            for row_group in range(parquet.num_row_groups):
                table = parquet.read_row_group(row_group, columns=columns, use_threads=False).select(columns)
                if not has_expired:
                    horizons = pa.nulls(table.num_rows, pa.timestamp("us", tz="UTC"))
                    table = table.append_column("delete_horizon", horizons)
                yield index, table.replace_schema_metadata(None)


def _chunks(pieces: Iterable[tuple[int, pa.Table]]) -> Iterator[list[tuple[int, pa.Table]]]:
    chunk: list[tuple[int, pa.Table]] = []
    records = 0
    for piece in pieces:
        if chunk and records + piece[1].num_rows > CHUNK_RECORDS:
            yield chunk
            chunk, records = [], 0
        chunk.append(piece)
        records += piece[1].num_rows
    if chunk:
        yield chunk


def _joined(masks: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for mask in masks for chunk in mask.chunks], pa.bool_())


def _true(mask: pa.ChunkedArray) -> pa.ChunkedArray:
    """The mask with null as false."""
    return pc.fill_null(mask, fill_value=False)


def _count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(mask).as_py() or 0)
