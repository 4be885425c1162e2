"""What brings the open erasures of a topic on next, or until when nothing does: doctor and Dagster ask here.

What is stored with a topic is as old as the last look at its erasures. A setting may have been lowered since, a segment
closed, or the log emptied, so the logs as they are now are asked too, where they can be had. Which offsets an erasure
waits for is not stored, so it is told of all that it may be. The first of these holds:

    no log may have the first of it any more    a look, for they may be further by now
    retention takes what they wait for          retention, whatever brings them on else
    a clean passes some of it                   a clean
    nothing takes it, as the topic is set       nothing
    no clean comes, as the topic is set         nothing until it is old enough, then retention
    the clock has not come to the stored time   nothing, until then

``next_time`` says it of a single erasure, by its offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from keptlog.log.erasures.erasure import ErasureWay, first_base, passed_to
from keptlog.log.erasures.erasure_deadline import never_taken, why_not_taken
from keptlog.log.erasures.next_time import CleanTimes
from keptlog.log.erasures.open_erasures import BY_A_CLEAN, IN_LOG, ErasureNeed, NeedyErasures, OpenErasures
from keptlog.log.erasures.remembered import watermarks_end_ms
from keptlog.log.retention import goes_by_age, goes_by_age_to, retention_of, too_old_ms
from keptlog.log.sections import first_dirty_of
from keptlog.log.segment import Log, Segment
from keptlog.log.strategy import StrategyKind

LOOK = "look"
"""They are brought on by another look at them."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is next for those whose deadline is the earliest."""

    needy: NeedyErasures
    brought_on_by: str | None
    """An ``ErasureNeed``, perhaps another than theirs, or ``LOOK``; null if nothing can."""
    kept_until_ms: int | None = None
    """Until when nothing can."""
    is_any_by_age: bool = False
    """Whether a log that keeps them goes by its age, too, and is not old enough for that."""
    is_never_cleaned: bool = False
    """Whether they wait for a clean in logs that are not compacted any more: then retention takes them, or nothing."""
    why_never: str | None = None
    """Why nothing takes them, and what to do; null if something does, as far as the settings say."""


def prospect_of(found: OpenErasures, now_ms: int, logs: Sequence[Log] = ()) -> Prospect | None:
    """Of a topic with these logs, none if they can't be had; null if nobody has stored what they need."""
    needy = _most_urgent(found)
    if needy is None:
        return None
    partitions = needy.partitions
    logs = [log for log in logs if not partitions or log.topic_partition.partition in partitions]
    if needy.need == ErasureNeed.VERIFICATION:
        ends_ms = () if needy.is_any_dropped else [watermarks_end_ms(log, needy.since_ms) for log in logs]
        last_ms = max(ends_ms, default=0)
        return Prospect(needy, None, last_ms) if last_ms > now_ms else Prospect(needy, needy.need)
    never = needy.need in BY_A_CLEAN and bool(logs) and not any(log.config.is_compacted for log in logs)
    if at_once := _at_once(needy, now_ms, logs):
        return Prospect(needy, at_once, is_never_cleaned=never)
    if (never or needy.need == ErasureNeed.RETENTION) and logs and (why := _why_never(needy, logs)):
        return Prospect(needy, None, is_never_cleaned=never, why_never=why)
    if never:
        return _by_age(needy, now_ms, logs)
    ahead_ms = found.ahead_ms(now_ms)
    is_early = ahead_ms is not None and needy.need in {*IN_LOG, ErasureNeed.PURGE}
    is_kept = is_early and _may_be_kept(needy, now_ms, logs)
    return Prospect(needy, None, ahead_ms, any(map(goes_by_age, logs))) if is_kept else Prospect(needy, needy.need)


@dataclass(frozen=True, slots=True)
class LookedLogs:
    """What of a topic's logs was looked at: what waits in them is not further before a pass has altered it."""

    passed: Mapping[int, int]
    """How far cleans had come, by partition."""
    begins: Mapping[int, int]
    """Where the first segment began, by partition."""
    with_tombstones: frozenset[str]
    """The paths of the segments that had some."""
    expiring: NeedyErasures | None = None
    """Those that waited for their expiry; of others by now, nobody has looked where their tombstones are."""

    @classmethod
    def of(cls, logs: Sequence[Log], found: OpenErasures) -> LookedLogs:
        """As they are now, before they are looked at."""
        paths = frozenset(each.path for log in logs for each in log.segments if each.tombstone_count)
        expiring = next((each for each in found.needs if each.need == ErasureNeed.EXPIRY), None)
        by_partition = {log.topic_partition.partition: log for log in logs}
        passed = {number: passed_to(log) for number, log in by_partition.items()}
        return cls(passed, {number: first_base(log) for number, log in by_partition.items()}, paths, expiring)

    def says_all_of(self, needy: NeedyErasures, now: LookedLogs) -> bool:
        """Whether nothing of it that these wait for has been altered since, whatever was appended."""
        match needy.need:
            case ErasureNeed.CLEAN:
                return self.passed == now.passed
            case ErasureNeed.RETENTION:
                return self.begins == now.begins
            case ErasureNeed.EXPIRY:
                return self.expiring == needy and self.with_tombstones <= now.with_tombstones
            case _:
                return False


def may_be_further(found: OpenErasures, now_ms: int, logs: Sequence[Log], looked: LookedLogs | None = None) -> bool:
    """Whether a pass may have been over what any of them waits for in these logs: where one is to come, no look helps.

    Of an ingested log nobody knows what a clean has passed of it. ``looked`` is of the last look, where all that a look
    can bring on wait for what is in the log; null if nobody knows.
    """
    in_log = [each for each in found.needs if each.need in IN_LOG]
    if looked is not None:
        now = LookedLogs.of(logs, found)
        in_log = [each for each in in_log if not looked.says_all_of(each, now)]
    apart = (replace(found, needs=(each,)) for each in in_log)
    return any(_may_be_further(each, now_ms, logs, is_looked=looked is not None) for each in apart)


def _may_be_further(found: OpenErasures, now_ms: int, logs: Sequence[Log], *, is_looked: bool) -> bool:
    """The same of those with one need: what others wait for says nothing of them."""
    if not found.has(ErasureNeed.CLEAN) and found.ahead_ms(now_ms) is None:
        return True
    prospect = prospect_of(found, now_ms, logs)
    if prospect is None or prospect.brought_on_by == LOOK:
        return prospect is not None
    needy, need = prospect.needy, prospect.brought_on_by
    logs = [log for log in logs if not needy.partitions or log.topic_partition.partition in needy.partitions]
    # Of what a clean has passed, something else may be told first, or that nothing takes it any more.
    if needy.need == ErasureNeed.CLEAN:
        is_any = need is not None or is_looked
        first = [(log, each) for log in logs for each in _waited(needy, log)[:1]]
        if any(is_any if log.is_ingested else each.last_offset < first_dirty_of(log)[0] for log, each in first):
            return True
    return need == ErasureNeed.RETENTION and not any(_were_there(needy, log) for log in logs)


def _why_never(needy: NeedyErasures, logs: Sequence[Log]) -> str | None:
    """Why their age brings none of them on, where nothing else does, and what to do; null if it brings one on."""
    way = ErasureWay.RETENTION if needy.need == ErasureNeed.RETENTION else ErasureWay.TOMBSTONE
    if why := why_not_taken(logs[0].config, way):
        return why
    first = [(log, segments) for log in logs if (segments := _first_to_go(needy, log))]
    if not first or any(_going_by_age(*each) for each in first):
        return None
    log, segments = first[0]
    return f"waits for its age, and {never_taken(log, way, segments[0].last_offset + 1)}"


def _by_age(needy: NeedyErasures, now_ms: int, logs: Sequence[Log]) -> Prospect:
    """Of those to which no clean comes: the stored time may still be that of one, so retention's is found anew."""
    first = [(log, segments) for log in logs if (segments := _first_to_go(needy, log))]
    old_ms = [_all_old_ms(log, going[-1]) for log, segments in first if (going := _going_by_age(log, segments))]
    last_ms = max(old_ms, default=0)
    if last_ms > now_ms:
        return Prospect(needy, None, last_ms, is_any_by_age=True, is_never_cleaned=True)
    return Prospect(needy, ErasureNeed.RETENTION, is_never_cleaned=True)


def _first_to_go(needy: NeedyErasures, log: Log) -> Sequence[Segment]:
    """The segment of a log that has what the first of them waits for; of an ingested log, all that may be it."""
    if log.is_ingested:
        return _were_there(needy, log)
    waited = _waited(needy, log)
    return waited[:1] if _is_first_left(needy, log, waited) else ()


def _going_by_age(log: Log, segments: Sequence[Segment]) -> Sequence[Segment]:
    end_offset = goes_by_age_to(log)
    return [each for each in segments if each.base_offset < end_offset]


def _all_old_ms(log: Log, last: Segment) -> int:
    """When retention comes to the end of a segment: what lies before it goes first."""
    there = [each.largest_timestamp_ms for each in log.segments if each.base_offset <= last.base_offset]
    return too_old_ms(max(there), log.config.retention_ms)


def _at_once(needy: NeedyErasures, now_ms: int, logs: Sequence[Log]) -> str | None:
    """What may bring them on now, as the logs are; null if that is not known of anything."""
    if needy.need not in IN_LOG or not logs:
        return None
    waited = [(log, _waited(needy, log)) for log in logs]
    if not any(_is_first_left(needy, log, segments) for log, segments in waited):
        return LOOK
    if _is_retained(needy, waited, now_ms):
        return ErasureNeed.RETENTION
    if needy.need == ErasureNeed.CLEAN and any(_is_passed(log, segments, now_ms) for log, segments in waited):
        return ErasureNeed.CLEAN
    return None


def _waited(needy: NeedyErasures, log: Log) -> Sequence[Segment]:
    """The segments that may have what they wait for, and those that came since.

    Of an ingested log nobody knows how old its tombstones were when they arrived.
    """
    asked_ms = 0 if log.is_ingested else needy.first_asked_ms or 0
    match needy.need:
        case ErasureNeed.EXPIRY:
            return [each for each in log.segments if each.tombstone_count and each.largest_timestamp_ms >= asked_ms]
        case ErasureNeed.CLEAN if not log.is_ingested:
            return [each for each in log.segments if each.largest_timestamp_ms >= needy.since_ms]
        case _:
            return log.segments


def _is_first_left(needy: NeedyErasures, log: Log, waited: Sequence[Segment]) -> bool:
    """Whether a log may still have what the request waits for that waits longest, whatever came since.

    A tombstone that a request appends is of its time, by the clock that asked, or of a later one where the newest
    timestamp of a key wins. Where all goes by its age, what was there before the request goes first.
    """
    is_later = log.is_ingested or log.config.strategy.kind is StrategyKind.TIMESTAMP
    if needy.need == ErasureNeed.RETENTION or (is_later and not log.config.is_compacted):
        return bool(_were_there(needy, log))
    if is_later:
        return bool(waited)
    return any(each.first_timestamp_ms <= needy.in_log_since_ms for each in waited)


def _is_retained(needy: NeedyErasures, waited: Sequence[tuple[Log, Sequence[Segment]]], now_ms: int) -> bool:
    """Whether retention takes now what they wait for: in a log that goes on, there is always something that it takes.

    Who waits for retention alone waits for all that was there. Else the first of the segments has it; of an ingested
    log, any of them.
    """
    taken = [(log, segments, set(retention_of(log, now_ms).segments)) for log, segments in waited]
    if needy.need == ErasureNeed.RETENTION:
        there = [(_were_there(needy, log), of_log) for log, _, of_log in taken]
        return any(segments for segments, _ in there) and all(of_log.issuperset(each) for each, of_log in there)
    return any(
        of_log.issuperset(segments if log.is_ingested else segments[:1]) for log, segments, of_log in taken if segments
    )


def _were_there(needy: NeedyErasures, log: Log) -> Sequence[Segment]:
    """The segments with records of before the request."""
    return [each for each in log.segments if each.first_timestamp_ms <= needy.in_log_since_ms]


def _is_passed(log: Log, segments: Sequence[Segment], now_ms: int) -> bool:
    """Whether a clean passes some of these now: the end of a log that gets records is never closed."""
    if not log.config.is_compacted:
        return False
    times = CleanTimes.of(log, now_ms)
    return any(times.passes_ms(each.last_offset + 1) <= now_ms for each in segments)


def _may_be_kept(needy: NeedyErasures, now_ms: int, logs: Sequence[Log]) -> bool:
    """Whether a log as it is now may still keep them; a horizon is in the tombstone, whatever the topic says now."""
    match needy.need:
        case ErasureNeed.PURGE if logs:
            return any(needy.since_ms + log.config.file_delete_delay_ms > now_ms for log in logs)
        case ErasureNeed.RETENTION if logs:
            there = [(each, max(log.config.retention_ms, 0)) for log in logs for each in _were_there(needy, log)]
            return any(too_old_ms(each.largest_timestamp_ms, retention_ms) > now_ms for each, retention_ms in there)
        case _:
            return True


def _most_urgent(found: OpenErasures) -> NeedyErasures | None:
    """Those whose deadline is the earliest; null if nobody has stored what they need."""
    dated = [each for each in found.needs if each.earliest_deadline_ms is not None]
    return min(dated, key=lambda each: each.earliest_deadline_ms or 0, default=None) or next(iter(found.needs), None)
