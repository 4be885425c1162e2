"""What a clean will do, as data: the same plan is run, shown by ``keptlog plan``, explained, and tested.

A plan is a list of steps, one for each log it touches. There are three kinds:

- **compact**: map the keys of the cleanable section, then judge all segments from the log start to its end.
- **expire**: nothing is dirty, but tombstones are past their horizon; only the segments that hold them are read.

    log       [ clean ][ clean ][ clean ][ cleanable ][ cleanable ][ active ]
    compact   <------------------- inputs ------------------------>             mapped: the cleanable ones
    expire             <- input ->                                              mapped: none

- **retain**: old segments go whole, nothing is read or written (``retention``); a plan of its own, for it runs at its
  own times, and a log that was compacted a moment ago is another log.

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

from keptlog.log.assessment import Assessment, Trigger
from keptlog.log.broker import BrokerConfig
from keptlog.log.counted import counted
from keptlog.log.iso_time import iso_time
from keptlog.log.offset_map import UNBOUNDED, MapCapacity, MapOverflow
from keptlog.log.retention import retention_of
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.verdict import CleanBounds


class StepKind(StrEnum):
    """The three things that can be done to a log."""

    COMPACT = "compact"
    EXPIRE = "expire"
    RETAIN = "retain"


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
    """Exclusive; the checkpoint after the commit. Equal to ``first_dirty_offset`` for expire and retain."""
    checkpoint: int | None
    """The stored checkpoint that the plan was made from."""
    log_start_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    strategy: Strategy
    cleanable_ratio: float
    earliest_uncompacted_ms: int | None
    map_capacity: MapCapacity = UNBOUNDED
    watermark_retention_ms: int = 0
    new_log_start_offset: int | None = None
    """For retain: the log start offset after the commit."""
    ends_early: bool = False
    """Whether the offset map was full before the planned end; another pass goes on from there."""
    watermarks_path: str | None = None
    """The log's watermarks as the plan found them; null if there are none."""

    @property
    def bounds(self) -> CleanBounds:
        return CleanBounds(self.end_offset, self.now_ms, self.delete_retention_ms)

    @property
    def dirty(self) -> tuple[Segment, ...]:
        return tuple(s for s in self.segments if s.last_offset >= self.first_dirty_offset)

    def ended_at(self, end_offset: int) -> Step:
        """The step as it is carried out when its offset map is full: it ends here, and what lies behind is not in it.

        Returns itself if that is where it was planned to end.
        """
        if end_offset == self.end_offset:
            return self
        segments = tuple(s for s in self.segments if s.base_offset < end_offset)
        return dataclasses.replace(self, end_offset=end_offset, segments=segments, ends_early=True)

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
            "strategy": Strategy(StrategyKind(data["strategy"]["kind"]), data["strategy"]["header"]),
            "map_capacity": MapCapacity(
                data["map_capacity"]["max_keys"], MapOverflow(data["map_capacity"]["overflow"])
            ),
        }
    )


def plan_step(assessment: Assessment, broker: BrokerConfig | None = None, *, requested: bool = False) -> Step | None:
    """What to do about one log now; null if nothing. Without a ``broker`` its offset map is bounded by nothing.

    ``requested`` cleans whatever is cleanable, without asking the ratio or the lag, and an uncleanable log before its
    time.
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
        strategy=config.strategy,
        cleanable_ratio=assessment.cleanable_ratio,
        earliest_uncompacted_ms=assessment.earliest_uncompacted_ms,
        map_capacity=broker.map_capacity(config.strategy) if broker else UNBOUNDED,
        watermark_retention_ms=config.keptlog_watermark_retention_ms,
        watermarks_path=assessment.log.watermarks_path,
    )


def make_plan(
    assessments: Iterable[Assessment], now_ms: int, broker: BrokerConfig | None = None, *, requested: bool = False
) -> Plan:
    """Plan a pass over the given logs, most urgent first."""
    judged = sorted(assessments, key=lambda each: (each.urgency, each.log.topic_partition))
    steps: list[Step] = []
    left_alone: dict[str, str] = {}
    for assessment in judged:
        step = plan_step(assessment, broker, requested=requested)
        if step:
            steps.append(step)
        else:
            left_alone[str(assessment.log.topic_partition)] = why_left_alone(assessment)
    return Plan(now_ms, tuple(steps), left_alone)


def retention_step(log: Log, now_ms: int) -> Step | None:
    """What retention does to one log now; null if nothing."""
    retention = retention_of(log, now_ms)
    if not retention.old:
        return None
    first_dirty_offset = log.log_start_offset if log.checkpoint is None else log.checkpoint
    return Step(
        kind=StepKind.RETAIN,
        trigger=Trigger.RETENTION,
        topic_partition=log.topic_partition,
        segments=retention.segments,
        first_dirty_offset=first_dirty_offset,
        end_offset=first_dirty_offset,
        checkpoint=log.checkpoint,
        log_start_offset=log.log_start_offset,
        now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        segment_bytes=log.config.segment_bytes,
        strategy=log.config.strategy,
        cleanable_ratio=0.0,
        earliest_uncompacted_ms=None,
        new_log_start_offset=retention.log_start_offset,
        watermarks_path=log.watermarks_path,
    )


def make_retention_plan(logs: Iterable[Log], now_ms: int) -> Plan:
    """Plan what retention removes from the given logs, in the order of their names."""
    in_order = sorted(logs, key=lambda log: log.topic_partition)
    steps = [step for log in in_order if (step := retention_step(log, now_ms))]
    spared = [log.topic_partition for log in in_order if log.topic_partition not in {s.topic_partition for s in steps}]
    left_alone = {str(topic_partition): "no segment is old" for topic_partition in spared}
    return Plan(now_ms, tuple(steps), left_alone)


def why_left_alone(assessment: Assessment) -> str:
    """One line on why a log is not cleaned now."""
    config, sections = assessment.log.config, assessment.sections
    if not config.is_compacted:
        return f"cleanup.policy is {','.join(config.cleanup_policy) or 'empty'}: it is not compacted"
    uncleanable = assessment.log.uncleanable
    if uncleanable and uncleanable.is_waiting(assessment.now_ms):
        return (
            f"uncleanable since {iso_time(uncleanable.since_ms)}, next try at {iso_time(uncleanable.retry_at_ms)}: "
            f"{uncleanable.attempts} cleans failed, the last with: {uncleanable.reason}"
        )
    if not sections.dirty:
        return "clean: nothing was appended since its last clean"
    if not sections.cleanable:
        return _why_nothing_is_cleanable(assessment)
    return (
        f"dirty ratio {assessment.cleanable_ratio:.2f} is not above "
        f"min.cleanable.dirty.ratio={config.min_cleanable_dirty_ratio} and no record is past its maximum lag"
    )


def _why_nothing_is_cleanable(assessment: Assessment) -> str:
    log, sections = assessment.log, assessment.sections
    if sections.first_uncleanable_dirty_offset == log.last_stable_offset:
        return f"all dirty records wait for the transaction that begins at offset {log.last_stable_offset}"
    if sections.uncleanable:
        return f"all dirty records wait for min.compaction.lag.ms={log.config.min_compaction_lag_ms}"
    return "all dirty records are in the active segment"


def describe_step(step: Step) -> str:
    """One line on what a step will do and why."""
    dirty = step.dirty
    if step.kind is StepKind.RETAIN:
        return (
            f"{step.topic_partition}: remove {counted(len(step.segments), 'old segment')} "
            f"({total_bytes(step.segments)} bytes), "
            f"log start offset {step.log_start_offset} -> {step.new_log_start_offset}"
        )
    if step.kind is StepKind.EXPIRE:
        return (
            f"{step.topic_partition}: expire tombstones in {counted(len(step.segments), 'segment')} "
            f"({total_bytes(step.segments)} bytes), {step.trigger}"
        )
    return (
        f"{step.topic_partition}: compact offsets [{step.first_dirty_offset}, {step.end_offset}) of "
        f"{counted(len(dirty), 'dirty segment')} ({total_bytes(dirty)} bytes) into "
        f"{counted(len(step.segments) - len(dirty), 'clean one')}, "
        f"dirty ratio {step.cleanable_ratio:.2f}, {step.trigger}"
    )
