"""``retention``: Kafka's ``deleteOldSegments``, against ``keptlog.log.retention``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from keptlog.log.config import TopicConfig
from keptlog.log.retention import retention_of
from keptlog.log.segment import Log
from keptlog.log.topic_partition import TopicPartition
from tests.conformance.cases import Difference, Fields, case_fields, settings_of, understood
from tests.conformance.kinds.select import segments_of, with_file_times

_EXPECT = {"n_segments", "log_start", "segment_bases", "deleted"}


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, {"config", "log_start", "hw"}, {"segments", "leo", "steps"})
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
    high_watermark = fields.get("hw")
    for step in fields["steps"]:
        understood(step, "step", {"hw", "log_start"}, {"now", "expect"})
        expect = understood(step["expect"], "expect", _EXPECT)
        high_watermark = step.get("hw", high_watermark)
        log = replace(log, log_start_offset=step.get("log_start", log.log_start_offset))
        here = len(retention_of(log, step["now"], high_watermark=high_watermark).old)
        after: list[After] = []
        told = with_file_times(log, fields["segments"])
        for aged in range(_untimed(told) + 1):
            gone = _gone_in_kafka(told, aged, step["now"], high_watermark, has_empty_active=bool(empty_active))
            after.append(After.of(log, gone, empty_active))
        # Where the ages of files are not told, any number of untimed segments may be old; mostly it is none.
        kafkas = next((each for each in after if each.fits(expect)), after[0])
        assert kafkas.fits(expect), (kafkas, expect)
        by_records = _gone_in_kafka(log, 0, step["now"], high_watermark, has_empty_active=bool(empty_active))
        if kafkas.deleted != by_records:
            differences.append(Difference(14, "segments without timestamps stay; Kafka goes by the age of their files"))
        if here != by_records:
            # Only Kafka's last one may stay.
            assert here == len(log.segments) == by_records + 1, (here, by_records)
        if here > kafkas.deleted:
            differences.append(Difference(14, "the last segment lies below the log start and goes; Kafka keeps it"))
        log = replace(log, segments=log.segments[kafkas.deleted :], log_start_offset=kafkas.log_start)
        if not log.segments and not empty_active:
            differences.append(Difference(14, "all goes, and no empty active segment takes its place"))
    return differences


@dataclass(frozen=True)
class After:
    """What a step leaves in Kafka, under the names of what a case expects."""

    deleted: int
    log_start: int
    segment_bases: list[int]

    @classmethod
    def of(cls, log: Log, deleted: int, empty_active: list[int]) -> After:
        # Kafka puts an empty active segment at the log end when nothing else is left.
        bases = [segment.base_offset for segment in log.segments[deleted:]] + empty_active or [log.log_end_offset]
        log_start = max(log.log_start_offset, bases[0]) if deleted else log.log_start_offset
        return cls(deleted, log_start, bases)

    def fits(self, expect: Fields) -> bool:
        actual = asdict(self) | {"n_segments": len(self.segment_bases)}
        return {name: actual[name] for name in expect} == expect


def _untimed(log: Log) -> int:
    """How many segments without timestamps Kafka may judge by the age of their files."""
    is_by_time = log.config.has_retention and log.config.retention_ms >= 0
    return sum(segment.largest_timestamp_ms < 0 for segment in log.segments) if is_by_time else 0


def _gone_in_kafka(log: Log, aged: int, now_ms: int, high_watermark: int | None, *, has_empty_active: bool) -> int:
    """How many segments go in Kafka, where the files of the first so many untimed ones are old."""
    segments = list(log.segments)
    untimed = [index for index, segment in enumerate(segments) if segment.largest_timestamp_ms < 0]
    for index in untimed[:aged]:
        segments[index] = replace(segments[index], largest_timestamp_ms=0)
    if segments and not has_empty_active:
        # Kafka's active segment never goes for the log start alone, only for its age or size.
        log = replace(log, log_start_offset=min(log.log_start_offset, segments[-1].base_offset))
    return len(retention_of(replace(log, segments=tuple(segments)), now_ms, high_watermark=high_watermark).old)
