"""Commits what a pass has staged, topic by topic, and finds out who is at fault where that fails: a topic, or nobody.

``StorageUnavailable`` is the error of catalog or storage that are down, and of those that don't take this topic alone.
``CommitStateUnknown`` is that of a commit that was sent to them and got no answer. What comes after tells which it was:

    another topic lands       both are up. It is tried once more, for an outage may just have ended; if it is not taken
                              then, it is something about the topic. Of one in doubt, the same commit finds out
    no other topic lands      nobody can tell, so it is no log's fault
    nor does the next one     an outage for all: the others are not tried, each would take half a minute to be given up

What has landed before tells nothing: an outage may begin at any time. All other errors are the topic's own, and tell
nothing of others; that goes for one that nobody has thought of, too.

A log that came too late costs only itself: the others of its topic are committed without it (``land_fresh``). One in
which the same has landed before, by a process that was killed then, counts as landed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from keptlog.errors import CommitStateUnknown, KeptlogError, StalePlan, StorageUnavailable, first_line
from keptlog.log.words.counted import counted
from keptlog.table.waiting.reaching import why_not_landed

NO_ANSWER = (StorageUnavailable, CommitStateUnknown)
"""What is raised where catalog or storage do not answer; in the second case something was sent to them."""
_logger = logging.getLogger(__name__)

OUTAGES_BORNE = 2
"""So many topics may be out of reach before the others wait: each takes half a minute to be given up."""

_T = TypeVar("_T")


def land_fresh(
    commit: Callable[[Sequence[_T]], None],
    of_logs: list[_T],
    name_of: Callable[[_T], object],
    stale: dict[str, KeptlogError],
) -> None:
    """Commit together what is to land in several logs of a topic; what came too late for its log is left out.

    It goes from ``of_logs`` into ``stale``, also where the commit of the others fails then: so the same call again
    finds out which of these have landed. What has landed before stays in ``of_logs``, and is not sent.

    Raises:
        StalePlan: none of them could land.
        KeptlogError: whatever ``commit`` raises.
    """
    waiting = list(of_logs)
    while waiting:
        try:
            commit(waiting)
        except StalePlan as error:
            if error.logs is None:
                raise
            stale |= error.logs
            of_logs[:] = [each for each in of_logs if str(name_of(each)) not in error.logs]
            if not of_logs:
                raise
            waiting = [each for each in waiting if str(name_of(each)) not in {*error.logs, *error.landed}]
        else:
            return


@dataclass
class Landing:
    """The commits of one pass on their way. ``swap`` commits a topic."""

    swap: Callable[[str], None]
    run_id: str
    landed: list[str] = field(default_factory=list)
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    """Topic to the error."""
    blameless: set[str] = field(default_factory=set)
    """Those of ``failed`` that were out of reach, got no answer, or were not tried, since a topic has landed."""
    outage: KeptlogError | None = None
    """What is down for all; null if nothing was seen to be. One topic that is not taken is no outage."""

    def land_all(self, topics: Iterable[str]) -> None:
        """Commit these topics, in their order; whatever one of them fails of, the others go on."""
        waiting = list(topics)
        while waiting and not self.outage:
            self._land(waiting.pop(0))
        if self.outage and waiting:
            text = "run %s: %s not tried, for nothing can be committed now: %s"
            _logger.warning(text, self.run_id, counted(len(waiting), "topic"), first_line(self.outage))
            self.failed |= dict.fromkeys(waiting, self.outage)
            self.blameless |= set(waiting)

    def _land(self, topic: str) -> None:
        error = self._why_not(topic)
        if isinstance(error, NO_ANSWER):
            self.blameless.add(topic)
            self.outage = self._outage() if len(self.blameless) == OUTAGES_BORNE else None
        elif not error:
            for overtaken in sorted(self.blameless):
                self._why_not(overtaken)
            self.blameless.clear()

    def _outage(self) -> KeptlogError:
        """What topics are told that are not tried: theirs is not in doubt, whatever the commits before them are."""
        errors = [self.failed[topic] for topic in sorted(self.blameless)]
        down = next((error for error in errors if isinstance(error, StorageUnavailable)), None)
        text = "commits get no answer now, so this one was not sent; nothing landed, try again"
        return down or StorageUnavailable(f"{text} ({first_line(errors[0])})")

    def _why_not(self, topic: str) -> KeptlogError | None:
        """Commit a topic; the error if that fails."""
        self.failed.pop(topic, None)
        try:
            self.swap(topic)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
            self.failed[topic] = why_not_landed(topic, error)
            return self.failed[topic]
        self.landed.append(topic)
        return None
