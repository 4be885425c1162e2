"""Who leads topic-partitions, and the cluster; and what leaders alone can tell: where logs begin and end.

librdkafka asks all leaders together, and waits for the slowest of them. So each is asked by itself, and all at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import Consumer, IsolationLevel, KafkaException, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, ClusterMetadata, ListOffsetsResultInfo, OffsetSpec

LEADERLESS = -1
"""Leads a partition of which brokers say that nobody does."""
UNKNOWN = -2
"""Leads a partition as long as no broker has said who does, or that nobody does."""


def controller_of(told: ClusterMetadata) -> int | None:
    """The broker that alone is asked for topics and their settings; null where the cluster has none for a moment."""
    return told.controller_id if told.controller_id >= 0 else None


def leaders_of(told: ClusterMetadata, topic: str, partitions: Iterable[int]) -> dict[Position, int]:
    """Who leads these partitions of a topic."""
    listed = told.topics[topic].partitions if topic in told.topics else {}
    return {Position(topic, number): listed[number].leader if number in listed else UNKNOWN for number in partitions}


def leader_now(client: Consumer | Producer, topic: str, partition: int, wait_seconds: float) -> int:
    """Who leads a partition, as any broker says it; ``UNKNOWN`` if none does in time."""
    try:
        told = client.list_topics(topic, timeout=wait_seconds)
    except KafkaException:
        return UNKNOWN
    [leader] = leaders_of(told, topic, [partition]).values()
    return leader


def ask_leaders(
    admin: AdminClient,
    leaders: Mapping[Position, int],
    which: OffsetSpec,
    isolation: IsolationLevel,
    wait_of: Callable[[int], float],
) -> dict[int, dict[Position, Future[ListOffsetsResultInfo]]]:
    """By leader what it will tell of its logs; ``wait_of`` says how many seconds one is waited for."""
    wanted: dict[int, dict[Position, OffsetSpec]] = defaultdict(dict)
    for each, leader in leaders.items():
        wanted[leader][each] = which
    if len(wanted) > 1:
        # Of those that nobody leads the client says so only if somebody else is asked too.
        leaderless = wanted.pop(LEADERLESS, {})
        wanted[min(wanted, key=wait_of)] |= leaderless
    return {
        leader: admin.list_offsets(specs, isolation_level=isolation, request_timeout=wait_of(leader))
        for leader, specs in wanted.items()
    }
