"""Which old segments go, whatever their keys: Kafka's ``UnifiedLog.deleteOldSegments`` over a log of files.

With ``delete`` in the policy, three rules run one after the other, each from the oldest segment on, and each stops at
the first segment that it spares, so that what goes is always a prefix:

1. **log start**: all of the segment lies below the log start offset;
2. **size**: without the segment the log still is at least ``retention.bytes`` large;
3. **time**: its largest timestamp is more than ``retention.ms`` ago. One in the future holds back all that follows.

Without ``delete``, compacted or not, only the first rule runs. The log start offset moves behind what went:

    [ 0..9 ][10..19][20..29]   [35..39]      retention.ms passed for the first three
                            ^ log start

Not to the first record that is left: what a clean has removed before it was not missed by who has read all that went.
Kafka's segment keeps the base offset that it had before such a clean.

A rule runs only if its settings are known of the topic: an older keptlog left those that a topic does not set to each
machine, and another one's deletes for ever what nobody wanted to lose. Such a log is left alone, with the reason.

The active segment goes too if a rule says so. Kafka puts an empty one in its place; here no file is needed for that:
a log without segments begins where it ends. A segment without timestamps is never too old; Kafka asks for the age of
its file, which a rewritten data file does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from keptlog.errors import InvalidConfig
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.setting import as_text
from keptlog.log.words.units import LONG_MAX, duration, in_words, size

TIME_SETTINGS = ("cleanup.policy", "retention.ms")
"""By which the rule by time judges."""


class RetentionRule(StrEnum):
    """Why a segment goes."""

    LOG_START_OFFSET = "log_start_offset"
    RETENTION_BYTES = "retention_bytes"
    RETENTION_MS = "retention_ms"


@dataclass(frozen=True, slots=True)
class OldSegment:
    """A segment that goes, and why."""

    segment: Segment
    rule: RetentionRule
    why: str
    """The rule with the values it compared."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What retention takes from one log."""

    old: tuple[OldSegment, ...]
    log_start_offset: int
    """After it."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(each.segment for each in self.old)


def retention_of(log: Log, now_ms: int, *, high_watermark: int | None = None) -> Retention:
    """Which segments of a log go at ``now_ms``. Only what lies below ``high_watermark`` may, by default the log end.

    A log here has no high watermark: all that was committed counts. Comparisons with Kafka's own retention give one.
    """
    if not log.config.has_retention and (not log.segments or log.segments[0].last_offset >= log.log_start_offset):
        return Retention((), log.log_start_offset)  # nearly every log of a home is looked at for nothing
    high_watermark = log.log_end_offset if high_watermark is None else high_watermark
    ends = [segment.base_offset for segment in log.segments[1:]] + [log.log_end_offset]
    deletable = [s for s, _ in takewhile(lambda pair: pair[1] <= high_watermark, zip(log.segments, ends, strict=False))]
    old: list[OldSegment] = []
    for rule, names in _RULES:
        if names and (not log.config.has_retention or set(names) & set(log.config.unsettled)):
            continue
        old += rule(log, deletable[len(old) :], total_bytes(log.segments[len(old) :]), now_ms)
    if not old:
        return Retention((), log.log_start_offset)
    is_all = len(old) == len(log.segments)
    gone_to = log.log_end_offset if is_all else old[-1].segment.last_offset + 1
    return Retention(tuple(old), max(log.log_start_offset, gone_to))


def why_unsettled(log: Log, now_ms: int) -> str | None:
    """Why segments stay that are old by what this machine's broker settings say; null if there are none."""
    if not log.config.has_retention or not log.config.unsettled:
        return None
    settled = replace(log, config=replace(log.config, unsettled=()))
    if len(retention_of(settled, now_ms).old) == len(retention_of(log, now_ms).old):
        return None
    names = [
        name for name in dict.fromkeys(name for _, names in _RULES for name in names) if name in log.config.unsettled
    ]
    return (
        f"segments that are old by this machine's {' and '.join(names)} stay, because another machine may have others "
        f"and the topic has none; if these are right: {how_to_settle(log, names)}"
    )


def how_to_settle(log: Log, names: Iterable[str]) -> str:
    """The command that gives a topic settings of its own, as this machine has them."""
    here = {each.setting.name: as_text(each.value) for each in log.config.resolved}
    options = " ".join(f"--config {name}={here.get(name, '')}" for name in names)
    return f"keptlog topic alter {log.topic_partition.topic} {options}"


def never_old(log: Log) -> Segment | None:
    """The first segment that never goes by its age, and so keeps all behind it: one without timestamps."""
    shown = (each for each in log.segments if each.last_offset >= log.log_start_offset)
    return next((each for each in shown if each.largest_timestamp_ms < 0), None)


def goes_by_age(log: Log) -> bool:
    """Whether the rule by time takes all that there is, sooner or later."""
    return _is_by_age(log) and never_old(log) is None


def goes_by_age_to(log: Log) -> int:
    """Below which offset the rule by time takes all that there is, sooner or later; 0 if it takes nothing."""
    if not _is_by_age(log):
        return 0
    kept = never_old(log)
    return LONG_MAX if kept is None else kept.base_offset


def oldest_goes_ms(log: Log) -> int | None:
    """When the oldest segment of a log is too old by ``retention.ms``; null if it never goes by its age."""
    if not _is_by_age(log) or not log.segments or log.segments[0].largest_timestamp_ms < 0:
        return None
    return too_old_ms(log.segments[0].largest_timestamp_ms, log.config.retention_ms)


def too_old_ms(largest_timestamp_ms: int, retention_ms: int) -> int:
    """When a segment with this largest timestamp goes by its age: what is as old as ``retention.ms`` stays."""
    return largest_timestamp_ms + retention_ms + 1


def _is_by_age(log: Log) -> bool:
    config = log.config
    return config.has_retention and config.retention_ms >= 0 and not set(TIME_SETTINGS) & set(config.unsettled)


def log_start_after_deletion(log: Log, before_offset: int) -> int:
    """The log start offset once the records below ``before_offset`` are deleted; -1 means all there are.

    One below the log start has nothing to delete, as in Kafka (``Partition.deleteRecordsOnLeader``).

    Raises:
        InvalidConfig: the offset lies behind the log end, or is none.
    """
    offset = log.log_end_offset if before_offset == -1 else before_offset
    if not 0 <= offset <= log.log_end_offset:
        raise InvalidConfig(
            f"{log.topic_partition}: offset {before_offset} is out of range: records can be deleted before offsets "
            f"up to {log.log_end_offset}, or -1 for all"
        )
    return max(offset, log.log_start_offset)


_Rule = Callable[[Log, list[Segment], int, int], Iterable[OldSegment]]


def _below_log_start(log: Log, segments: list[Segment], _log_bytes: int, _now_ms: int) -> Iterable[OldSegment]:
    start = log.log_start_offset
    for segment in takewhile(lambda each: each.last_offset < start, segments):
        why = f"it ends at offset {segment.last_offset}, below the log start offset {start}"
        yield OldSegment(segment, RetentionRule.LOG_START_OFFSET, why)


def _above_size(log: Log, segments: list[Segment], log_bytes: int, _now_ms: int) -> Iterable[OldSegment]:
    limit_bytes = log.config.retention_bytes
    if limit_bytes < 0:
        return
    for segment in segments:
        log_bytes -= segment.size_bytes
        if log_bytes < limit_bytes:
            return
        without, limit = size(log_bytes), in_words("retention.bytes", limit_bytes)
        why = f"the log has {without} without it, retention.bytes={limit}"
        yield OldSegment(segment, RetentionRule.RETENTION_BYTES, why)


def _too_old(log: Log, segments: list[Segment], _log_bytes: int, now_ms: int) -> Iterable[OldSegment]:
    limit_ms = log.config.retention_ms
    if limit_ms < 0:
        return
    for segment in segments:
        age_ms = now_ms - segment.largest_timestamp_ms
        if segment.largest_timestamp_ms < 0 or age_ms <= limit_ms:
            return
        why = f"its latest record is {duration(age_ms)} old, retention.ms={in_words('retention.ms', limit_ms)}"
        yield OldSegment(segment, RetentionRule.RETENTION_MS, why)


_RULES: tuple[tuple[_Rule, tuple[str, ...]], ...] = (
    (_below_log_start, ()),
    (_above_size, ("cleanup.policy", "retention.bytes")),
    (_too_old, TIME_SETTINGS),
)
"""In the order in which they run, each with the settings by which it judges."""
