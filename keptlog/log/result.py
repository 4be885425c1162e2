"""What a rewrite did to one log: the segments it staged, and numbers that must add up before they are committed.

A step that is done in legs has an outcome for each, which is checked and committed by itself. The last one knows those
before it: before the checkpoint moves all are checked together (``whole``), as if they had been one commit.

A step that is tried again, because a job was lost, begins anew on the segments as they stand. So what its legs had left
is judged a second time, and the second judgement counts: of the first try only what it has removed does.

    first try    leg 1: 10 records, 4 go        leg 2: 10 records, 5 go        leg 3 is lost
    second try   leg 1: 6 records, none goes    leg 2: 5 records, none goes    leg 3: 10 records, 2 go
    whole        30 records: 4 and 5 that went in the first try, 21 that the second judged; 11 go
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from keptlog.errors import InvariantViolated
from keptlog.log.segment import Segment, total_bytes
from keptlog.log.steps import CleanStep
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted


@dataclass(frozen=True, slots=True)
class Counts:
    """Records of the judged segments, by verdict, each counted once. ``kept`` includes records past the end."""

    kept: int = 0
    stamped: int = 0
    superseded: int = 0
    expired: int = 0
    unkeyed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.kept + other.kept,
            self.stamped + other.stamped,
            self.superseded + other.superseded,
            self.expired + other.expired,
            self.unkeyed + other.unkeyed,
        )

    def judged_again(self, again: Counts) -> Counts:
        """These records, where those of them that were retained were judged once more, maybe among others.

        What was stamped before is kept by then; it was this step that has stamped it. Where tombstones are due at once
        (``delete.retention.ms=0``) it may be gone by then, so no more count as stamped than are kept.
        """
        stamped = min(self.stamped, again.kept)
        of_both = replace(self, kept=0, stamped=0) + again
        return replace(of_both, kept=of_both.kept - stamped, stamped=of_both.stamped + stamped)

    @property
    def retained(self) -> int:
        return self.kept + self.stamped

    @property
    def removed(self) -> int:
        return self.superseded + self.expired + self.unkeyed

    @property
    def total(self) -> int:
        return self.retained + self.removed


@dataclass(frozen=True, slots=True)
class Overrun:
    """Tombstones of one segment that went by their horizon although a reader had not met them: his time was up."""

    first_offset: int
    last_offset: int
    """Inclusive."""
    tombstones: int


@dataclass(frozen=True, slots=True)
class Leg:
    """Which leg of a step an outcome is of."""

    number: int
    """From 1 on, in each try of the step."""
    of: int
    inputs: tuple[Segment, ...]
    """Those of this leg."""
    map_keys: int
    """Keys in the offset map of all legs."""

    @property
    def is_last(self) -> bool:
        return self.number == self.of


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The outcome of one step, or of a leg of it, staged and not yet visible."""

    step: CleanStep
    """As it was carried out: where the offset map was full it ends earlier than it was planned. Of a leg its segments
    are those of all legs as they stand before this one: what earlier legs have made, and what is to come."""
    removed: tuple[Segment, ...]
    """Live segments that the staged ones replace; the step's other segments are kept as they are."""
    added: tuple[Segment, ...]
    counts: Counts
    map_keys: int
    """Keys in the offset map of which a record, and no watermark, is the latest; of a leg, one of its own records."""
    winners_found: int
    """Records whose offset the map holds as their key's latest, counted while they were judged."""
    malformed: int = 0
    """Dirty records whose version header holds no version."""
    watermarks_path: str | None = None
    """The log's watermarks after this pass, in a staged file unless it is that of the step; null if there are none."""
    overrun: tuple[Overrun, ...] = ()
    """In offset order; empty where no reader was behind."""
    leg: Leg | None = None
    """Null where the whole step is one commit."""
    earlier: tuple[RewriteResult, ...] = ()
    """Of what ends a step: the legs before it, of all tries, which are live."""

    @property
    def inputs(self) -> tuple[Segment, ...]:
        """The segments that were judged."""
        return self.leg.inputs if self.leg else self.step.segments

    @property
    def ends_step(self) -> bool:
        """Whether with this the step is done."""
        return self.leg is None or self.leg.is_last

    @property
    def whole(self) -> RewriteResult:
        """What a step did in all its legs, of all tries; itself if there was but one commit."""
        if self.leg is None and not self.earlier:
            return self
        tries = self._tries
        legs = [leg for each in tries for leg in each]
        came = {segment for leg in legs for segment in leg.added}
        went = {segment for leg in legs for segment in leg.removed}
        counts = [sum((leg.counts for leg in each), Counts()) for each in tries]
        return replace(
            self,
            step=legs[0].step,
            removed=_in_order(went - came),
            added=_in_order(came - went),
            counts=functools.reduce(Counts.judged_again, counts),
            map_keys=self.leg.map_keys if self.leg else self.map_keys,
            winners_found=sum(leg.winners_found for leg in tries[-1]),
            malformed=legs[0].malformed,
            overrun=tuple(sorted((each for leg in legs for each in leg.overrun), key=lambda each: each.first_offset)),
            leg=None,
            earlier=(),
        )

    @property
    def _tries(self) -> list[list[RewriteResult]]:
        """The legs of each try of the step, of which this is the last."""
        tries: list[list[RewriteResult]] = []
        for each in (*self.earlier, self):
            if not tries or each.leg is None or each.leg.number == 1:
                tries.append([])
            tries[-1].append(each)
        return tries

    @property
    def segments_after(self) -> tuple[Segment, ...]:
        """The step's segments once this is committed."""
        kept = set(self.step.segments).difference(self.removed)
        return _in_order(kept.union(self.added))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.removed

    @property
    def staged_paths(self) -> list[str]:
        """The files that were written for it: segments, and watermarks if there are new ones."""
        return staged_paths_of(self.added, self.watermarks_path, self.step.watermarks_path)

    @property
    def segments_kept(self) -> int:
        return len(self.inputs) - len(self.removed)

    @property
    def bytes_written(self) -> int:
        return total_bytes(self.added)

    @property
    def bytes_rewritten(self) -> int:
        """Size of the files that were replaced."""
        return total_bytes(self.removed)


def staged_paths_of(added: Iterable[Segment], watermarks_path: str | None, path_before: str | None) -> list[str]:
    """What a step has written: the segments that come, and the watermarks unless they are those of before."""
    new_watermarks = [watermarks_path] if watermarks_path and watermarks_path != path_before else []
    return [segment.path for segment in added] + new_watermarks


def _in_order(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    return tuple(sorted(segments, key=lambda segment: segment.base_offset))


def verify(rewritten: RewriteResult) -> None:
    """Check the outcome of a step, or of a leg, before it is committed; on numbers that the tasks counted.

    Raises:
        InvariantViolated: naming the guarantee that the commit would have broken.
    """
    step, where = rewritten.step, rewritten.step.topic_partition
    judged = sum(segment.record_count for segment in rewritten.inputs)
    require(
        rewritten.counts.total == judged,
        f"{where}: {counted(rewritten.counts.total, 'record')} judged but the segments hold {judged} (G1)",
    )
    removed_records = sum(segment.record_count for segment in rewritten.removed)
    added_records = sum(segment.record_count for segment in rewritten.added)
    require(
        removed_records - added_records == rewritten.counts.removed,
        f"{where}: {counted(removed_records, 'record')} went in and {added_records} came out, "
        f"but {rewritten.counts.removed} were to be removed (G1)",
    )
    require(
        rewritten.winners_found == rewritten.map_keys,
        f"{where}: the offset map has {counted(rewritten.map_keys, 'key')} but of "
        f"{rewritten.winners_found} the latest record was met (G1)",
    )
    verify_order(step.topic_partition, rewritten.inputs, rewritten.removed, rewritten.added)
    if rewritten.ends_step and (whole := rewritten.whole) is not rewritten:
        verify(whole)


def verify_order(
    topic_partition: TopicPartition, inputs: Sequence[Segment], removed: Sequence[Segment], added: Sequence[Segment]
) -> None:
    """Check that the log after a swap has rising, non-overlapping segments, inside of the range of its inputs.

    Raises:
        InvariantViolated: naming the guarantee that the commit would have broken.
    """
    require(set(removed) <= set(inputs), f"{topic_partition}: a segment outside of the plan would be replaced (G4)")
    after = sorted((set(inputs) - set(removed)) | set(added), key=lambda segment: segment.base_offset)
    for earlier, later in pairwise(after):
        require(
            later.base_offset > earlier.last_offset,
            f"{topic_partition}: {later.path} would overlap {earlier.path} at offset {later.base_offset} (G2)",
        )
    lowest, highest = inputs[0].base_offset, inputs[-1].last_offset
    for segment in added:
        require(
            lowest <= segment.base_offset <= segment.last_offset <= highest,
            f"{topic_partition}: {segment.path} has offsets [{segment.base_offset}, {segment.last_offset}] "
            f"outside of the planned [{lowest}, {highest}] (G3)",
        )


def require(holds: bool, otherwise: str) -> None:  # noqa: FBT001  # a condition, not a mode
    """Raises InvariantViolated, with what is wrong, unless a condition of a staged outcome holds."""
    if not holds:
        raise InvariantViolated(f"{otherwise}; nothing was committed, please report this")
