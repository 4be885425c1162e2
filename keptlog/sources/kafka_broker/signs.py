"""What a client's statistics say that it tells nobody: how far it has fetched, and whether the leader answers at all.

A leader that is silent would cost each of its parts the whole wait, one after the other:

    part 1    waits a minute in vain for broker 2, and says so to the others of its task
    part 2    is led by broker 1: it waits as long as any part
    part 3    waits some seconds until broker 2 has answered; then as long as any part

Who is only slow, or held back by a quota, has answered at once. In a cluster that says nothing at all nobody is known
to lead: that is remembered in the same way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

NOBODY = -1
"""Leads a partition as long as no broker has said who does."""

_UP = "UP"
"""Of a connection: the broker has answered on it."""


@dataclass(slots=True)
class Silence:
    """Which brokers of a cluster were waited for in vain: known to the parts of one ingest that one task reads.

    Who looks at topics remembers it too (``topics``), for as long as an ingest.
    """

    leaders: set[int] = field(default_factory=set)
    """Ids of brokers, or ``NOBODY``."""

    def given_up(self, leader: int) -> None:
        """It was waited for in vain."""
        self.leaders.add(leader)

    def answers(self, leader: int) -> None:
        """It does. Of others that tells nothing."""
        self.leaders.discard(leader)

    def wait_seconds(self, leader: int, longest: float, after_silence: float) -> float:
        """How long it is waited for."""
        return after_silence if leader in self.leaders else longest


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
    leader: int = NOBODY
    has_answered: bool = False
    """Whether the leader has, since the client was made."""

    def __call__(self, statistics: str) -> None:
        told = json.loads(statistics)
        partition = told.get("topics", {}).get(self.topic, {}).get("partitions", {}).get(self.partition, {})
        self.fetched = partition.get("next_offset", -1)
        self.times += 1
        self.leader = partition.get("leader", NOBODY)
        brokers = told.get("brokers", {}).values()
        if self.leader >= 0 and any(each["nodeid"] == self.leader and each["state"] == _UP for each in brokers):
            self.answers()

    def answers(self) -> None:
        """The leader does, so that the cluster has said who leads. Of its other brokers that tells nothing."""
        self.has_answered = True
        self.silence.leaders -= {NOBODY, self.leader}

    def given_up(self) -> None:
        """The leader was waited for in vain."""
        self.silence.leaders.add(self.leader)

    def wait_seconds(self, longest: float, after_silence: float) -> float:
        """How long the next sign is waited for."""
        return after_silence if self.leader in self.silence.leaders and not self.has_answered else longest
