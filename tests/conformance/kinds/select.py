"""``select``: one round of Kafka's ``grabFilthiestCompactedLog``, against ``keptlog.log.assessment``.

A case says which segment is active; keptlog derives that, and its clock closes an idle one (ADR 5). So the judgement is
made with the case's active segment, and where the clock would have closed it, that is told as a difference.

Kafka takes no lag from a segment without a first timestamp, keptlog takes one from its largest (ADR 9). Such a log is
judged twice: as it is, and with these segments too young to be late, which must be what Kafka says of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from keptlog.log.assessment import Assessment, Trigger, assess, in_order_of_urgency
from keptlog.log.config import TopicConfig
from keptlog.log.roll import active_segments
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.told.metrics import cleaner_metrics
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Uncleanable
from tests.conformance.cases import (
    Difference,
    Fields,
    NotUnderstoodError,
    as_text,
    case_fields,
    compacted,
    settings_of,
    understood,
)

_LOG = {"policy", "log_start", "lso", "hw", "checkpoint", "config", "uncleanable", "state"}
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

_OF_LAG = {"need_compaction_now", "max_compaction_delay_ms"}

_STATE = re.compile(r"in_progress|aborted|paused\(\d+\)")
_NEVER_LATE_MS = 2**62


@dataclass(frozen=True)
class Judged:
    """One log of a case."""

    name: str
    here: Assessment
    """What keptlog says."""
    assessment: Assessment
    """The same, but for the lag of segments that have no first timestamp: what Kafka says."""
    in_progress: bool
    has_active: bool
    """Whether there is anything in the active segment."""
    closed_by_clock: bool
    is_compacted: bool
    """Whether Kafka's cleaner would ever look at it. What a case tells of one log is asked of any."""

    @property
    def is_late_only_here(self) -> bool:
        return self.here.max_compaction_delay_ms > self.assessment.max_compaction_delay_ms

    @property
    def is_held_up_by_file(self) -> bool:
        """Whether a segment without timestamps is too young in Kafka, by the time of its file."""
        return len(self.here.sections.cleanable) > len(self.assessment.sections.cleanable)

    @property
    def covered_active(self) -> Segment | None:
        """The active segment if nothing is dirty, so that not even this one is: Kafka's clean would end at its base."""
        segments = self.here.log.segments
        return segments[-1] if self.has_active and not self.here.sections.dirty else None

    @property
    def is_uncleanable(self) -> bool:
        return self.assessment.log.uncleanable is not None

    @property
    def is_seen(self) -> bool:
        """Whether Kafka looks at it at all in a round: resets its checkpoint, counts its delay, and may choose it."""
        return self.is_compacted and not self.in_progress and not self.is_uncleanable


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
    seen = {name: each.assessment for name, each in judged.items() if each.is_seen}
    differences += [
        Difference(9, f"{name} has segments whose first timestamp is missing: they count from another one, not never")
        for name, each in judged.items()
        if each.is_late_only_here
    ]
    differences += [
        Difference(17, f"{name} has segments without timestamps, and a file does not tell here how old it is")
        for name, each in judged.items()
        if each.is_held_up_by_file
    ]
    _check_sums(expect, seen, fields["now"])
    if "max_compaction_delay_ms" in expect:
        differences += [
            Difference(16, f"{name} is late although it is uncleanable; Kafka counts that no more")
            for name, each in judged.items()
            if each.is_uncleanable and each.here.max_compaction_delay_ms > expect["max_compaction_delay_ms"]
        ]
    if "selected" in expect:
        differences += _check_selected(expect, judged, in_order_of_urgency(seen.values()))
    for name, wanted in expect.get("per_log", {}).items():
        differences += _check_log(judged[name], understood(wanted, name, _PER_LOG))
    return differences


def _judge(fields: Fields, now_ms: int) -> Judged:
    understood(fields, "log", _LOG, {"name", "leo", "segments"})
    policy = as_text(fields.get("policy", "compact"))
    given = {"cleanup.policy": policy} | settings_of(fields.get("config", {}))
    config = TopicConfig.of(given)
    # Kafka's last stable offset is never above its high watermark.
    stable = [offset for offset in (fields.get("lso"), fields.get("hw")) if offset is not None]
    log = Log(
        TopicPartition(fields["name"], 0),
        TopicConfig.of(compacted(given)),
        segments_of(fields["segments"], fields["leo"]),
        fields.get("log_start", 0),
        fields["leo"],
        fields.get("checkpoint"),
        last_stable_offset=min(stable, default=None),
        uncleanable=Uncleanable("it failed", 0, 1, now_ms + 1) if fields.get("uncleanable") else None,
    )
    has_active = bool(fields["segments"] and fields["segments"][-1]["size"])
    active = log.segments[-1:] if has_active else ()
    closed_by_clock = has_active and config.is_compacted and not active_segments(active, config, now_ms)
    of_kafka = with_file_times(_without_untimed(log), fields["segments"])
    here, kafkas = (_assessed(each, now_ms, has_active=has_active) for each in (log, of_kafka))
    assert here.max_compaction_delay_ms >= kafkas.max_compaction_delay_ms
    in_progress = _has_state(fields.get("state"))
    return Judged(fields["name"], here, kafkas, in_progress, has_active, closed_by_clock, config.is_compacted)


def _assessed(log: Log, now_ms: int, *, has_active: bool) -> Assessment:
    return assess(log, now_ms, log.segments[-1:] if has_active else ())


def _without_untimed(log: Log) -> Log:
    """The log as Kafka measures its lag; first timestamps decide nothing else where the active segment is given."""
    segments = [
        replace(each, first_timestamp_ms=_NEVER_LATE_MS) if each.first_timestamp_ms <= 0 else each
        for each in log.segments
    ]
    return replace(log, segments=tuple(segments))


def with_file_times(log: Log, described: Sequence[Fields]) -> Log:
    """The log as Kafka measures its age: a segment without timestamps is as old as its file, if a case tells."""
    modified_ms = {each["base"]: each["mtime"] for each in described if each.get("mtime") is not None}
    segments = [
        replace(each, largest_timestamp_ms=modified_ms.get(each.base_offset, -1))
        if each.largest_timestamp_ms < 0
        else each
        for each in log.segments
    ]
    return replace(log, segments=tuple(segments))


def _has_state(state: str | None) -> bool:
    """Whether the cleaner is at this log already."""
    if state is None or state == "none":
        return False
    if not _STATE.fullmatch(state):
        raise NotUnderstoodError(f"there is no cleaning state {state!r}")
    return True


def segments_of(described: Sequence[Fields], log_end_offset: int) -> tuple[Segment, ...]:
    """The segments but for an empty active one, which has no file here.

    One that is empty in the middle has none either, but in Kafka it has a base, where a clean may end.
    """
    ends = [*(each["base"] for each in described), log_end_offset][1:]
    segments = [_segment(each, end - 1) for each, end in zip(described, ends, strict=True)]
    return tuple(segments if segments and segments[-1].size_bytes else segments[:-1])


def _segment(fields: Fields, last_offset: int) -> Segment:
    understood(fields, "segment", {"first_ts", "largest_ts", "mtime"}, {"base", "size"})
    first_ms, largest_ms = fields.get("first_ts"), fields.get("largest_ts")
    largest_ms = -1 if largest_ms is None else largest_ms
    return Segment(
        path=f"{fields['base']}.parquet",
        base_offset=fields["base"],
        last_offset=last_offset,
        first_timestamp_ms=largest_ms if first_ms is None else first_ms,
        largest_timestamp_ms=largest_ms,
        record_count=last_offset - fields["base"] + 1,
        size_bytes=fields["size"],
    )


def _check_sums(expect: Fields, seen: Mapping[str, Assessment], now_ms: int) -> None:
    """``seen`` are the logs that Kafka looks at."""
    if "max_dirty_percent" in expect:
        assert cleaner_metrics(seen.values(), {}, {}, now_ms).max_dirty_percent == expect["max_dirty_percent"]
    if "max_compaction_delay_ms" in expect:
        wanted_ms = expect["max_compaction_delay_ms"]
        delay_ms = max((each.max_compaction_delay_ms for each in seen.values()), default=0)
        assert delay_ms == wanted_ms
    if "cleanable_partitions" in expect:
        assert len(in_order_of_urgency(seen.values())) == expect["cleanable_partitions"]
    if "checkpoints_reset" in expect:
        sections = {name: each.sections for name, each in seen.items() if each.sections.checkpoint_reset}
        assert {name: each.first_dirty_offset for name, each in sections.items()} == expect["checkpoints_reset"]


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


def _check_log(judged: Judged, wanted: Fields) -> list[Difference]:
    found, sections, covered = judged.assessment, judged.assessment.sections, judged.covered_active
    actual = {
        "ratio": found.cleanable_ratio,
        "force_checkpoint": sections.checkpoint_reset is not None,
        "first_dirty": sections.first_dirty_offset,
        "first_uncleanable_dirty": sections.first_uncleanable_dirty_offset,
        "first_uncleanable_segment": covered.base_offset if covered else sections.first_uncleanable_offset,
        "total_bytes": total_bytes(sections.clean) + total_bytes(sections.cleanable),
        "clean_bytes": total_bytes(sections.clean),
        "cleanable_bytes": total_bytes(sections.cleanable),
        "need_compaction_now": found.max_compaction_delay_ms > 0,
        "max_compaction_delay_ms": found.max_compaction_delay_ms,
    }
    for name, value in wanted.items():
        if name == "ratio" and (value is None or math.isnan(value)):
            # Kafka divides by zero; nothing is there, and nobody is chosen for it.
            assert actual["total_bytes"] == 0
        elif name in _OF_LAG and not judged.is_compacted and not value:
            pass  # asked of a round, which leaves this log out
        else:
            assert math.isclose(actual[name], value, rel_tol=1e-9), (name, actual[name], value)
    if covered and "first_uncleanable_segment" in wanted:
        return [Difference(5, f"all of {judged.name} is clean, so none of its segments is active")]
    return []
