"""A log whose clean failed: why, since when, and when it is tried again.

Kafka marks such a log in memory and never touches it again before the broker restarts; its retention stops too. Here
the mark is stored beside the log, so that no restart loses it, and the log is tried again: after
``log.cleaner.backoff.ms``, then after twice as long, and so on up to ``keptlog.cleaner.backoff.max.ms``. A clean that
succeeds clears it. Until then the other logs are cleaned as ever, and the log's own retention goes on.

A try costs little, and shows by itself that somebody has mended what was wrong. But where no try can succeed before
somebody does (a corrupt file, a wrong setting, a bug), people are told what is to be done, and of no next try.

Whoever dates a mark may have a clock that is ahead, by years even. So the mark says how long its wait is. Where more
than twice that is still to come, its time says nothing, and the log may be tried. A clock that is only a little ahead
is borne: after a few failures the wait is longer than that.
"""

from __future__ import annotations

from dataclasses import dataclass

from keptlog.errors import Action, KeptlogError
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time, next_time

_MOST_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a log that failed is left alone."""

    first_ms: int
    longest_ms: int

    def after(self, attempts: int) -> int:
        """Ms to wait after this many failures in a row."""
        return min(self.first_ms << min(attempts - 1, _MOST_DOUBLINGS), max(self.longest_ms, self.first_ms))


@dataclass(frozen=True, slots=True)
class Uncleanable:
    """One log's mark; stored with it, under these names."""

    reason: str
    """One line: what its last clean failed with."""
    since_ms: int
    """When it failed first since it was last cleaned."""
    attempts: int
    retry_at_ms: int
    action: str = Action.RETRY.value
    """What helps, an ``Action``; a newer keptlog may know others."""
    wait_ms: int | None = None
    """How long before ``retry_at_ms`` it failed last; null in older marks, which tell only when it failed first."""

    def is_waiting(self, now_ms: int) -> bool:
        """Whether the log is not to be tried yet."""
        return self.believed_from_ms <= now_ms < self.retry_at_ms

    @property
    def believed_from_ms(self) -> int:
        """At an earlier time, the clock that has dated the mark was far ahead."""
        return 2 * self.failed_ms - self.retry_at_ms

    @property
    def failed_ms(self) -> int:
        """When it failed last; of an older mark, when it failed first."""
        return self.since_ms if self.wait_ms is None else self.retry_at_ms - self.wait_ms

    def told(self, now_ms: int, when: str | None = None) -> str:
        """All of it in one line for people; ``when`` says what else a next try waits for."""
        failed = counted(self.attempts, "clean") + (" failed with" if self.attempts == 1 else " failed, the last with")
        since = f"uncleanable since {iso_time(self.since_ms)}"
        if self.action != Action.RETRY:
            return f"{since}: {failed}: {self.reason}; no clean succeeds before {_BEFORE.get(self.action, _ANYTHING)}"
        then = when or (next_time(self.retry_at_ms) if self.is_waiting(now_ms) else "as soon as it is due")
        return f"{since}, next try {then}: {failed}: {self.reason}"


_BEFORE: dict[str, str] = {
    Action.FIX_DATA: "its data are repaired",
    Action.FIX_CONFIG: "that setting is changed",
    Action.FIX_STORAGE: "the storage lets it",
    Action.UPGRADE: "keptlog is upgraded",
    Action.REPORT_BUG: "that bug is mended: please report it",
}
_ANYTHING = "that is mended"


def what_helps(error: KeptlogError) -> Action:
    """What is to be done about an error; one that nobody foresaw may pass by itself."""
    return Action.RETRY if type(error) is KeptlogError else error.action


def after_failure(
    previous: Uncleanable | None, reason: str, now_ms: int, backoff: Backoff, action: Action = Action.RETRY
) -> Uncleanable:
    """The mark of a log after one more clean of it failed; ``action`` is what helps."""
    attempts = previous.attempts + 1 if previous else 1
    since_ms = min(previous.since_ms, now_ms) if previous else now_ms
    wait_ms = backoff.after(attempts)
    return Uncleanable(reason, since_ms, attempts, now_ms + wait_ms, action.value, wait_ms)
