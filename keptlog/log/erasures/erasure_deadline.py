"""By when an erasure can be done, by when it is promised, and what stands in its way.

    requested      segment closes, min lag         delete.retention.ms          file.delete.delay.ms
        |---------------- cleaned at the earliest ------- tombstone goes ------- files go --------|  possible
        |-- max.compaction.lag.ms --|--- delete.retention.ms ---|--- 2 x (delay + purge interval) -|  promised

The key stands in its tombstone, so ``delete.retention.ms`` counts. Old files are purged after the clean and again after
the tombstone has expired: each takes the delay, and a purge comes within its interval.

Where records have versions, the key is remembered for a while longer, in files that go after the grace of orphans
(``remembered``).

A topic without ``max.compaction.lag.ms`` promises nothing, and so does one whose records nothing removes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keptlog.errors import InvalidConfig
from keptlog.log.broker import SWITCH_CLEANER_ON, BrokerConfig
from keptlog.log.config import TopicConfig
from keptlog.log.erasures.erasure import ErasureWay
from keptlog.log.erasures.key_logs import KeyLogs
from keptlog.log.erasures.next_time import CleanTimes
from keptlog.log.erasures.remembered import forgotten_ms, swept_ms, watermarks_ms
from keptlog.log.holder import PURGE_INTERVAL_MS
from keptlog.log.plan import why_off
from keptlog.log.retention import TIME_SETTINGS, goes_by_age, how_to_settle, never_old, too_old_ms
from keptlog.log.roll import oldest_ms
from keptlog.log.sections import sections_of
from keptlog.log.segment import Log
from keptlog.log.words.counted import some_of
from keptlog.log.words.iso_time import has_date, iso_time, next_time
from keptlog.log.words.units import LONG_MAX

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What makes a deadline impossible, or unsure, and what could be done about it."""

    what: str
    until_ms: int | None
    """When it stops by itself; null if it does not."""
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


def default_deadline_ms(
    config: TopicConfig, way: ErasureWay, now_ms: int, purge_interval_ms: int = PURGE_INTERVAL_MS
) -> int | None:
    """By when a topic promises that a request of now is done; null if it promises nothing."""
    purges_ms = 2 * (config.file_delete_delay_ms + purge_interval_ms)
    match way:
        case ErasureWay.HERE:
            lasts_ms = swept_ms(config)
        case ErasureWay.RETENTION:
            lasts_ms = config.retention_ms if config.retention_ms >= 0 else LONG_MAX
        case ErasureWay.TOMBSTONE | ErasureWay.SOURCE:
            lasts_ms = config.max_compaction_lag_ms
            lasts_ms += config.delete_retention_ms + watermarks_ms(config) + swept_ms(config)
    deadline_ms = now_ms + lasts_ms + purges_ms
    return deadline_ms if has_date(deadline_ms) else None


def holds_end_ms(config: TopicConfig, deadline_ms: int, purge_interval_ms: int) -> int:
    """From when on no reader may hold a tombstone, if all that follows its end is to be done by a deadline."""
    return (
        deadline_ms - watermarks_ms(config) - swept_ms(config) - 2 * (config.file_delete_delay_ms + purge_interval_ms)
    )


def earliest_ms(found: KeyLogs, way: ErasureWay, now_ms: int) -> int:
    """When a request of now can be done at the earliest, if nothing more is appended, over these logs."""
    return found.earliest(lambda log: _done_ms(log, way, now_ms), now_ms)


def latest_ms(found: KeyLogs, way: ErasureWay, now_ms: int) -> int:
    """The same where the keys are in the slowest of the logs, or were deleted lately: nobody knows before a search."""
    forgotten = _forgotten(found, way, now_ms).values()
    return max([found.latest(lambda log: _in_worst_case_ms(log, way, now_ms), now_ms), *forgotten])


def cleaned_ms(log: Log, now_ms: int) -> int:
    """When a tombstone that is appended now can be cleaned."""
    return max(now_ms + log.config.min_compaction_lag_ms, _closes_ms(log, now_ms))


def passed_ms(log: Log, now_ms: int) -> int:
    """When a tombstone that is appended now can be cleaned, or goes with retention, which needs no closed segment."""
    aged_ms = _aged_ms(log, now_ms)
    return cleaned_ms(log, now_ms) if aged_ms is None else min(cleaned_ms(log, now_ms), aged_ms)


def _aged_ms(log: Log, now_ms: int) -> int | None:
    """When retention takes a tombstone that is appended now, and all before it; null if it does not by age."""
    if not goes_by_age(log):
        return None
    largest_ms = max([now_ms, *(each.largest_timestamp_ms for each in log.segments)])
    return too_old_ms(largest_ms, log.config.retention_ms)


def _done_ms(log: Log, way: ErasureWay, now_ms: int) -> int:
    config = log.config
    match way:
        case ErasureWay.HERE:
            done_ms = now_ms
        case ErasureWay.RETENTION if not log.segments:
            return now_ms
        case ErasureWay.RETENTION if never_taken(log, way, log.log_end_offset):
            done_ms = LONG_MAX
        case ErasureWay.RETENTION:
            largest_ms = max(each.largest_timestamp_ms for each in log.segments)
            done_ms = max(now_ms, too_old_ms(largest_ms, max(config.retention_ms, 0)))
        case ErasureWay.TOMBSTONE | ErasureWay.SOURCE:
            done_ms = cleaned_ms(log, now_ms) + config.delete_retention_ms
            aged_ms = _aged_ms(log, now_ms)
            if aged_ms is not None and aged_ms <= done_ms:
                done_ms = aged_ms  # it leaves no watermark, unless a clean has taken it before
            else:
                done_ms += watermarks_ms(config)
    return done_ms + config.file_delete_delay_ms


def impossible(found: KeyLogs, way: ErasureWay, now_ms: int, deadline_ms: int | None) -> list[Hindrance]:
    """Why a deadline can't be kept as things are; each with what could be done. Empty if nothing is in its way.

    What only one of several logs would do, that a key may be in, is told too: then it is unsure, and not impossible.
    """
    logs = found.logs
    told = [
        Hindrance(
            f"{log.topic_partition} is uncleanable since {iso_time(log.uncleanable.since_ms)}",
            None,
            f"mend what its last clean failed of: {log.uncleanable.reason}",
        )
        for log in logs
        if log.uncleanable and way not in {ErasureWay.HERE, ErasureWay.RETENTION}
    ]
    never = {log.topic_partition: never_taken(log, way, log.log_end_offset) for log in logs}
    told += [each for each in dict.fromkeys(never.values()) if each]
    told += [*_remembered(found, way, now_ms, deadline_ms), *_unread(found)]
    if deadline_ms is None:
        return told
    if found.retired_until_ms > deadline_ms:
        what = f"retired files may have the key, and go {next_time(found.retired_until_ms)} (file.delete.delay.ms)"
        told.append(Hindrance(what, found.retired_until_ms, "lower that setting, or give a later --by"))
    late = [log for log in logs if _done_ms(log, way, now_ms) > deadline_ms]
    # One without a segment matters only for a key that is in no other.
    late = [log for log in late if log.segments] or late
    timed = [log for log in late if not never[log.topic_partition]]
    ahead = [log for log in timed if _dated_ms(log, way, now_ms) > deadline_ms]
    told += _dated_ahead(ahead, way, now_ms)
    told += _steps([log for log in timed if _dated_ms(log, way, now_ms) <= deadline_ms], way, now_ms)
    earliest = earliest_ms(found, way, now_ms)
    is_sure = earliest > deadline_ms
    done_ms = earliest if is_sure else max((_done_ms(log, way, now_ms) for log in late), default=now_ms)
    if late and has_date(done_ms):
        which = "it" if is_sure else f"a key that is in {_names(late)}"
        what = f"{which} can be done {next_time(done_ms)} at the earliest, behind the deadline {iso_time(deadline_ms)}"
        helps = "" if len(ahead) == len(late) else "lower what stands above with keptlog topic alter, or "
        told.append(Hindrance(what, done_ms, f"{helps}give a later --by"))
    return told


def refuse_endless(topic: str, config: TopicConfig) -> None:
    """Refuse a request by retention where retention never takes anything.

    Raises:
        InvalidConfig: with what could be done.
    """
    compacted = f"keptlog topic alter {topic} --config cleanup.policy=compact"
    if not config.has_retention:
        raise InvalidConfig(
            f"topic {topic}: cleanup.policy is {config.policy_text}, so that nothing ever goes: delete its records "
            f"(keptlog delete-records), or have it compacted ({compacted})"
        )
    if config.retention_ms < 0:
        raise InvalidConfig(
            f"topic {topic}: cleanup.policy=delete alone, where a tombstone removes nothing, and retention.ms=-1, so "
            f"that nothing ever goes by its age: delete its records (keptlog delete-records), set retention.ms, or "
            f"have it compacted ({compacted},delete)"
        )


def why_not_taken(config: TopicConfig, way: ErasureWay) -> str | None:
    """Why nothing takes the records of a request, as its topic is set now, and what to do; null if something does."""
    if config.has_retention and config.retention_ms >= 0:
        return None
    why = f"cleanup.policy is {config.policy_text}" if not config.has_retention else "retention.ms is -1"
    if way is ErasureWay.RETENTION:
        return (
            f"waits for retention, and {why}: delete its records (keptlog delete-records), or let them go by their age"
        )
    if way in {ErasureWay.TOMBSTONE, ErasureWay.SOURCE} and not config.is_compacted:
        return f"waits for a clean, and cleanup.policy is {config.policy_text}: have the topic compacted again"
    return None


def never_taken(log: Log, way: ErasureWay, end_offset: int) -> Hindrance | None:
    """What keeps records below an offset from ever going by their age, where a request waits for that; else null."""
    config, name = log.config, log.topic_partition
    is_by_age = way is ErasureWay.RETENTION or (way is not ErasureWay.HERE and not config.is_compacted)
    if not is_by_age or not config.has_retention or config.retention_ms < 0:
        return None
    unsettled = [each for each in TIME_SETTINGS if each in config.unsettled]
    if unsettled:
        return Hindrance(
            f"topic {name.topic} has no {' and no '.join(unsettled)} of its own, and another machine may have others "
            "than this one, so that nothing goes by its age",
            None,
            f"if these are right, {how_to_settle(log, unsettled)}",
        )
    segment = never_old(log)
    if segment is None or segment.base_offset >= end_offset:
        return None
    return Hindrance(
        f"the segment of {name} at offset {segment.base_offset} has no timestamps, so that neither it nor what lies "
        "behind it ever goes by its age",
        None,
        "delete its records (keptlog delete-records), set retention.bytes, or have the topic compacted",
    )


def switched_off(logs: Iterable[Log], way: ErasureWay, broker: BrokerConfig) -> list[Hindrance]:
    """The cleaner, where this machine's settings stop it and a request waits for it."""
    off = dict.fromkeys(why_off(log, broker) for log in logs) if way is not ErasureWay.HERE else {}
    remedy = f"{SWITCH_CLEANER_ON}, unless another machine cleans the topic"
    return [Hindrance(why, None, remedy) for why in off if why]


def why_no_promise(config: TopicConfig, way: ErasureWay) -> str:
    """Why a topic promises no deadline."""
    if way is ErasureWay.RETENTION and config.retention_ms == LONG_MAX:
        return "retention.ms has no end"
    if way in {ErasureWay.TOMBSTONE, ErasureWay.SOURCE} and config.max_compaction_lag_ms == LONG_MAX:
        return "max.compaction.lag.ms is not set, so nothing says when a clean comes: set it, or give --by"
    return "what the settings of the topic add up to ends after the year 9999: lower them, or give --by"


def _in_worst_case_ms(log: Log, way: ErasureWay, now_ms: int) -> int:
    """When keys in this log can be done, if a clean of any key replaces their watermarks when these end."""
    has_own = way in {ErasureWay.TOMBSTONE, ErasureWay.SOURCE}
    return _done_ms(log, way, now_ms) + (swept_ms(log.config) if has_own else 0)


def _remembered(found: KeyLogs, way: ErasureWay, now_ms: int, deadline_ms: int | None) -> Sequence[Hindrance]:
    """That files may know of keys that were deleted before: when each was, nobody knows here."""
    if deadline_ms is None:
        return ()
    forgotten = _forgotten(found, way, now_ms)
    late = [log for log in found.remembering if forgotten[log.topic_partition.partition] > deadline_ms]
    if not late:
        return ()
    last_ms, names = max(forgotten.values()), _names(late)
    if way is ErasureWay.HERE:
        what = f"a replaced file of watermarks of {names} may have the key; if it is new, it goes {next_time(last_ms)}"
    else:
        when = f"it goes from there {next_time(last_ms)} at the latest" if has_date(last_ms) else "nothing ends that"
        what = f"watermarks of {names} have the key if it was deleted lately; {when}"
        what += " (keptlog.watermark.retention.ms)"
    return (Hindrance(what, last_ms if has_date(last_ms) else None, "give a later --by"),)


def _unread(found: KeyLogs) -> list[Hindrance]:
    """That a log may remember deleted keys for longer than its topic's settings of now say."""
    return [
        Hindrance(
            f"how long {log.topic_partition} remembers deleted keys is not known",
            None,
            f"mend what the look at its watermarks failed of: {why}",
        )
        for log in found.remembering
        if (why := found.unread.get(log.topic_partition.partition))
    ]


def _forgotten(found: KeyLogs, way: ErasureWay, now_ms: int) -> dict[int, int]:
    """By partition, when no file of a log has a key any more that was deleted before."""
    numbered = ((log.topic_partition.partition, log) for log in found.remembering)
    return {number: forgotten_ms(log, way, now_ms, found.stored_ms.get(number, 0)) for number, log in numbered}


def _closes_ms(log: Log, now_ms: int) -> int:
    """When the segment is closed that an append of now becomes part of, if nothing more comes."""
    times = CleanTimes.of(log, now_ms)
    if times.active_from is not None:
        return max(times.passes_ms(log.log_end_offset), now_ms)
    return now_ms + log.config.max_segment_ms + 1


def _dated_ms(log: Log, way: ErasureWay, now_ms: int) -> int:
    """The time of the record for which a clean or retention waits, however low the settings are; 0 if for none."""
    if way is ErasureWay.HERE:
        return 0
    if way is ErasureWay.RETENTION:
        return max((each.largest_timestamp_ms for each in log.segments), default=0)
    return min(map(oldest_ms, sections_of(log, now_ms).active), default=0)


def _dated_ahead(logs: Sequence[Log], way: ErasureWay, now_ms: int) -> Sequence[Hindrance]:
    """That records are dated behind the deadline: no setting changes that."""
    if not logs:
        return ()
    last_ms = max(_dated_ms(log, way, now_ms) for log in logs)
    text = f"records of {_names(logs)} are dated ahead, and stay until their time comes, {next_time(last_ms)}"
    if way is ErasureWay.RETENTION:
        return (Hindrance(text, last_ms, "delete records (delete-records), or give a later --by"),)
    segment = "their active segment is closed sooner if it gets full, or by a record of a later time"
    return (Hindrance(text, last_ms, f"give a later --by; {segment}"),)


def _steps(logs: Sequence[Log], way: ErasureWay, now_ms: int) -> Sequence[Hindrance]:
    """What takes time on the way, as far as it takes any; alike for logs of one topic, so each is told once of all."""
    if way is ErasureWay.HERE or not logs:
        return ()
    config, names = logs[0].config, _names(logs)
    if way is ErasureWay.RETENTION:
        text = f"what {names} {'has' if len(logs) == 1 else 'have'} stays for retention.ms={config.retention_ms}"
        until_ms = max(_done_ms(log, way, now_ms) for log in logs)
        return (Hindrance(text, until_ms, "lower it, or delete records (delete-records)"),)
    found = []
    if config.min_compaction_lag_ms:
        touch = "touches" if len(logs) == 1 else "touch"
        text = f"{names} {touch} no record before min.compaction.lag.ms={config.min_compaction_lag_ms}"
        found.append(Hindrance(text, now_ms + config.min_compaction_lag_ms, "lower it"))
    aged = [aged_ms for log in logs if (aged_ms := _aged_ms(log, now_ms)) is not None]
    if aged:
        text = f"what {names} {'has' if len(logs) == 1 else 'have'} stays for retention.ms={config.retention_ms}"
        found.append(Hindrance(f"{text}, unless cleans take it before", max(aged), "lower it"))
    found += _closings(logs, now_ms)
    cleaned = max(cleaned_ms(log, now_ms) for log in logs)
    if config.delete_retention_ms:
        keeps = "keeps" if len(logs) == 1 else "keep"
        text = f"{names} {keeps} the tombstone, which holds the key, for delete.retention.ms"
        until_ms = cleaned + config.delete_retention_ms
        found.append(Hindrance(f"{text}={config.delete_retention_ms}", until_ms, "lower it"))
    if watermarks_ms(config):
        limit = f"keptlog.watermark.retention.ms={watermarks_ms(config)}"
        text = f"deleted keys of {names} are remembered for {limit} besides"
        found.append(Hindrance(text, cleaned + config.delete_retention_ms + watermarks_ms(config), "lower it"))
    return found


def _closings(logs: Sequence[Log], now_ms: int) -> Sequence[Hindrance]:
    """That active segments have to be closed first, of the logs where they are not at once."""
    closing = [(log, closes_ms) for log in logs if (closes_ms := _closes_ms(log, now_ms)) > now_ms]
    if not closing:
        return ()
    config, last_ms = logs[0].config, max(closes_ms for _, closes_ms in closing)
    which = config.max_segment_setting
    names = _names([log for log, _ in closing])
    text = f"the active segment of {names} is closed {next_time(last_ms)}"
    if len(closing) > 1:
        text = f"the active segments of {names} are closed, the last {next_time(last_ms)}"
    remedy = f"lower {which}; it is closed sooner if it gets full"
    return (Hindrance(f"{text} ({which}={config.max_segment_ms})", last_ms, remedy),)


def _names(logs: Sequence[Log]) -> str:
    return some_of([str(log.topic_partition) for log in logs], _NAMED)
