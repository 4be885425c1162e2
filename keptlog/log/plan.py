"""What a clean will do, as data: the same plan is run, shown by ``keptlog plan``, explained, and tested.

A plan is a list of steps, one for each log it touches. There are two kinds:

- **compact**: map the keys of the cleanable section, then judge all segments from the log start to its end.
- **expire**: nothing is dirty, but tombstones are past their horizon; only the segments that hold them are read.

    log       [ clean ][ clean ][ clean ][ cleanable ][ cleanable ][ active ]
    compact   <------------------- inputs ------------------------>             mapped: the cleanable ones
    expire             <- input ->                                              mapped: none

A step names its inputs and the state that it was made from. The commit refuses it if either is no longer so
(``StalePlan``): that is what makes two cleaners, a zombie or a late retry harmless.

Names: a *plan* is a description, a *staged* segment is written but invisible, a commit makes it *live*.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from keptlog.log.segment import Segment, total_bytes
from keptlog.log.selection import Assessment, Trigger
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.verdict import CleanBounds


class StepKind(StrEnum):
    """The two things that can be done to a log."""

    COMPACT = "compact"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Step:
    """What will be done to one log."""

    kind: StepKind
    trigger: Trigger
    topic_partition: TopicPartition
    segments: tuple[Segment, ...]
    """Inputs in offset order; for compact these are all segments from the log start to ``end_offset``."""
    first_dirty_offset: int
    end_offset: int
    """Exclusive; the checkpoint after the commit. Equal to ``first_dirty_offset`` for expire."""
    checkpoint: int | None
    """The stored checkpoint that the plan was made from."""
    log_start_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    strategy: str
    cleanable_ratio: float
    earliest_uncompacted_ms: int | None

    @property
    def bounds(self) -> CleanBounds:
        return CleanBounds(self.end_offset, self.now_ms, self.delete_retention_ms)

    @property
    def dirty(self) -> tuple[Segment, ...]:
        return tuple(s for s in self.segments if s.last_offset >= self.first_dirty_offset)

    def must_rewrite(self, segment: Segment) -> bool:
        """Whether a segment is rewritten even if nothing in it changes.

        A checkpoint may only move in a commit that removes a live file of its log (invariant I1): the last dirty one.
        """
        return self.kind is StepKind.COMPACT and segment == self.segments[-1]


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order of urgency, and for every other log why it is left alone."""

    now_ms: int
    steps: tuple[Step, ...]
    left_alone: dict[str, str]
    """Topic-partition to reason."""

    def only(self, kind: StepKind) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind is kind)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read what ``to_json`` wrote."""
        data = json.loads(text)
        return cls(data["now_ms"], tuple(step_from_dict(step) for step in data["steps"]), data["left_alone"])


def step_from_dict(data: dict[str, Any]) -> Step:
    """Rebuild a step from ``dataclasses.asdict``."""
    return Step(
        **data
        | {
            "kind": StepKind(data["kind"]),
            "trigger": Trigger(data["trigger"]),
            "topic_partition": TopicPartition(**data["topic_partition"]),
            "segments": tuple(Segment(**segment) for segment in data["segments"]),
        }
    )


def plan_step(assessment: Assessment, *, requested: bool = False) -> Step | None:
    """What to do about one log now; null if nothing.

    ``requested`` cleans whatever is cleanable, without asking the ratio or the lag.
    """
    trigger = assessment.trigger
    sections = assessment.sections
    if (
        requested
        and assessment.log.config.is_compacted
        and sections.cleanable
        and trigger in {None, Trigger.TOMBSTONE_EXPIRY}
    ):
        trigger = Trigger.REQUESTED
    if trigger is None:
        return None
    is_expiry = trigger is Trigger.TOMBSTONE_EXPIRY
    if is_expiry:
        end_offset = sections.first_dirty_offset
        segments = tuple(s for s in sections.clean if s.has_expired_tombstone(assessment.now_ms))
    else:
        end_offset = sections.first_uncleanable_offset
        segments = tuple(s for s in assessment.log.segments if s.base_offset < end_offset)
    if not segments:
        return None
    config = assessment.log.config
    return Step(
        kind=StepKind.EXPIRE if is_expiry else StepKind.COMPACT,
        trigger=trigger,
        topic_partition=assessment.log.topic_partition,
        segments=segments,
        first_dirty_offset=sections.first_dirty_offset,
        end_offset=end_offset,
        checkpoint=assessment.log.checkpoint,
        log_start_offset=assessment.log.log_start_offset,
        now_ms=assessment.now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        strategy=config.compaction_strategy,
        cleanable_ratio=assessment.cleanable_ratio,
        earliest_uncompacted_ms=assessment.earliest_uncompacted_ms,
    )


def make_plan(assessments: Iterable[Assessment], now_ms: int, *, requested: bool = False) -> Plan:
    """Plan a pass over the given logs, most urgent first."""
    judged = sorted(assessments, key=lambda each: (each.urgency, each.log.topic_partition))
    steps: list[Step] = []
    left_alone: dict[str, str] = {}
    for assessment in judged:
        step = plan_step(assessment, requested=requested)
        if step:
            steps.append(step)
        else:
            left_alone[str(assessment.log.topic_partition)] = why_left_alone(assessment)
    return Plan(now_ms, tuple(steps), left_alone)


def why_left_alone(assessment: Assessment) -> str:
    """One line on why a log is not cleaned now."""
    config, sections = assessment.log.config, assessment.sections
    if not config.is_compacted:
        return f"cleanup.policy is {','.join(config.cleanup_policy) or 'empty'}: it is not compacted"
    if not sections.dirty:
        return "clean: nothing was appended since its last clean"
    if not sections.cleanable:
        if sections.uncleanable:
            return f"all dirty records wait for min.compaction.lag.ms={config.min_compaction_lag_ms}"
        return "all dirty records are in the active segment"
    return (
        f"dirty ratio {assessment.cleanable_ratio:.2f} is not above "
        f"min.cleanable.dirty.ratio={config.min_cleanable_dirty_ratio} and no record is past its maximum lag"
    )


def describe_step(step: Step) -> str:
    """One line on what a step will do and why."""
    dirty = step.dirty
    if step.kind is StepKind.EXPIRE:
        return (
            f"{step.topic_partition}: expire tombstones in {len(step.segments)} segments "
            f"({total_bytes(step.segments)} bytes), {step.trigger}"
        )
    return (
        f"{step.topic_partition}: compact offsets [{step.first_dirty_offset}, {step.end_offset}) of "
        f"{len(dirty)} dirty segments ({total_bytes(dirty)} bytes) into {len(step.segments) - len(dirty)} clean ones, "
        f"dirty ratio {step.cleanable_ratio:.2f}, {step.trigger}"
    )
