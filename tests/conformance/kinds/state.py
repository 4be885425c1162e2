"""``state``: Kafka's cleaning states guard one process's threads against each other; here the commit does (ADR 13).

So nothing of keptlog is asked. That a case says of ``LogCleanerManager`` what is so is told by the rules of its states:

    none --grab--> in progress --abort--> aborted --done--> paused(1) --pause--> paused(2) --resume--> paused(1) ...
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from tests.conformance.cases import Difference, Fields, NotUnderstoodError, as_text, case_fields

_GRAB = {"grab", "grab_filthiest", "grab_filthiest_compacted_log", "deletable", "deletable_logs"}
_DONE = {"done_cleaning", "done_deleting"}
_PAUSE_FREE = {"pause_non_compacted", "pause_cleaning_for_non_compacted_partitions"}
_ABORT = {"abort", "abort_cleaning"}
_ABORT_AND_PAUSE = {"abort_and_pause", "abort_and_pause_cleaning"}
_RESUME = {"resume", "resume_cleaning"}
_SET = {"set", "set_cleaning_state"}
_CHECK = {"check_done", "check_aborted", "check_cleaning_aborted"}
_NO_STATE = {
    *("update_checkpoints", "alter_checkpoint_dir", "truncate_checkpoint", "maybe_truncate_checkpoint"),
    *("handle_log_dir_failure", "mark_uncleanable", "mark_partition_uncleanable", "maintain_uncleanable_partitions"),
}
"""What Kafka's ``LogCleanerManager`` can be asked for, by its methods' names and by shorter ones of cases."""

_ALL = _GRAB | _DONE | _PAUSE_FREE | _ABORT | _ABORT_AND_PAUSE | _RESUME | _SET | _CHECK | _NO_STATE

_ILLEGAL, _ABORTED_ERROR = "illegal", "aborted"
_PAUSED = re.compile(r"paused\((\d+)\)")
_NONE, _IN_PROGRESS, _ABORTED = None, "in_progress", "aborted"


@dataclass(frozen=True)
class At:
    """Where a topic-partition may be."""

    state: str | None = _NONE
    checkpoint: int | None = None
    is_resumed_at_once: bool = False
    """Whether somebody waits who resumes it as soon as it is paused, and may have done so already."""

    @property
    def pauses(self) -> int:
        found = _PAUSED.fullmatch(self.state or "")
        return int(found[1]) if found else 0

    def to(self, state: str | None, **changes: Any) -> set[Outcome]:
        return {Outcome(replace(self, state=state, **changes))}

    def refused(self, error: str) -> set[Outcome]:
        return {Outcome(self, error)}


@dataclass(frozen=True)
class Outcome:
    """What may come of what is asked for; the text is part of the error's name in Kafka."""

    at: At
    error: str | None = None

    def fits(self, asked: Fields) -> bool:
        """Whether it is what the case says of it."""
        told = asked.get("error")
        if bool(told) is not bool(self.error) or (self.error and told is not True and self.error not in _lower(told)):
            return False
        if "state" in asked and _state(asked["state"]) != self.at.state:
            return False
        return asked["op"] not in _DONE or asked.get("checkpoint", self.at.checkpoint) == self.at.checkpoint


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, {"config"}, {"ops"})
    policy = as_text(fields.get("config", {}).get("cleanup.policy", ""))
    places = {At()}
    for asked in fields["ops"]:
        outcomes = {each for at in places for each in _asked(at, asked, is_compacted="compact" in policy)}
        fitting = {each.at for each in outcomes if each.fits(asked)}
        assert fitting, (asked, outcomes)
        places = fitting
    return [Difference(13, "there are no cleaning states: whoever commits second is refused")]


def _asked(at: At, asked: Fields, *, is_compacted: bool) -> set[Outcome]:
    operation = asked["op"]
    if operation not in _ALL:
        raise NotUnderstoodError(f"there is no operation {operation!r} on cleaning states")
    woken = set[Outcome]()
    if at.is_resumed_at_once and at.pauses:
        # Kafka's own thread goes on when it comes to it.
        for resumed in _moved(replace(at, is_resumed_at_once=False), "resume", is_compacted=is_compacted):
            woken |= _asked(resumed.at, asked, is_compacted=is_compacted)
    return woken | _answered(at, asked, is_compacted=is_compacted)


def _answered(at: At, asked: Fields, *, is_compacted: bool) -> set[Outcome]:
    operation = asked["op"]
    if operation in _SET:
        return at.to(_state(asked.get("value", asked.get("state"))))
    if operation in _DONE:
        return _done(at, asked)
    return _moved(at, operation, is_compacted=is_compacted)


def _done(at: At, asked: Fields) -> set[Outcome]:
    if at.state == _IN_PROGRESS:
        end_offset = asked.get("end", at.checkpoint) if asked["op"] == "done_cleaning" else at.checkpoint
        return at.to(_NONE, checkpoint=end_offset)
    if at.state != _ABORTED:
        return at.refused(_ILLEGAL)
    resumed = at.to(_NONE, is_resumed_at_once=False) if at.is_resumed_at_once else set()
    return at.to("paused(1)") | resumed


def _moved(at: At, operation: str, *, is_compacted: bool) -> set[Outcome]:
    if operation in _GRAB and at.state is _NONE:
        # Whether it is dirty, or has old segments, a case of states does not tell.
        return at.to(_NONE) | at.to(_IN_PROGRESS)
    if operation in _PAUSE_FREE and at.state is _NONE and not is_compacted:
        return at.to("paused(1)")
    if operation in _ABORT_AND_PAUSE | _ABORT:
        return _aborted(at, is_resumed=operation in _ABORT)
    if operation in _RESUME:
        return at.to(f"paused({at.pauses - 1})" if at.pauses > 1 else _NONE) if at.pauses else at.refused(_ILLEGAL)
    if operation in _CHECK and at.state == _ABORTED:
        return at.refused(_ABORTED_ERROR)
    return at.to(at.state)


def _aborted(at: At, *, is_resumed: bool) -> set[Outcome]:
    if at.state == _ABORTED:
        return at.refused(_ILLEGAL)
    if at.state == _IN_PROGRESS:
        # It returns when the cleaner has stopped.
        return at.to(_ABORTED, is_resumed_at_once=is_resumed) | at.to(_NONE if is_resumed else "paused(1)")
    return at.to(at.state if is_resumed else f"paused({at.pauses + 1})")


def _state(told: str | None) -> str | None:
    return _NONE if told == "none" else told


def _lower(told: object) -> str:
    return str(told).lower()
