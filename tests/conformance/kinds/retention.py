"""``retention``: Kafka's ``deleteOldSegments``, against ``keptlog.log.retention``."""

from __future__ import annotations

from dataclasses import replace

from keptlog.log.config import TopicConfig
from keptlog.log.retention import RetentionRule, retention_of
from keptlog.log.segment import Log
from keptlog.log.topic_partition import TopicPartition
from tests.conformance.cases import Difference, Fields, case_fields, settings_of, understood
from tests.conformance.kinds.select import segments_of


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, {"config", "log_start"}, {"segments", "leo", "steps"})
    log = Log(
        TopicPartition("t", 0),
        TopicConfig.of(settings_of(fields.get("config", {}))),
        segments_of(fields["segments"], fields["leo"]),
        fields.get("log_start", 0),
        fields["leo"],
    )
    differences: list[Difference] = []
    for step in fields["steps"]:
        understood(step, "step", {"hw", "log_start"}, {"now", "expect"})
        log = replace(log, log_start_offset=step.get("log_start", log.log_start_offset))
        retention = retention_of(log, step["now"], high_watermark=step.get("hw"))
        gone = len(retention.old)
        is_emptied = gone == len(log.segments)
        if is_emptied and any(each.rule is RetentionRule.LOG_START_OFFSET for each in retention.old[-1:]):
            differences.append(Difference(14, "the last segment lies below the log start and goes; Kafka keeps it"))
            gone -= 1
        log = replace(log, segments=log.segments[gone:], log_start_offset=retention.log_start_offset)
        _check(log, gone, understood(step["expect"], "expect", {"n_segments", "log_start", "segment_bases", "deleted"}))
        if not log.segments:
            differences.append(Difference(14, "all goes, and no empty active segment takes its place"))
    return differences


def _check(log: Log, gone: int, expect: Fields) -> None:
    # Kafka puts an empty active segment at the log end when nothing else is left.
    bases = [segment.base_offset for segment in log.segments] or [log.log_end_offset]
    actual = {"n_segments": len(bases), "log_start": log.log_start_offset, "segment_bases": bases, "deleted": gone}
    assert {name: actual[name] for name in expect} == expect
