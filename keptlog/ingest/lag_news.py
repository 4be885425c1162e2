"""What is worth telling of the lag that scans find: what has changed, a little at a time, the urgent first.

Hundreds of busy topic-partitions change with every scan, and each line told costs its reader's database tens of ms. So
one that is merely further on is told every few minutes; one that stopped, or caught up, at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.log.given.past import was_within
from keptlog.log.topic_partition import TopicPartition

if TYPE_CHECKING:
    from keptlog.ingest.lag import LagScan, LogLag

NEWS_PER_SCAN = 20
"""Each is written to Dagster's database in the daemon, at tens of ms apiece."""
NEWS_INTERVAL_MS = 300_000
"""A busy topic-partition changes all the time; this often it is told. What stopped or caught up is told at once."""


@dataclass
class LagNews:
    """Remembers what was told of the topic-partitions of one store. Safe to use from several threads."""

    _told: dict[TopicPartition, tuple[LogLag, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, scan: LagScan, turns: Sequence[str] = ("", "")) -> list[tuple[TopicPartition, LogLag]]:
        """What is to be told of a scan: topic-partitions that have changed, stopped ones first, a few at a time.

        ``turns`` are the stopped one and the other one that were told last. Who remembers nothing begins behind them:
        a process may live for two scans only, and then would tell of the same ones for ever.
        """
        with self._lock:
            lags = {name: topic.lag_of(name) for topic in scan.topics for name in topic.names}
            changed = [name for name, lag in lags.items() if self._is_news(name, lag, scan.now_ms)]
            last = [next((name for name in lags if str(name) == turn), None) for turn in turns]

            def waits(name: TopicPartition) -> tuple[bool, int, bool, TopicPartition]:
                is_well = lags[name].stopped is None
                before = last[is_well]
                return is_well, self._told_ms(name), before is not None and name <= before, name

            changed.sort(key=waits)
            told = changed[:NEWS_PER_SCAN]
            self._told.update((name, (lags[name], scan.now_ms)) for name in told)
            return [(name, lags[name]) for name in told]

    def mark_untold(self, names: Iterable[TopicPartition] | None) -> None:
        """Forget what was told of these topic-partitions: it has reached nobody. Of all if null."""
        with self._lock:
            for name in list(self._told) if names is None else names:
                self._told.pop(name, None)

    def _is_news(self, name: TopicPartition, lag: LogLag, now_ms: int) -> bool:
        if name not in self._told:
            return True
        before, told_ms = self._told[name]
        has_caught_up = before.is_behind and not lag.is_behind
        is_old = not was_within(NEWS_INTERVAL_MS, told_ms, now_ms)
        return lag.stopped != before.stopped or has_caught_up or (is_old and lag != before)

    def _told_ms(self, name: TopicPartition) -> int:
        return self._told[name][1] if name in self._told else 0
