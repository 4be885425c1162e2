"""How a chunk of records is judged, in each of the ways that ``judge`` chooses between: masks from columns.

    BY_OFFSET           offset                a dirty record survives if its offset is one of the map's
    BY_KEY              key                   a clean record goes if its key is in the map, for what is mapped is later
    BY_KEY_AND_OFFSET   key, offset           clean and dirty records, or some beyond the end, in one segment
    BY_LIST             offset                the keys were judged before (``judged_offsets``)
    BY_HORIZON          horizon, offset       nothing is mapped; tombstones go by their horizon alone

In every way a tombstone past its delete horizon goes too, if nothing supersedes it and no reader holds it: where the
file metrics know of one, the chunk has its ``delete_horizon`` as well. A mask is a bool array without nulls, one
element a record of the chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.judged_offsets import JudgedOffsets, Standing
from keptlog.kernels.offset_map import OffsetMap
from keptlog.log.result import Counts
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, due_horizon_ms
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


@dataclass(frozen=True, slots=True)
class ChunkJudgement:
    """What becomes of the records of a chunk."""

    survives: pa.ChunkedArray
    """A mask: bool, no nulls, one element a record of the chunk."""
    expired: pa.ChunkedArray
    """The same for tombstones that go by their horizon; none of them survives, not all others do."""
    counts: Counts
    winners_found: int = 0
    """Records that the map has as the latest of their keys, as far as this way of judging meets them."""


def judged_chunk(chunk: pa.Table, step: CleanStep, latest: Latest, way: Way, due: pa.ChunkedArray) -> ChunkJudgement:
    """Judge records, of which the chunk has the columns that ``way`` needs, as the module head lists them.

    A chunk may be of several segments; they are in offset order, so its ``offset`` rises from end to end. ``due`` is a
    mask of the tombstones that go by their horizon unless something supersedes them (``due_tombstones``).

    Raises:
        ValueError: ``latest`` can't answer what this way asks.
    """
    match latest, way:
        case _, Way.BY_HORIZON | Way.UNREAD:
            return _by_horizon(due)
        case JudgedOffsets(), _:
            return _by_list(chunk, latest, due)
        case OffsetMap(), Way.BY_OFFSET:
            return _by_offset(chunk, latest, due)
        case OffsetMap(), Way.BY_KEY:
            return _judgement(latest.has_keys(chunk["key"]), pc.is_null(chunk["key"]), due, 0)
        case OffsetMap(), Way.BY_KEY_AND_OFFSET:
            return _by_key_and_offset(chunk, step, latest, due)
        case _:
            raise ValueError(f"a segment can't be judged {way} with {type(latest).__name__}")


def _by_horizon(due: pa.ChunkedArray) -> ChunkJudgement:
    survives = pc.invert(due)
    return ChunkJudgement(survives, due, Counts(kept=_count(survives), expired=_count(due)))


def _by_offset(chunk: pa.Table, latest: OffsetMap, due: pa.ChunkedArray) -> ChunkJudgement:
    is_winner = latest.has_offsets(chunk["offset"])
    survives, expired = pc.and_not(is_winner, due), pc.and_(is_winner, due)
    found, kept = _count(is_winner), _count(survives)
    counts = Counts(kept=kept, superseded=chunk.num_rows - found, expired=found - kept)
    return ChunkJudgement(survives, expired, counts, found)


def _by_list(chunk: pa.Table, latest: JudgedOffsets, due: pa.ChunkedArray) -> ChunkJudgement:
    is_winner, superseded, unkeyed = (latest.are(standing, chunk["offset"]) for standing in Standing)
    return _judgement(superseded, unkeyed, due, _count(is_winner))


def _by_key_and_offset(chunk: pa.Table, step: CleanStep, latest: OffsetMap, due: pa.ChunkedArray) -> ChunkJudgement:
    is_inside = pc.less(chunk["offset"], step.end_offset)
    latest_offsets = latest.latest_offset_of(chunk["key"])
    found = _count(pc.equal(chunk["offset"], latest_offsets))
    superseded = pc.and_(_true(pc.not_equal(chunk["offset"], latest_offsets)), is_inside)
    unkeyed = pc.and_(pc.is_null(chunk["key"]), is_inside)
    return _judgement(superseded, unkeyed, due, found)


def _judgement(
    superseded: pa.ChunkedArray, unkeyed: pa.ChunkedArray, due: pa.ChunkedArray, winners_found: int
) -> ChunkJudgement:
    """From masks of what goes for another reason than its horizon.

    Each record is counted once: what is superseded or unkeyed is not expired too. No record is superseded and unkeyed
    at once, for what has no key is never found in a map.
    """
    expired = pc.and_not(pc.and_not(due, superseded), unkeyed)
    survives = pc.invert(pc.or_(pc.or_(superseded, unkeyed), expired))
    counts = Counts(_count(survives), 0, _count(superseded), _count(expired), _count(unkeyed))
    return ChunkJudgement(survives, expired, counts, winners_found)


def due_tombstones(records: pa.Table, step: CleanStep, segment: Segment) -> pa.ChunkedArray:
    """A mask: which of these records of one segment are tombstones whose time is up, and lie before the step's end."""
    if "delete_horizon" not in records.column_names:
        return pa.chunked_array([pa.repeat(pa.scalar(value=False), records.num_rows)])
    horizons = records["delete_horizon"]
    due = _true(pc.less_equal(horizons.cast(pa.int64()), due_horizon_ms(step, segment) * US_PER_MS))
    return pc.and_(due, pc.less(records["offset"], step.end_offset)) if "offset" in records.column_names else due


def _true(mask: pa.ChunkedArray) -> pa.ChunkedArray:
    """The mask with null as false: a comparison with a null, such as the latest offset of an unmapped key, is null."""
    return pc.fill_null(mask, fill_value=False)


def _count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(mask).as_py() or 0)
