"""Every record of some keys goes from one log, wherever it lies: so a key is erased from a log that has a source.

    log       [ clean ][ clean ][ cleanable ][ active ]      keys a and b, both below 70
    before      a c e    b d      a c          b  |  a       the last a lies at 71, and counts as new
    after       . c e    . d      . c          .  |  a

A tombstone of such a key goes too: it holds the key. Nothing else changes: offsets stay where they are, no checkpoint
moves, log start and end stay, delete horizons stay. So of a log that has no source this is refused: its dirty section
has no gaps, and a tombstone does the same there.

A log that is cleaned meanwhile makes the step stale; it is planned again. Done again it finds nothing, and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keptlog.errors import InvalidConfig
from keptlog.log.result import RewriteResult, require, staged_paths_of, verify_order
from keptlog.log.search import KeyHits
from keptlog.log.segment import Log, Segment
from keptlog.log.steps import Drop
from keptlog.log.words.counted import counted


@dataclass(frozen=True, slots=True)
class DropResult:
    """The outcome of one step, staged and not yet visible."""

    step: Drop
    removed: tuple[Segment, ...]
    """Live segments with such a record; the others are kept as they are."""
    added: tuple[Segment, ...]
    """What was left of them; a segment of which nothing was left has none."""
    hits: tuple[KeyHits, ...]
    """What goes, by key, ordered by hash; of the log's records, not of its watermarks."""
    watermarks_path: str | None = None
    """The log's watermarks without those of the keys: a staged file, or that of the step; null if none is left."""
    watermarks_dropped: int = 0

    @property
    def dropped(self) -> int:
        """How many records go."""
        return sum(hit.records for hit in self.hits)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.removed and self.watermarks_path == self.step.watermarks_path

    @property
    def staged_paths(self) -> list[str]:
        """The files that were written for it: segments, and watermarks if there are new ones."""
        return staged_paths_of(self.added, self.watermarks_path, self.step.watermarks_path)


StagedOutcome = RewriteResult | DropResult
"""What a swap makes live."""


def drop_step(log: Log, end_offsets: Mapping[bytes, int], now_ms: int) -> Drop:
    """The step that drops the records of these keys (keyed hashes), each below its own offset.

    Raises:
        InvalidConfig: the log has no source.
    """
    if not log.is_ingested:
        raise InvalidConfig(
            f"{log.topic_partition} has no source, so records are not dropped from it: append a tombstone of the key, "
            "which removes them with the next clean"
        )
    end_offset = max(end_offsets.values(), default=0)
    return Drop(
        topic_partition=log.topic_partition,
        segments=tuple(segment for segment in log.segments if segment.base_offset < end_offset),
        end_offsets=dict(end_offsets),
        checkpoint=log.checkpoint,
        log_start_offset=log.log_start_offset,
        now_ms=now_ms,
        segment_bytes=log.config.segment_bytes,
        watermarks_path=log.watermarks_path,
        topic_id=log.topic_id,
    )


def verify_drop(dropped: DropResult) -> None:
    """Check the outcome of a step before it is committed, on numbers the tasks counted.

    Raises:
        InvariantViolated: naming the guarantee that the commit would have broken.
    """
    step, where = dropped.step, dropped.step.topic_partition
    went_in = sum(segment.record_count for segment in dropped.removed)
    came_out = sum(segment.record_count for segment in dropped.added)
    require(
        went_in - came_out == dropped.dropped,
        f"{where}: {counted(went_in, 'record')} went in and {came_out} came out, "
        f"but {dropped.dropped} were to be dropped (G1)",
    )
    unkeyed_in, unkeyed_out = (sum(s.unkeyed_count for s in segments) for segments in (dropped.removed, dropped.added))
    require(
        unkeyed_in == unkeyed_out,
        f"{where}: {counted(unkeyed_in, 'record')} without a key went in and {unkeyed_out} came out (G1)",
    )
    for hit in dropped.hits:
        end_offset = step.end_offsets.get(hit.key_hash)
        require(end_offset is not None, f"{where}: a record would be dropped whose key nobody has asked for (G1)")
        require(
            hit.highest_offset is not None and hit.highest_offset < (end_offset or 0),
            f"{where}: a record at offset {hit.highest_offset} would be dropped, but only those below {end_offset} "
            "were to be (G4)",
        )
    if step.segments:
        verify_order(where, step.segments, dropped.removed, dropped.added)
