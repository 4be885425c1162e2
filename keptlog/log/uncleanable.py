"""A log whose clean failed: why, since when, and when it is tried again.

Kafka marks such a log in memory and never touches it again before the broker restarts; its retention stops too. Here
the mark is stored beside the log, so that no restart loses it, and the log is tried again: after
``log.cleaner.backoff.ms``, then after twice as long, and so on up to ``keptlog.cleaner.backoff.max.ms``. A clean that
succeeds clears it. Until then the other logs are cleaned as ever, and the log's own retention goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def is_waiting(self, now_ms: int) -> bool:
        """Whether the log is not to be tried yet."""
        return now_ms < self.retry_at_ms


def after_failure(previous: Uncleanable | None, reason: str, now_ms: int, backoff: Backoff) -> Uncleanable:
    """The mark of a log after one more clean of it failed."""
    attempts = previous.attempts + 1 if previous else 1
    since_ms = previous.since_ms if previous else now_ms
    return Uncleanable(reason, since_ms, attempts, now_ms + backoff.after(attempts))
