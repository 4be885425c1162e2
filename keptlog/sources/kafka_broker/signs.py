"""What a client's statistics say that it tells nobody: how far it has fetched, and whether the leader answers at all.

A cluster that is silent would cost each of its parts the whole wait, one after the other:

    part 1    waits a minute in vain, and says so to the others of its task
    part 2    waits some seconds until the leader of its partition has answered; then as long as any part

Who is only slow, or held back by a quota, has answered at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

_UP = "UP"
"""Of a connection: the broker has answered on it."""


@dataclass(slots=True)
class Silence:
    """Whether a cluster was waited for in vain: known to the parts of one ingest that are read in one task."""

    is_known: bool = False


@dataclass(slots=True)
class Signs:
    """Those of one topic-partition there, from a client of its own (``stats_cb``)."""

    topic: str
    partition: str
    silence: Silence
    fetched: int = -1
    """Up to where the client has fetched. It has queued the records below before it says so
    (``rd_kafka_msgset_reader_run``)."""
    times: int = 0
    """So often it was told."""
    has_answered: bool = False
    """Whether the leader has, since the client was made."""

    def __call__(self, statistics: str) -> None:
        told = json.loads(statistics)
        partition = told.get("topics", {}).get(self.topic, {}).get("partitions", {}).get(self.partition, {})
        self.fetched = partition.get("next_offset", -1)
        self.times += 1
        leader = partition.get("leader", -1)
        brokers = told.get("brokers", {}).values()
        if leader >= 0 and any(each["nodeid"] == leader and each["state"] == _UP for each in brokers):
            self.answers()

    def answers(self) -> None:
        """The leader does."""
        self.has_answered, self.silence.is_known = True, False

    def wait_seconds(self, longest: float, after_silence: float) -> float:
        """How long the next sign is waited for."""
        return after_silence if self.silence.is_known and not self.has_answered else longest
