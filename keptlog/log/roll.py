"""Which segments are still active: Kafka's roll rule, applied to files that were appended whole.

Kafka decides at each append whether the active segment is closed first (``LogSegment.shouldRoll``). Here an append
writes its own file at once, so nothing needs closing; but the newest files stand together for Kafka's active segment
and are as untouchable as it. They are found again by walking the files as Kafka would have met them:

    [ 0..9 ][10..19][20..29] | [30..39][40..49]
            closed: by size    active
            or by time

A run is closed when the next file would make it larger than ``segment.bytes``, or when that file's timestamps lie more
than ``segment.ms`` (or ``max.compaction.lag.ms``, if smaller) after the run's first.

One complication. Kafka looks only when something is appended, so an idle log keeps its last records uncompacted for
ever (KAFKA-20664). Here the clock closes a run too: when it shows more than that time after the smallest timestamp in
the run. An old record may come behind young ones, and a clock that was ahead may have dated the run's first file.
"""

from __future__ import annotations

from collections.abc import Sequence

from keptlog.log.config import TopicConfig
from keptlog.log.segment import Segment


def active_segments(appended: Sequence[Segment], config: TopicConfig, now_ms: int) -> tuple[Segment, ...]:
    """The tail of ``appended`` (uncleaned files in offset order) that stands for Kafka's active segment."""
    run: list[Segment] = []
    run_bytes = 0
    for segment in appended:
        if run and _is_rolled(run[0], run_bytes, segment, config):
            run, run_bytes = [], 0
        run.append(segment)
        run_bytes += segment.size_bytes
    if run and now_ms >= closing_ms(run, config):
        return ()
    return tuple(run)


def closing_ms(active: Sequence[Segment], config: TopicConfig) -> int:
    """When the clock closes a run of active segments, if nothing is appended before."""
    return min(map(oldest_ms, active)) + config.max_segment_ms + 1


def oldest_ms(segment: Segment) -> int:
    """When the oldest record of a segment is dated; records without a time don't count unless there are no others."""
    return segment.first_timestamp_ms if segment.first_timestamp_ms > 0 else segment.largest_timestamp_ms


def _is_rolled(first: Segment, run_bytes: int, appended: Segment, config: TopicConfig) -> bool:
    is_full = run_bytes > config.segment_bytes - appended.size_bytes
    waited_ms = appended.largest_timestamp_ms - oldest_ms(first)
    return is_full or waited_ms > config.max_segment_ms
