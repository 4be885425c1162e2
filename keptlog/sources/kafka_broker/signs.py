"""What a client's statistics say that it tells nobody: how far it has fetched, and whether the leader answers at all.

A leader that is silent would cost each of its parts the whole wait, one after the other:

    part 1    waits a minute in vain for broker 2, and says so to the others of its task
    part 2    is led by broker 1: it waits as long as any part
    part 3    waits some seconds until broker 2 has answered; then as long as any part

Who is only slow, or held back by a quota, has answered at once. In a cluster that says nothing at all nobody is known
to lead: that is remembered in the same way, until anything is heard of it. Another matter are partitions of which it
says that nobody leads them, as of those whose only replica is down: that others have leaders is no news of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from keptlog.foreign_json import json_value
from keptlog.kafka_client.leaders import LEADERLESS, UNKNOWN

_UP = "UP"
"""Of a connection: the broker has answered on it."""


@dataclass(slots=True)
class Silence:
    """Which brokers of a cluster were waited for in vain: known to the parts of one ingest that one task reads.

    Who looks at topics remembers it too (``topics``), for as long as an ingest.
    """

    leaders: set[int] = field(default_factory=set)
    """Ids of brokers, ``LEADERLESS`` or ``UNKNOWN``."""

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
    leader: int = UNKNOWN
    has_answered: bool = False
    """Whether the leader has, since the client was made."""
    is_up: bool = False
    """Whether the leader was connected, and had answered on it, when this was last told."""
    is_leaderless: bool = False
    """Whether nobody led it then, by brokers of which one was connected: where none is, the client knows no leader."""
    is_anonymous: bool = False
    """Whether it has answered before anybody said who it is."""

    def __call__(self, statistics: str) -> None:
        told = json_value(statistics)
        partition = told.get("topics", {}).get(self.topic, {}).get("partitions", {}).get(self.partition, {})
        self.fetched = partition.get("next_offset", -1)
        self.times += 1
        # One that is asked for is listed with leader -1 before any broker has told of it, too.
        is_told = "leader" in partition and not partition.get("unknown")
        self.is_led_by(partition["leader"] if is_told else UNKNOWN)
        brokers = told.get("brokers", {}).values()
        led = [each for each in brokers if each["nodeid"] == self.leader >= 0]
        self.is_up = any(each["state"] == _UP for each in led)
        self.is_leaderless = self.leader == LEADERLESS and any(each["state"] == _UP for each in brokers)
        if self.is_up:
            self.answers()

    @property
    def known_leader(self) -> int | None:
        """Its id; null if brokers have not said who leads, or that nobody does."""
        return self.leader if self.leader >= 0 else None

    def is_led_by(self, leader: int) -> None:
        """Brokers say so, unless it is ``UNKNOWN``."""
        before, self.leader = self.leader, leader
        if leader == UNKNOWN:
            return
        self.silence.answers(UNKNOWN)
        if before == LEADERLESS != leader:
            self.silence.answers(LEADERLESS)
        if self.is_anonymous and leader >= 0:
            self.is_anonymous = False
            self.silence.answers(leader)

    def answers(self) -> None:
        """The leader does, so that the cluster has said who leads. Of its other brokers that tells nothing."""
        self.has_answered = True
        self.silence.answers(UNKNOWN)
        if self.leader >= 0:
            self.silence.answers(self.leader)
        else:
            self.is_anonymous = True

    def given_up(self) -> None:
        """The leader was waited for in vain."""
        self.silence.given_up(self.leader)

    def wait_seconds(self, longest: float, after_silence: float) -> float:
        """How long the next sign is waited for."""
        return longest if self.has_answered else self.silence.wait_seconds(self.leader, longest, after_silence)
