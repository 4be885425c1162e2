"""Why a log is cleaned now, or is not, and when it will be: the same judgement that a plan is made from, in words."""

from __future__ import annotations

from dataclasses import dataclass

from keptlog.log.active import why_active
from keptlog.log.assessment import Assessment, Trigger
from keptlog.log.broker import CLEANER_ENABLED, BrokerConfig
from keptlog.log.plan import is_turn_of_expiry, plan_step, why_left_alone, why_off
from keptlog.log.retention import oldest_goes_ms, retention_of
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.told.early_end import end_within_segment
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import has_date
from keptlog.log.words.units import duration, in_words, moment, next_moment


@dataclass(frozen=True, slots=True)
class SectionSummary:
    """One section of a log. ``end_offset`` is exclusive; both offsets are null for an empty section."""

    name: str
    base_offset: int | None
    end_offset: int | None
    segments: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The judgement on one log, ready to print or to send as JSON."""

    topic_partition: str
    verdict: str
    sections: tuple[SectionSummary, ...]
    rules: tuple[str, ...]
    """Each rule with the values it compared."""
    due: str
    obstacles: tuple[str, ...] = ()
    """What a clean would fail of, a sentence each: files that are missing or damaged, a disk without room."""


def explain(assessment: Assessment, broker: BrokerConfig | None = None, obstacles: tuple[str, ...] = ()) -> Explanation:
    """Put an assessment into words; ``obstacles`` are what was seen in storage."""
    sections = assessment.sections
    summaries = (
        summary("clean", sections.clean),
        summary("cleanable", sections.cleanable),
        summary("uncleanable", sections.uncleanable),
        summary("active", sections.active),
    )
    off = due_if_off(assessment, broker)
    due = _due(assessment, off)
    if obstacles and assessment.trigger and not off:
        due += ", but a clean would fail"
    name = str(assessment.log.topic_partition)
    return Explanation(name, verdict_under(assessment, broker), summaries, _rules(assessment, off), due, obstacles)


def summary(name: str, segments: tuple[Segment, ...]) -> SectionSummary:
    """The numbers of one section."""
    return SectionSummary(
        name=name,
        base_offset=segments[0].base_offset if segments else None,
        end_offset=segments[-1].last_offset + 1 if segments else None,
        segments=len(segments),
        records=sum(segment.record_count for segment in segments),
        bytes=total_bytes(segments),
    )


def due_if_off(assessment: Assessment, broker: BrokerConfig | None) -> str | None:
    """When a log is cleaned that its policy or the broker settings keep from it; null if neither does."""
    if not assessment.log.config.is_compacted:
        return f"never: cleanup.policy is {assessment.log.config.policy_text}"
    return f"when {CLEANER_ENABLED}" if why_off(assessment.log, broker) else None


def verdict_under(assessment: Assessment, broker: BrokerConfig | None) -> str:
    """The verdict where the broker settings may keep any log from being cleaned."""
    off = why_off(assessment.log, broker)
    return f"left alone: {off}" if off else verdict_on(assessment, broker)


def verdict_on(assessment: Assessment, broker: BrokerConfig | None = None) -> str:
    """Why a log is cleaned now, or is not, in one line."""
    trigger, verdict = assessment.trigger, _on(assessment, assessment.trigger)
    if trigger in {Trigger.MAX_COMPACTION_LAG, Trigger.DIRTY_RATIO} and is_turn_of_expiry(assessment):
        step = plan_step(assessment, broker)
        if step and step.trigger is Trigger.TOMBSTONE_EXPIRY:
            return f"{_on(assessment, step.trigger)}; the next pass is a clean: {verdict.partition(': ')[2]}"
    return verdict


def _on(assessment: Assessment, trigger: Trigger | None) -> str:
    match trigger:
        case Trigger.MAX_COMPACTION_LAG:
            late = duration(assessment.max_compaction_delay_ms)
            return f"to be cleaned now: a record is {late} past max.compaction.lag.ms"
        case Trigger.DIRTY_RATIO:
            return (
                f"to be cleaned now: dirty ratio {assessment.cleanable_ratio:.2f} is above "
                f"min.cleanable.dirty.ratio={assessment.log.config.min_cleanable_dirty_ratio}"
            )
        case Trigger.TOMBSTONE_EXPIRY:
            passed_ms = assessment.delete_expired_ms
            what = "the earliest delete horizon"
            if assessment.earliest_expiry_ms != assessment.earliest_delete_horizon_ms:
                what = "the time that readers had"
            return f"tombstones to be removed now: {what} passed {duration(passed_ms)} ago"
        case _:
            return f"left alone: {why_left_alone(assessment)}"


def _rules(assessment: Assessment, off: str | None) -> tuple[str, ...]:
    log, sections, now_ms = assessment.log, assessment.sections, assessment.now_ms
    config = log.config
    rules = [f"cleanup.policy={','.join(config.cleanup_policy)}"]
    if config.is_compacted:
        rules += _rules_before_a_clean(assessment)
    rules.append(
        f"{_set('segment.ms', config.segment_ms)}, {_set('segment.bytes', config.segment_bytes)}: "
        f"in the active segment: {counted(sum(s.record_count for s in sections.active), 'record')}"
    )
    if config.is_compacted:
        horizon_ms = assessment.earliest_delete_horizon_ms
        rules.append(
            f"{_set('delete.retention.ms', config.delete_retention_ms)}: "
            + (
                f"the earliest delete horizon {'passed' if horizon_ms <= now_ms else 'passes'} "
                f"{next_moment(horizon_ms, now_ms)}"
                if horizon_ms is not None
                else "no tombstone has a delete horizon"
            )
        )
    if active := why_active(assessment):
        rules.append(active)
    if config.is_compacted and config.strategy.has_versions:
        rules.append(f"compaction.strategy={config.strategy}: the latest record of a key has the highest version")
    if config.has_retention:
        rules.append(f"{_set('retention.ms', config.retention_ms)}, {_set('retention.bytes', config.retention_bytes)}")
    rules += [f"{old.segment.path} is to be removed, {old.rule}: {old.why}" for old in retention_of(log, now_ms).old]
    rules += [holding.told() for holding in assessment.holdings]
    if log.uncleanable:
        rules.append(log.uncleanable.told(now_ms, off))
    if log.cleaning_to is not None and log.cleaning_to > sections.first_dirty_offset:
        rules.append(
            f"cleans have removed records up to offset {log.cleaning_to} already: one in several commits is not over, "
            "or a repair gave up the checkpoint"
        )
    if ended := end_within_segment(sections, log.log_start_offset):
        rules.append(ended)
    if sections.checkpoint_reset:
        rules.append(sections.checkpoint_reset)
    return tuple(rules)


def _rules_before_a_clean(assessment: Assessment) -> tuple[str, ...]:
    """What is asked before a compacted log is cleaned; of another one nobody asks it."""
    config, oldest_ms = assessment.log.config, assessment.earliest_uncompacted_ms
    young = counted(sum(s.record_count for s in assessment.sections.uncleanable), "record")
    return (
        f"min.cleanable.dirty.ratio={config.min_cleanable_dirty_ratio}: the ratio is {assessment.cleanable_ratio:.4f}",
        f"{_set('max.compaction.lag.ms', config.max_compaction_lag_ms)}: "
        + (
            f"the oldest uncompacted record is of {moment(oldest_ms, assessment.now_ms)}"
            if oldest_ms is not None
            else "no record is uncompacted"
        ),
        f"{_set('min.compaction.lag.ms', config.min_compaction_lag_ms)}: too young: {young}",
    )


def _due(assessment: Assessment, off: str | None) -> str:
    log, now_ms = assessment.log, assessment.now_ms
    if off:
        return off if log.config.is_compacted else "; ".join(filter(None, (off, _retained(log, now_ms))))
    if assessment.trigger:
        return "now"
    due_ms, until_ms = assessment.due_ms, assessment.left_alone_until_ms
    if due_ms is not None and due_ms == until_ms:
        return f"at {moment(due_ms, now_ms)}, when it is tried again; new records change nothing of that"
    if until_ms is not None and not has_date(until_ms):
        return "never by itself: a clean of it failed"
    by_records = "when new records make it so"
    if until_ms is not None:
        by_records += f", not before {moment(until_ms, now_ms)}: a clean of it failed"
    return by_records if due_ms is None else f"by {moment(due_ms, now_ms)} at the earliest, or {by_records}"


def _retained(log: Log, now_ms: int) -> str | None:
    """When retention removes something of a log; null if it does not, or only new records could make it."""
    if old := retention_of(log, now_ms).old:
        return f"retention removes {counted(len(old), 'segment')} now"
    goes_ms = oldest_goes_ms(log)
    return None if goes_ms is None else f"retention removes its oldest segment {next_moment(goes_ms, now_ms)}"


def _set(name: str, value: int) -> str:
    return f"{name}={in_words(name, value)}"
