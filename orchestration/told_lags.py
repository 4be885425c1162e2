"""Which lags of sources Dagster was told of: a new process asks it, some topic-partitions a tick.

The daemon begins a process each minute where nobody has started a code server. One that asked nobody would tell all
anew, 20 a tick, for ever. Each goes on behind those that the last one has asked about; of the others nothing is told
until then. Half of the questions are about those that are stopped, if there are so many.

Who has asked remembers that. But somebody may wipe a source: its key is gone from Dagster then, which takes one
question a tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dagster as dg

from keptlog.dagster.assets.ingest_report import lag_told
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.orchestration.still_told import stored_keys
from keptlog.dagster.orchestration.stored_ticks import ToldLast, behind
from keptlog.ingest.lag_news import LagNews, ShownLag
from keptlog.log.topic_partition import TopicPartition

if TYPE_CHECKING:
    from keptlog.ingest.lag import LagScan
    from keptlog.ingest.log_lag import LogLag

ASKED_PER_TICK = 100
"""Topic-partitions; a query of 3 to 8 ms each, however many observations there are."""


@dataclass
class ToldLags(ToldLast):
    """Of one mount."""

    news: LagNews = field(default_factory=LagNews)

    @classmethod
    def of(cls, tick: Tick) -> ToldLags:
        """Those of the mount whose sensor ticks."""
        return tick.log_store.remembered(cls, lambda _: cls(), tick.mount.name_prefix)

    def to_tell(
        self, tick: Tick, scan: LagScan, turns: Sequence[str]
    ) -> tuple[list[tuple[TopicPartition, LogLag]], list[str]]:
        """What is to be told of a scan, and the turns after it.

        ``turns`` are the stopped topic-partition and the other one that Dagster was asked about last.
        """
        self._forget_lost(tick)
        unheard = {str(name): name for name in self.news.unheard(scan)}
        if unheard:
            turns = self._ask(tick, scan, unheard, turns)
        return self.news.of(scan, set(self.news.unheard(scan))), [*turns]

    def _forget_lost(self, tick: Tick) -> None:
        """Take for told to nobody what Dagster has lost."""
        told = self.news.names_told()
        if told:
            stored = stored_keys(tick)
            left = {topic for topic in {name.topic for name in told} if tick.keys.source(topic) in stored}
            self.news.mark_untold([name for name in told if name.topic not in left])

    def _ask(
        self, tick: Tick, scan: LagScan, unheard: dict[str, TopicPartition], turns: Sequence[str]
    ) -> tuple[str, str]:
        are_stopped = {str(name) for topic in scan.topics for name in topic.stopped}
        stopped = behind(turns[0], unheard.keys() & are_stopped)
        others = behind(turns[1], unheard.keys() - are_stopped)
        stopped = stopped[: max(ASKED_PER_TICK // 2, ASKED_PER_TICK - len(others))]
        others = others[: ASKED_PER_TICK - len(stopped)]
        for name in [*stopped, *others]:
            self.news.hear(unheard[name], _told_of(tick, unheard[name]))
        return [turns[0], *stopped][-1], [turns[1], *others][-1]


def _told_of(tick: Tick, name: TopicPartition) -> tuple[ShownLag, int] | None:
    """What Dagster was told last of a topic-partition's source, and when; null if that is nothing."""
    filters = dg.AssetRecordsFilter(asset_key=tick.keys.source(name.topic), asset_partitions=[str(name)])
    for record in tick.context.instance.fetch_observations(filters, limit=1).records:
        if record.asset_observation:
            return lag_told(record.asset_observation), round(1000 * record.timestamp)
    return None
