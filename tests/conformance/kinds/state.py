"""``state``: Kafka's cleaning states guard one process's threads against each other; here the commit does (ADR 13).

So nothing of keptlog is asked. That a case says of ``LogCleanerManager`` what is so is told by the rules of its states:

    none --grab--> in progress --abort--> aborted --done--> paused(1) --pause--> paused(2) --resume--> paused(1) ...
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields

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


class _ErrorInKafka(Exception):
    """What is asked for is refused there; the text is part of the error's name."""


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, {"config"}, {"ops"})
    states = States()
    for each in fields["ops"]:
        states.check(each)
    return [Difference(13, "there are no cleaning states: whoever commits second is refused")]


@dataclass
class States:
    """The state of one topic-partition."""

    state: str | None = _NONE
    checkpoint: int | None = None
    is_known: bool = True
    """False after what may or may not have moved it; the next word of a case on it is believed."""

    def check(self, asked: Fields) -> None:
        """Do what is asked for, and compare what came of it with what the case says of it."""
        error = None
        try:
            self._do(asked)
        except _ErrorInKafka as kafkas:
            error = str(kafkas)
        if self.is_known:
            told = asked.get("error")
            assert bool(error) is bool(told), (asked, error)
            assert error is None or told is True or error in str(told).lower(), (asked, error)
        if "state" in asked and not self.is_known:
            self.state, self.is_known = asked["state"], True
        if "state" in asked:
            assert asked["state"] == self.state or (asked["state"] == "none" and self.state is _NONE), (asked, self)
        if asked["op"] in _DONE and "checkpoint" in asked and self.is_known:
            assert asked["checkpoint"] == self.checkpoint, (asked, self)

    def _do(self, asked: Fields) -> None:
        operation = asked["op"]
        if operation not in _ALL:
            raise NotUnderstoodError(f"there is no operation {operation!r} on cleaning states")
        if operation in _SET:
            given = asked.get("value", asked.get("state"))
            self.state, self.is_known = (_NONE if given == "none" else given), True
        elif operation in _GRAB:
            self.is_known = False  # whether it is dirty, and what its policy is, a case of states does not tell
        elif self.is_known and operation in _DONE:
            self._done(asked)
        elif self.is_known and operation not in _NO_STATE:
            self._move(operation)

    def _move(self, operation: str) -> None:
        if operation in _PAUSE_FREE:
            self.state = "paused(1)" if self.state is _NONE else self.state
        if operation in _ABORT_AND_PAUSE | _ABORT:
            self._abort_and_pause()
        if operation in _RESUME | _ABORT:
            self._resume()
        if operation in _CHECK and self.state == _ABORTED:
            raise _ErrorInKafka(_ABORTED_ERROR)

    def _done(self, asked: Fields) -> None:
        if self.state not in (_IN_PROGRESS, _ABORTED):
            raise _ErrorInKafka(_ILLEGAL)
        if self.state == _IN_PROGRESS and asked["op"] == "done_cleaning":
            self.checkpoint = asked.get("end", self.checkpoint)
        self.state = _NONE if self.state == _IN_PROGRESS else "paused(1)"

    def _abort_and_pause(self) -> None:
        if self.state == _IN_PROGRESS:
            # It returns when the cleaner has stopped.
            self.state = _ABORTED
            self.is_known = False
        elif self.state == _ABORTED:
            raise _ErrorInKafka(_ILLEGAL)
        else:
            self.state = f"paused({self._pauses + 1})"

    def _resume(self) -> None:
        if not self.is_known:
            return
        if not self._pauses:
            raise _ErrorInKafka(_ILLEGAL)
        self.state = f"paused({self._pauses - 1})" if self._pauses > 1 else _NONE

    @property
    def _pauses(self) -> int:
        found = _PAUSED.fullmatch(self.state or "")
        return int(found[1]) if found else 0
