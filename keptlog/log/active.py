"""Why the newest records of a log are not to be cleaned yet: they are in its active segment.

People wait for a clean that does not come, because a small log fills no segment. So it is said which rule keeps the
segment active, when the clock closes it, what else does, and how to have it closed sooner (``roll`` has the rules).
"""

from __future__ import annotations

from keptlog.log.assessment import Assessment
from keptlog.log.roll import closing_ms, oldest_ms
from keptlog.log.segment import total_bytes
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import has_date, iso_time
from keptlog.log.words.units import size


def why_active(assessment: Assessment) -> str | None:
    """One sentence on the active segment; null if there is none, or if the log is never cleaned."""
    active, config = assessment.sections.active, assessment.log.config
    if not active or not config.is_compacted:
        return None
    by_lag = config.max_compaction_lag_ms < config.segment_ms
    rule = "max.compaction.lag.ms" if by_lag else "segment.ms"
    closes_ms = closing_ms(active, config)
    when = f"closes it at {iso_time(closes_ms)}" if has_date(closes_ms) else "closes it never"
    held = f"{counted(sum(s.record_count for s in active), 'record')}, {size(total_bytes(active))}"
    last_ms = max(segment.largest_timestamp_ms for segment in active)
    # A shorter segment.ms counts from the oldest record, so the age of that one is what it must be below.
    age_ms = assessment.now_ms - min(map(oldest_ms, active))
    sooner = "" if age_ms <= 1 else _how(assessment, age_ms)
    ahead = f"; its records are of up to {iso_time(last_ms)}, which is to come" if last_ms > assessment.now_ms else ""
    return (
        f"the active segment (offsets {active[0].base_offset} to {active[-1].last_offset}, {held}) is never cleaned: "
        f"{rule} {when}, an append that makes it larger than segment.bytes={config.segment_bytes} sooner"
        f"{ahead}{sooner}"
    )


def _how(assessment: Assessment, age_ms: int) -> str:
    topic = assessment.log.topic_partition.topic
    return f"; to have it closed now: keptlog topic alter {topic} --config segment.ms={_below(age_ms)}"


def _below(age_ms: int) -> int:
    """A round number of ms below an age: a minute, an hour or a day reads better than 172800123."""
    return next((unit_ms for unit_ms in (86_400_000, 3_600_000, 60_000, 1000) if unit_ms < age_ms), 1)
