"""What a pass will do, as data: the same plan is run, shown by ``keptlog plan``, explained, and tested.

A plan is a list of steps (``steps``), one for each log that it touches, and for every other log why it is left alone.
Cleans and retention are planned apart.

Names: a *plan* is a description, a *staged* segment is written but invisible, a commit makes it *live*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from keptlog.errors import KeptlogError
from keptlog.log.assessment import Assessment, Trigger
from keptlog.log.broker import CLEANER_DISABLED, BrokerConfig
from keptlog.log.offset_map import UNBOUNDED
from keptlog.log.retention import never_old, retention_of, why_unsettled
from keptlog.log.sections import expirable
from keptlog.log.segment import Log, total_bytes
from keptlog.log.steps import ANY_BYTES, CleanStep, Compact, Drop, Expire, Retain, Step, in_legs
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.log.words.units import in_words, size

S_co = TypeVar("S_co", bound=Step, covariant=True)


@dataclass(frozen=True, slots=True)
class Plan(Generic[S_co]):
    """Steps in the order of urgency, and for every other log why it is left alone."""

    now_ms: int
    steps: tuple[S_co, ...]
    left_alone: dict[str, str]
    """Topic-partition to reason."""
    unplanned: Mapping[str, KeptlogError] = field(default_factory=dict)
    """Topic to why nobody can tell what is to be done to its logs; they are in neither of the others."""


CleanPlan = Plan[CleanStep]
RetentionPlan = Plan[Retain]


def plan_step(
    assessment: Assessment, broker: BrokerConfig | None = None, *, requested: bool = False
) -> CleanStep | None:
    """What to do about one log now; null if nothing. Without a ``broker`` its offset map is bounded by nothing.

    ``requested`` cleans whatever is cleanable, without asking the ratio or the lag, and an uncleanable log before its
    time. A compaction that would leave tombstones past their horizon takes turns with their expiry: where new data
    always comes, nothing else would expire them, and an expiry may have more than one pass to do.
    """
    trigger = assessment.trigger
    is_asked_for = requested and assessment.log.config.is_compacted and bool(assessment.sections.cleanable)
    if is_asked_for and trigger in {None, Trigger.TOMBSTONE_EXPIRY}:
        trigger = Trigger.REQUESTED
    if trigger is None:
        return None
    if trigger is Trigger.TOMBSTONE_EXPIRY:
        return _expiry(assessment, broker)
    step = _compaction(assessment, trigger, broker)
    if step and step.leaves_tombstones and is_turn_of_expiry(assessment):
        return _expiry(assessment, broker) or step
    return step


def is_turn_of_expiry(assessment: Assessment) -> bool:
    """Whether tombstones are past their horizon, and the last pass over their log was not an expiry already.

    No times are compared: a horizon is the cleaner's, and the timestamp of a record its producer's, of whatever age.
    """
    expiry_ms = assessment.earliest_expiry_ms
    return expiry_ms is not None and expiry_ms <= assessment.now_ms and not assessment.log.last_was_expiry


def _compaction(assessment: Assessment, trigger: Trigger, broker: BrokerConfig | None) -> Compact | None:
    log, config = assessment.log, assessment.log.config
    end_offset = assessment.sections.first_uncleanable_offset
    segments = tuple(s for s in log.segments if s.base_offset < end_offset)
    if not segments:
        return None
    commit_max_bytes = broker.keptlog_cleaner_commit_max_bytes if broker else ANY_BYTES
    return Compact(
        topic_partition=log.topic_partition,
        trigger=trigger,
        segments=segments,
        first_dirty_offset=assessment.sections.first_dirty_offset,
        end_offset=end_offset,
        checkpoint=log.checkpoint,
        log_start_offset=log.log_start_offset,
        now_ms=assessment.now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        strategy=config.strategy,
        cleanable_ratio=assessment.cleanable_ratio,
        earliest_uncompacted_ms=assessment.earliest_uncompacted_ms,
        map_capacity=broker.map_capacity(config.strategy) if broker else UNBOUNDED,
        commit_max_bytes=commit_max_bytes,
        leaves_tombstones=config.strategy.has_versions and total_bytes(segments) > commit_max_bytes,
        watermark_retention_ms=config.keptlog_watermark_retention_ms,
        watermarks_path=log.watermarks_path,
        holds=log.holds,
        topic_id=log.topic_id,
    )


def _expiry(assessment: Assessment, broker: BrokerConfig | None) -> Expire | None:
    log, config = assessment.log, assessment.log.config
    now_ms, holds = assessment.now_ms, log.holds
    stamped = expirable(log, assessment.sections)
    with_expired = (s for s in stamped if s.has_expired_tombstone(holds.due_horizon_ms(s, now_ms)))
    segments = in_legs(with_expired, broker.keptlog_cleaner_commit_max_bytes if broker else ANY_BYTES)[0]
    if not segments:
        return None
    return Expire(
        topic_partition=log.topic_partition,
        segments=segments,
        first_dirty_offset=assessment.sections.first_dirty_offset,
        checkpoint=log.checkpoint,
        log_start_offset=log.log_start_offset,
        now_ms=now_ms,
        segment_bytes=config.segment_bytes,
        strategy=config.strategy,
        cleanable_ratio=assessment.cleanable_ratio,
        watermark_retention_ms=config.keptlog_watermark_retention_ms,
        watermarks_path=log.watermarks_path,
        holds=holds,
        topic_id=log.topic_id,
    )


def make_plan(
    assessments: Iterable[Assessment], now_ms: int, broker: BrokerConfig | None = None, *, requested: bool = False
) -> CleanPlan:
    """Plan a pass over the given logs, most urgent first."""
    return plan_of((decide(each, broker, requested=requested) for each in assessments), now_ms)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done to one log, or why it is left alone, and how urgent that is beside others."""

    name: TopicPartition
    urgency: tuple[int, float, float]
    step: CleanStep | None
    why_not: str = ""


def decide(assessment: Assessment, broker: BrokerConfig | None = None, *, requested: bool = False) -> Decision:
    """What a pass does to one log; all that is asked of the log itself is asked here."""
    step = plan_step(assessment, broker, requested=requested)
    why_not = "" if step else why_left_alone(assessment)
    return Decision(assessment.log.topic_partition, assessment.urgency, step, why_not)


def plan_of(
    decisions: Iterable[Decision], now_ms: int, unplanned: Mapping[str, KeptlogError] | None = None
) -> CleanPlan:
    """The plan of a pass in which this is done, most urgent first."""
    in_order = sorted(decisions, key=lambda each: (each.urgency, each.name))
    left_alone = {str(each.name): each.why_not for each in in_order if not each.step}
    return Plan(now_ms, tuple(each.step for each in in_order if each.step), left_alone, unplanned or {})


def retention_step(log: Log, now_ms: int) -> Retain | None:
    """What retention does to one log now; null if nothing."""
    retention = retention_of(log, now_ms)
    if not retention.old:
        return None
    return Retain(
        topic_partition=log.topic_partition,
        segments=retention.segments,
        new_log_start_offset=retention.log_start_offset,
        checkpoint=log.checkpoint,
        log_start_offset=log.log_start_offset,
        now_ms=now_ms,
        watermarks_path=log.watermarks_path,
        topic_id=log.topic_id,
    )


def make_retention_plan(logs: Iterable[Log], now_ms: int) -> RetentionPlan:
    """Plan what retention removes from the given logs, in the order of their names."""
    in_order = sorted(logs, key=lambda log: log.topic_partition)
    steps = [step for log in in_order if (step := retention_step(log, now_ms))]
    retained = {step.topic_partition for step in steps}
    left_alone = {
        str(log.topic_partition): why_unsettled(log, now_ms) or _why_none_is_old(log)
        for log in in_order
        if log.topic_partition not in retained
    }
    return Plan(now_ms, tuple(steps), left_alone)


def _why_none_is_old(log: Log) -> str:
    if log.config.has_retention and log.config.retention_ms >= 0 and never_old(log) in log.segments[:1]:
        return (
            "its oldest segment has no timestamps, so that nothing goes by its age: delete its records "
            "(keptlog delete-records), or set retention.bytes"
        )
    return "no segment is old"


def why_off(log: Log, broker: BrokerConfig | None) -> str | None:
    """Why nothing is cleaned or retained of a log, whatever it is like; null if the broker settings allow it."""
    is_off = broker is not None and not broker.log_cleaner_enable and log.config.is_compacted
    return CLEANER_DISABLED if is_off else None


def why_left_alone(assessment: Assessment) -> str:
    """One line on why a log is not cleaned now; who holds its tombstones is said too."""
    held = [holding.told() for holding in assessment.holdings[:1]]
    return "; ".join([_why_not_due(assessment), *held])


def _why_not_due(assessment: Assessment) -> str:
    config, sections = assessment.log.config, assessment.sections
    if not config.is_compacted:
        return f"cleanup.policy is {config.policy_text}: it is not compacted"
    uncleanable = assessment.log.uncleanable
    if uncleanable and uncleanable.is_waiting(assessment.now_ms):
        return uncleanable.told(assessment.now_ms)
    if assessment.trigger:
        return f"due because of {assessment.trigger}, but no segment of it would change"
    if not sections.dirty:
        return _why_nothing_is_dirty(assessment.log)
    if not sections.cleanable:
        return _why_nothing_is_cleanable(assessment)
    return (
        f"dirty ratio {assessment.cleanable_ratio:.2f} is not above "
        f"min.cleanable.dirty.ratio={config.min_cleanable_dirty_ratio} and no record is past its maximum lag"
    )


def _why_nothing_is_dirty(log: Log) -> str:
    if log.segments or log.checkpoint is not None:
        return "clean: nothing was appended since its last clean"
    return "empty: none of its records is left" if log.log_end_offset else "empty: nothing was ever appended"


def _why_nothing_is_cleanable(assessment: Assessment) -> str:
    log, sections = assessment.log, assessment.sections
    if sections.first_uncleanable_dirty_offset == log.last_stable_offset:
        return f"all dirty records wait for the transaction that begins at offset {log.last_stable_offset}"
    if sections.uncleanable:
        lag = in_words("min.compaction.lag.ms", log.config.min_compaction_lag_ms)
        return f"all dirty records wait for min.compaction.lag.ms={lag}"
    return "all dirty records are in the active segment"


def describe_step(step: Step) -> str:
    """One line on what a step will do and why."""
    match step:
        case Retain():
            return (
                f"{step.topic_partition}: remove {counted(len(step.segments), 'old segment')} "
                f"({size(total_bytes(step.segments))}), "
                f"log start offset {step.log_start_offset} -> {step.new_log_start_offset}"
            )
        case Expire():
            return (
                f"{step.topic_partition}: expire tombstones in {counted(len(step.segments), 'segment')} "
                f"({size(total_bytes(step.segments))}), {step.trigger}"
            )
        case Drop():
            return (
                f"{step.topic_partition}: drop the records of {counted(len(step.end_offsets), 'key')} below offset "
                f"{step.end_offset} from {counted(len(step.segments), 'segment')} ({size(total_bytes(step.segments))})"
            )
        case Compact(dirty=dirty):
            return (
                f"{step.topic_partition}: compact offsets [{step.first_dirty_offset}, {step.end_offset}) of "
                f"{counted(len(dirty), 'dirty segment')} ({size(total_bytes(dirty))}) into "
                f"{counted(len(step.segments) - len(dirty), 'clean one')}, "
                f"dirty ratio {step.cleanable_ratio:.2f}, {step.trigger}"
                + (f", in up to {len(step.legs)} commits" if len(step.legs) > 1 else "")
            )
