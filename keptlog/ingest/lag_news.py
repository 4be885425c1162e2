"""What is worth telling of the lag that scans find: what has changed, a little at a time, the urgent first.

Hundreds of busy topic-partitions change with every scan, and each line told costs its reader's database tens of ms. So
one that is merely further on is told every few minutes; one that stopped, or caught up, at once.

Who remembers nothing may ask its reader what it was told, a few topic-partitions at a time, and leaves the others
until then: a process may live for two scans only, and else would tell all anew.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from keptlog.log.given.past import was_within
from keptlog.log.topic_partition import TopicPartition

if TYPE_CHECKING:
    from keptlog.ingest.lag import LagScan
    from keptlog.ingest.log_lag import LogLag

NEWS_PER_SCAN = 20
"""Each is written to Dagster's database in the daemon, at tens of ms apiece."""
NEWS_INTERVAL_MS = 300_000
"""A busy topic-partition changes all the time; this often it is told. What stopped or caught up is told at once."""


class ShownLag(NamedTuple):
    """What a reader is shown of a topic-partition."""

    stopped: str | None
    position: int | None
    log_start_offset: int | None
    end_offset: int | None
    high_watermark: int | None = None
    """Up to where offsets wait for an open transaction to end, if any do."""

    @classmethod
    def of(cls, lag: LogLag) -> ShownLag:
        """Of what a scan has found."""
        start, end = (lag.log.log_start_offset, lag.log.end_offset) if lag.log else (None, None)
        return cls(lag.stopped, lag.position, start, end, lag.log.high_watermark if lag.log else None)

    @property
    def is_behind(self) -> bool:
        """Whether there is something to be read."""
        return self.end_offset is not None and max(self.position or 0, self.log_start_offset or 0) < self.end_offset


@dataclass
class LagNews:
    """Remembers what was told of the topic-partitions of one store. Safe to use from several threads."""

    _told: dict[TopicPartition, tuple[ShownLag, int]] = field(default_factory=dict)
    _heard: set[TopicPartition] = field(default_factory=set)
    """Those of which it is known what the reader was told."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, scan: LagScan, but_for: Container[TopicPartition] = ()) -> list[tuple[TopicPartition, LogLag]]:
        """What is to be told of a scan: topic-partitions that have changed, stopped ones first, a few at a time.

        Half of the places are for those that are not stopped, if there are so many: the reason of a stopped one may
        be another one at each scan.
        """
        with self._lock:
            lags = {name: topic.lag_of(name) for topic in scan.topics for name in topic.names if name not in but_for}
            changed = [name for name, lag in lags.items() if self._is_news(name, ShownLag.of(lag), scan.now_ms)]
            changed.sort(key=lambda name: (self._told_ms(name), name))
            stopped = [name for name in changed if lags[name].stopped is not None]
            others = [name for name in changed if lags[name].stopped is None]
            first = stopped[: max((NEWS_PER_SCAN + 1) // 2, NEWS_PER_SCAN - len(others))]
            told = [*first, *others][:NEWS_PER_SCAN]
            self._told.update((name, (ShownLag.of(lags[name]), scan.now_ms)) for name in told)
            self._heard.update(told)
            return [(name, lags[name]) for name in told]

    def unheard(self, scan: LagScan) -> list[TopicPartition]:
        """Those of which it is not known what the reader was told."""
        with self._lock:
            return [name for topic in scan.topics for name in topic.names if name not in self._heard]

    def hear(self, name: TopicPartition, told: tuple[ShownLag, int] | None) -> None:
        """Take it from the reader what it was told last of a topic-partition, and when; null if it was nothing."""
        with self._lock:
            self._heard.add(name)
            if told:
                self._told[name] = told

    def mark_untold(self, names: Iterable[TopicPartition] | None) -> None:
        """Forget what was told of these: it reached nobody, or is lost. Of all if null: the reader knows."""
        with self._lock:
            if names is None:
                self._told.clear()
                self._heard.clear()
            for name in names or ():
                self._told.pop(name, None)

    def names_told(self) -> list[TopicPartition]:
        """Those of which the reader was told something."""
        with self._lock:
            return [*self._told]

    def _is_news(self, name: TopicPartition, lag: ShownLag, now_ms: int) -> bool:
        if name not in self._told:
            return True
        before, told_ms = self._told[name]
        has_caught_up = before.is_behind and not lag.is_behind
        is_old = not was_within(NEWS_INTERVAL_MS, told_ms, now_ms)
        return lag.stopped != before.stopped or has_caught_up or (is_old and lag != before)

    def _told_ms(self, name: TopicPartition) -> int:
        return self._told[name][1] if name in self._told else 0
