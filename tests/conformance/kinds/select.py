"""``select``: one round of Kafka's ``grabFilthiestCompactedLog``, against ``keptlog.log.assessment``.

A case says which segment is active; keptlog derives that, and its clock closes an idle one (ADR 5). So the judgement is
made with the case's active segment, and where the clock would have closed it, that is told as a difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from keptlog.log.assessment import Assessment, Trigger, assess, in_order_of_urgency
from keptlog.log.config import TopicConfig
from keptlog.log.metrics import cleaner_metrics
from keptlog.log.roll import active_segments
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Uncleanable
from tests.conformance.cases import Difference, Fields, case_fields, settings_of, understood

_LOG = {"policy", "log_start", "lso", "checkpoint", "config", "uncleanable", "state"}
_EXPECT = {
    "selected",
    "per_log",
    "max_dirty_percent",
    "first_dirty",
    "checkpoints_reset",
    "max_compaction_delay_ms",
    "cleanable_partitions",
}
_PER_LOG = {
    "ratio",
    "force_checkpoint",
    "first_dirty",
    "first_uncleanable_dirty",
    "first_uncleanable_segment",
    "total_bytes",
    "clean_bytes",
    "cleanable_bytes",
    "need_compaction_now",
    "max_compaction_delay_ms",
}


_OF_THE_LAG = {"need_compaction_now", "max_compaction_delay_ms"}


@dataclass(frozen=True)
class Judged:
    """One log of a case."""

    name: str
    assessment: Assessment
    in_progress: bool
    closed_by_clock: bool


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, set(), {"now", "logs", "expect"})
    expect = understood(fields["expect"], "expect", _EXPECT)
    judged = {each["name"]: _judge(each, fields["now"]) for each in fields["logs"]}
    differences = [
        Difference(5, f"the clock has closed the active segment of {name}")
        for name, each in judged.items()
        if each.closed_by_clock
    ]
    differences += [
        Difference(13, f"{name} is being cleaned; that is not a state here, and whoever commits second is refused")
        for name, each in judged.items()
        if each.in_progress
    ]
    free = [each.assessment for each in judged.values() if not each.in_progress]
    untimed = [name for name, each in judged.items() if _is_untimed(each.assessment)]
    differences += [
        Difference(9, f"{name} has segments whose first timestamp is missing: they count from another one, not never")
        for name in untimed
    ]
    _check_sums(expect, judged, free, fields["now"], is_untimed=bool(untimed))
    if "selected" in expect:
        differences += _check_selected(expect, judged, in_order_of_urgency(free))
    for name, wanted in expect.get("per_log", {}).items():
        _check_log(judged[name].assessment, understood(wanted, name, _PER_LOG))
    return differences


def _is_untimed(assessment: Assessment) -> bool:
    """Whether Kafka takes no lag from a segment that may be cleaned, and there is one that keptlog can take."""
    closed = (*assessment.sections.cleanable, *assessment.sections.uncleanable)
    return any(segment.first_timestamp_ms <= 0 < segment.largest_timestamp_ms for segment in closed)


def _judge(fields: Fields, now_ms: int) -> Judged:
    understood(fields, "log", _LOG, {"name", "leo", "segments"})
    config = TopicConfig.of({"cleanup.policy": fields.get("policy", "compact")} | settings_of(fields.get("config", {})))
    log = Log(
        TopicPartition(fields["name"], 0),
        config,
        segments_of(fields["segments"], fields["leo"]),
        fields.get("log_start", 0),
        fields["leo"],
        fields.get("checkpoint"),
        last_stable_offset=fields.get("lso"),
        uncleanable=Uncleanable("it failed", 0, 1, now_ms + 1) if fields.get("uncleanable") else None,
    )
    active = log.segments[-1:] if fields["segments"][-1]["size"] else ()
    closed_by_clock = bool(active) and config.is_compacted and not active_segments(active, config, now_ms)
    return Judged(fields["name"], assess(log, now_ms, active), fields.get("state") is not None, closed_by_clock)


def segments_of(described: Sequence[Fields], log_end_offset: int) -> tuple[Segment, ...]:
    """The segments that hold anything; an empty one has no file here."""
    ends = [each["base"] for each in described[1:]] + [log_end_offset]
    return tuple(_segment(each, end - 1) for each, end in zip(described, ends, strict=True) if each["size"])


def _segment(fields: Fields, last_offset: int) -> Segment:
    understood(fields, "segment", {"first_ts", "largest_ts"}, {"base", "size"})
    largest_ms = fields.get("largest_ts", -1)
    return Segment(
        path=f"{fields['base']}.parquet",
        base_offset=fields["base"],
        last_offset=last_offset,
        first_timestamp_ms=fields.get("first_ts", largest_ms),
        largest_timestamp_ms=largest_ms,
        record_count=last_offset - fields["base"] + 1,
        size_bytes=fields["size"],
    )


def _check_sums(
    expect: Fields, judged: dict[str, Judged], free: Sequence[Assessment], now_ms: int, *, is_untimed: bool
) -> None:
    if "max_dirty_percent" in expect:
        assert cleaner_metrics(free, {}, {}, now_ms).max_dirty_percent == expect["max_dirty_percent"]
    if "max_compaction_delay_ms" in expect:
        delay_ms = max(each.max_compaction_delay_ms for each in free)
        assert delay_ms == expect["max_compaction_delay_ms"] or (
            is_untimed and delay_ms > expect["max_compaction_delay_ms"]
        )
    if "cleanable_partitions" in expect:
        assert len(in_order_of_urgency(free)) == expect["cleanable_partitions"]
    if "checkpoints_reset" in expect:
        found = {
            name: each.assessment.sections.first_dirty_offset
            for name, each in judged.items()
            if each.assessment.sections.checkpoint_reset
        }
        assert found == expect["checkpoints_reset"]


def _check_selected(expect: Fields, judged: dict[str, Judged], due: Sequence[Assessment]) -> list[Difference]:
    selected = expect["selected"]
    assert bool(due) is (selected is not None), [str(each.log.topic_partition) for each in due]
    if selected is None:
        return []
    wanted, first = judged[selected].assessment, due[0]
    if "first_dirty" in expect:
        assert wanted.sections.first_dirty_offset == expect["first_dirty"]
    assert wanted in due
    if wanted is first or (wanted.trigger is first.trigger and wanted.cleanable_ratio == first.cleanable_ratio):
        return []
    assert first.trigger is Trigger.MAX_COMPACTION_LAG
    assert first.max_compaction_delay_ms > wanted.max_compaction_delay_ms
    return [Difference(4, f"{first.log.topic_partition.topic} is late and goes first, {selected} is only dirtier")]


def _check_log(found: Assessment, wanted: Fields) -> None:
    sections = found.sections
    actual = {
        "ratio": found.cleanable_ratio,
        "force_checkpoint": sections.checkpoint_reset is not None,
        "first_dirty": sections.first_dirty_offset,
        "first_uncleanable_dirty": sections.first_uncleanable_dirty_offset,
        "first_uncleanable_segment": sections.first_uncleanable_offset,
        "total_bytes": total_bytes(sections.clean) + total_bytes(sections.cleanable),
        "clean_bytes": total_bytes(sections.clean),
        "cleanable_bytes": total_bytes(sections.cleanable),
        "need_compaction_now": found.max_compaction_delay_ms > 0,
        "max_compaction_delay_ms": found.max_compaction_delay_ms,
    }
    for name, value in wanted.items():
        if name == "ratio" and value is None:  # Kafka divides by zero; nothing is there, and nobody is chosen for it
            assert actual["total_bytes"] == 0
        elif name in _OF_THE_LAG and _is_untimed(found):
            assert actual[name] >= value, (name, actual[name], value)
        else:
            assert math.isclose(actual[name], value, rel_tol=1e-9), (name, actual[name], value)
