"""What brings the open erasures of a topic on, and what somebody can do about it: from what is stored with the topic.

    next step at 14:00    now 12:00    nothing can be run: a setting keeps it until then, and is named
    next step at 14:00    now 15:00    the pass that is needed, with its command

Where they need different things, the one counts whose deadline is the earliest. What that waits for, and until when,
says ``prospect``: here are the words. It is not stored whether a pass has come, or what it met, so no step says that
none has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keptlog.log.broker import CLEANER_DISABLED, SWITCH_CLEANER_ON
from keptlog.log.erasures.open_erasures import BY_A_CLEAN, ErasureNeed, OpenErasures
from keptlog.log.erasures.prospect import LOOK, Prospect, prospect_of
from keptlog.log.segment import Log
from keptlog.log.words.iso_time import has_date, iso_time
from keptlog.log.words.next_command import next_command

_LOOK_COMMAND = "keptlog erasure list"


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
_UNKNOWN = ErasureStep("nobody has looked what it waits for", f"{_LOOK_COMMAND} says it", _LOOK_COMMAND)
_LOOK_AGAIN = ErasureStep(
    "what it waited for may be gone from the log since somebody looked",
    f"{_LOOK_COMMAND} looks again, and says what is next",
    _LOOK_COMMAND,
)


def erasure_step(
    topic: str, found: OpenErasures, now_ms: int, logs: Sequence[Log] = (), *, is_cleaner_off: bool = False
) -> ErasureStep:
    """The next step of these, of which at least one is open; of a topic with these logs, none if they can't be had."""
    prospect = prospect_of(found, now_ms, logs)
    if prospect is None or prospect.needy.need not in _BROUGHT_ON_BY:
        return _UNKNOWN
    need = prospect.brought_on_by
    if need == LOOK:
        return _LOOK_AGAIN
    if is_cleaner_off and prospect.needy.need in BY_A_CLEAN and not prospect.is_never_cleaned:
        return ErasureStep(CLEANER_DISABLED, f"{SWITCH_CLEANER_ON}: without a clean it goes no further", None)
    if prospect.why_never:
        cause, _, todo = prospect.why_never.partition(": ")
        return ErasureStep(f"it {cause}", todo, None)
    if need is None:
        todo = _KEPT_BY[_kept_need(prospect)][1]
        return ErasureStep(_kept(prospect), f"{todo}; {_LOOK_COMMAND} looks again", None)
    return _step_by(need, topic)


def _step_by(need: str, topic: str) -> ErasureStep:
    what, command = _BROUGHT_ON_BY[need]
    if command is None:
        return ErasureStep(f"it waits for {what}", f"{_LOOK_COMMAND} says what keeps each of them", None)
    subject = "" if need == ErasureNeed.VERIFICATION else topic
    cause = f"it needs {what} next, unless something keeps it from that"
    todo = f"run it now; if it brings nothing on, {_LOOK_COMMAND} says what keeps each of them"
    return ErasureStep(cause, todo, next_command(command, subject))


def next_by_now(found: OpenErasures, now_ms: int, logs: Sequence[Log] = ()) -> str | None:
    """What is told in place of what is stored, as their logs are by now; null if that still holds, or nobody knows.

    It is another word for those with the earliest deadline alone; what the others need is told behind it, as stored.
    """
    prospect = prospect_of(found, now_ms, logs)
    if prospect is None or prospect.brought_on_by == prospect.needy.need:
        return None
    by_now = prospect.brought_on_by
    kept = prospect.why_never or _kept(prospect)
    told = kept if by_now is None else f"needs {'a look' if by_now == LOOK else by_now}"
    others = [each.need for each in found.needs if each.need not in {prospect.needy.need, by_now}]
    return f"{told}; others need {', '.join(others)}" if others else told


def _kept(prospect: Prospect) -> str:
    need, until_ms = _kept_need(prospect), prospect.kept_until_ms or 0
    why = _KEPT_BY[need][0]
    if need == ErasureNeed.VERIFICATION:
        when = f"until {iso_time(until_ms)}" if has_date(until_ms) else "for ever, as the topic is set"
        return f"a verification may find the keys {when}: {why}"
    when = f"before {iso_time(until_ms)}" if has_date(until_ms) else "ever, as the topic is set"
    if prospect.is_any_by_age and need in BY_A_CLEAN:
        why += f", and {_KEPT_BY[ErasureNeed.RETENTION][0]}"
    return f"nothing brings it on {when}: {why}"


def _kept_need(prospect: Prospect) -> str:
    """By what they are kept: where no clean comes any more, by their age."""
    return ErasureNeed.RETENTION if prospect.is_never_cleaned else prospect.needy.need
