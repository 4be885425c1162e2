"""``retention``: Kafka's ``deleteOldSegments``, against ``keptlog.log.retention``."""

from __future__ import annotations

from dataclasses import replace

from keptlog.log.config import TopicConfig
from keptlog.log.retention import RetentionRule, retention_of
from keptlog.log.segment import Log
from keptlog.log.topic_partition import TopicPartition
from tests.conformance.cases import Difference, Fields, case_fields, settings_of, understood
from tests.conformance.kinds.select import segments_of

_EXPECT = {"n_segments", "log_start", "segment_bases", "deleted"}


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, {"config", "log_start"}, {"segments", "leo", "steps"})
    log = Log(
        TopicPartition("t", 0),
        TopicConfig.of(settings_of(fields.get("config", {}))),
        segments_of(fields["segments"], fields["leo"]),
        fields.get("log_start", 0),
        fields["leo"],
    )
    # An empty active segment is no file here; Kafka never deletes it.
    empty_active = [each["base"] for each in fields["segments"][-1:] if not each["size"]]
    differences: list[Difference] = []
    high_watermark: int | None = None
    for step in fields["steps"]:
        understood(step, "step", {"hw", "log_start"}, {"now", "expect"})
        expect = understood(step["expect"], "expect", _EXPECT)
        high_watermark = step.get("hw", high_watermark)
        log = replace(log, log_start_offset=step.get("log_start", log.log_start_offset))
        retention = retention_of(log, step["now"], high_watermark=high_watermark)
        gone = len(retention.old)
        is_emptied = gone == len(log.segments) and not empty_active
        if is_emptied and any(each.rule is RetentionRule.LOG_START_OFFSET for each in retention.old[-1:]):
            differences.append(Difference(14, "the last segment lies below the log start and goes; Kafka keeps it"))
            gone -= 1
        stays = _older_there(log, gone, expect)
        if stays:
            differences.append(Difference(14, f"{stays} without timestamps stay; Kafka goes by the age of their files"))
            gone += stays
        log = replace(log, segments=log.segments[gone:], log_start_offset=_log_start(log, gone))
        _check(log, gone, expect, empty_active)
        if not log.segments and not empty_active:
            differences.append(Difference(14, "all goes, and no empty active segment takes its place"))
    return differences


def _log_start(log: Log, gone: int) -> int:
    """Once so many segments are gone."""
    if not gone:
        return log.log_start_offset
    left = log.segments[gone:]
    return max(log.log_start_offset, left[0].base_offset if left else log.log_end_offset)


def _older_there(log: Log, gone: int, expect: Fields) -> int:
    """How many segments more go in Kafka, by the age of their files, for none of them has a timestamp."""
    more = expect.get("deleted", gone) - gone
    untimed = [segment.largest_timestamp_ms < 0 for segment in log.segments[gone : gone + more]]
    is_by_time = log.config.has_retention and log.config.retention_ms >= 0
    return more if more > 0 and is_by_time and len(untimed) == more and all(untimed) else 0


def _check(log: Log, gone: int, expect: Fields, empty_active: list[int]) -> None:
    # Kafka puts an empty active segment at the log end when nothing else is left.
    bases = [segment.base_offset for segment in log.segments] + empty_active or [log.log_end_offset]
    actual = {"n_segments": len(bases), "log_start": log.log_start_offset, "segment_bases": bases, "deleted": gone}
    assert {name: actual[name] for name in expect} == expect
