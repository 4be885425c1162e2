"""What brings the open erasures of a topic on, and what somebody can do about it: from what is stored with the topic.

    next step at 14:00    now 12:00    nothing can be run: a setting keeps it until then, and is named
    next step at 14:00    now 15:00    the pass that is needed, with its command

Where they need different things, the one counts whose deadline is the earliest. What is stored is as old as the last
look at them. A setting may have been lowered since, or a segment closed, so the logs as they are now are asked too,
where they can be had. Which offsets the erasures wait for is not stored: only what is sure without them is told. Nor is
it stored whether a pass has come, and what it met, so no step says that none has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keptlog.log.broker import CLEANER_DISABLED, SWITCH_CLEANER_ON
from keptlog.log.erasures.next_time import CleanTimes
from keptlog.log.erasures.open_erasures import ErasureNeed, NeedyErasures, OpenErasures
from keptlog.log.erasures.remembered import watermarks_end_ms
from keptlog.log.segment import Log
from keptlog.log.words.iso_time import has_date, iso_time
from keptlog.log.words.next_command import next_command

_LOOK = "keptlog erasure list"


class ErasureStep(NamedTuple):
    """The next step of a topic's erasures."""

    cause: str
    todo: str
    command: str | None
    """Null where nothing can be run."""


_KEPT_BY: dict[str, tuple[str, str]] = {
    ErasureNeed.RETENTION: (
        "the records are not old enough (retention.ms)",
        "lower retention.ms, delete the records (keptlog delete-records), or wait",
    ),
    ErasureNeed.CLEAN: (
        "the active segment is not closed (segment.ms), or the records are too young (min.compaction.lag.ms)",
        "lower that setting, or wait",
    ),
    ErasureNeed.EXPIRY: (
        "the tombstones have a delete horizon from their first clean (delete.retention.ms)",
        "wait; a lower delete.retention.ms holds for later cleans",
    ),
    ErasureNeed.PURGE: ("replaced files stay readable (file.delete.delay.ms)", "lower that setting, or wait"),
    ErasureNeed.VERIFICATION: (
        "deleted keys are remembered for so long (keptlog.watermark.retention.ms)",
        "wait, or try keptlog erasure verify, for theirs may be forgotten before",
    ),
}
"""What keeps them until a time."""
_BROUGHT_ON_BY: dict[str, tuple[str, str | None]] = {
    ErasureNeed.SOURCE: ("that the source deletes the keys", None),
    ErasureNeed.REPEAT: ("the same request again, with its id", None),
    ErasureNeed.RETENTION: ("a retention", "retain"),
    ErasureNeed.CLEAN: ("a clean", "clean"),
    ErasureNeed.EXPIRY: ("a clean that takes the tombstones, then a purge", "clean"),
    ErasureNeed.PURGE: ("a purge", "purge"),
    ErasureNeed.VERIFICATION: ("the verification", "erasure verify"),
}
_UNKNOWN = ErasureStep("nobody has looked what it waits for", f"{_LOOK} says it", _LOOK)


def erasure_step(
    topic: str, found: OpenErasures, now_ms: int, logs: Sequence[Log] = (), *, is_cleaner_off: bool = False
) -> ErasureStep:
    """The next step of these, of which at least one is open; of a topic with these logs, none if they can't be had."""
    needy = _most_urgent(found)
    if needy is None or needy.need not in _BROUGHT_ON_BY:
        return _UNKNOWN
    need = needy.need
    if is_cleaner_off and need in {ErasureNeed.CLEAN, ErasureNeed.EXPIRY}:
        return ErasureStep(CLEANER_DISABLED, f"{SWITCH_CLEANER_ON}: without a clean it goes no further", None)
    if kept := kept_until(found, now_ms, logs):
        return ErasureStep(kept, f"{_KEPT_BY[need][1]}; {_LOOK} looks again", None)
    what, command = _BROUGHT_ON_BY[need]
    if command is None:
        return ErasureStep(f"it waits for {what}", f"{_LOOK} says what keeps each of them", None)
    subject = "" if need == ErasureNeed.VERIFICATION else topic
    cause = f"it needs {what} next, unless something keeps it from that"
    todo = f"run it now; if it brings nothing on, {_LOOK} says what keeps each of them"
    return ErasureStep(cause, todo, next_command(command, subject))


def kept_until(found: OpenErasures, now_ms: int, logs: Sequence[Log] = ()) -> str | None:
    """Until when nothing can bring them on, and why; null if something can, or nobody knows."""
    needy = _most_urgent(found)
    if needy is None or needy.need not in _KEPT_BY:
        return None
    if needy.need == ErasureNeed.VERIFICATION:
        return _remembered_until(needy, now_ms, logs)
    if found.next_ms is None or found.next_ms <= now_ms:
        return None
    if logs and not _may_be_kept(needy, now_ms, logs):
        return None
    when = f"before {iso_time(found.next_ms)}" if has_date(found.next_ms) else "ever, as the topic is set"
    return f"nothing brings it on {when}: {_KEPT_BY[needy.need][0]}"


def _remembered_until(needy: NeedyErasures, now_ms: int, logs: Sequence[Log]) -> str | None:
    """Until when a verification may find the keys among those that were deleted; null if it finds none there."""
    last_ms = max((watermarks_end_ms(log, needy.since_ms) for log in logs), default=0)
    if last_ms <= now_ms or not has_date(last_ms):
        return None
    return f"a verification may find the keys until {iso_time(last_ms)}: {_KEPT_BY[needy.need][0]}"


def _may_be_kept(needy: NeedyErasures, now_ms: int, logs: Sequence[Log]) -> bool:
    """Whether a log as it is now may still keep them; a horizon is in the tombstone, whatever the topic says now."""
    logs = [log for log in logs if not needy.partitions or log.topic_partition.partition in needy.partitions]
    match needy.need:
        case ErasureNeed.CLEAN:
            return _is_none_passed(needy, now_ms, logs)
        case ErasureNeed.PURGE:
            return any(needy.since_ms + log.config.file_delete_delay_ms > now_ms for log in logs)
        case ErasureNeed.RETENTION:
            # Retention takes the first segment before any other, and who waits waits for those that were there.
            firsts = [(log.segments[0], max(log.config.retention_ms, 0)) for log in logs if log.segments]
            there = [each for each in firsts if each[0].first_timestamp_ms <= needy.since_ms]
            return any(first.largest_timestamp_ms + retention_ms > now_ms for first, retention_ms in there)
        case _:
            return True


def _is_none_passed(needy: NeedyErasures, now_ms: int, logs: Sequence[Log]) -> bool:
    """Whether no clean passes yet what came since their tombstones, and so none of these.

    The end of a log that gets records is never closed, so it tells nothing. Of an ingested log nobody knows how old its
    tombstones were when they arrived.
    """
    passed = False
    for log in logs:
        times = CleanTimes.of(log, now_ms)
        recent = [each for each in log.segments if log.is_ingested or each.largest_timestamp_ms >= needy.since_ms]
        passed = passed or any(times.passes_ms(each.last_offset + 1) <= now_ms for each in recent)
    return not passed


def _most_urgent(found: OpenErasures) -> NeedyErasures | None:
    """Those whose deadline is the earliest; null if nobody has stored what they need."""
    dated = [each for each in found.needs if each.earliest_deadline_ms is not None]
    return min(dated, key=lambda each: each.earliest_deadline_ms or 0, default=None) or next(iter(found.needs), None)
