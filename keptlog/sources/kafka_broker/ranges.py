"""Cuts what is to be read into parts, so that all cores are busy even on one large topic-partition.

    users-0    [ 0 .............................. 2,000,000 )       four cores
               [ part      ][ part      ][ part      ][ part ]

A part is a consumer of its own, with a connection and a metadata request, so it should not be too small; and what has
failed is read again, so it should not be too large.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.sources.kafka_broker.signs import Silence

LEAST_OFFSETS = 250_000
MOST_OFFSETS = 16_000_000


def broker_parts(plans: Sequence[tuple[IngestPlan, ClientSettings]], cores: int) -> list[tuple[BrokerPart, ...]]:
    """The parts of each plan, in the order of its ranges; together they keep ``cores`` busy."""
    planned = sum(each.end_offset - each.from_offset for plan, _ in plans for each in plan.ranges)
    offsets = min(max(-(-planned // cores), LEAST_OFFSETS), MOST_OFFSETS)
    silence: dict[str | None, Silence] = defaultdict(Silence)
    return [_parts(plan, settings, offsets, silence[settings.bootstrap]) for plan, settings in plans]


def _parts(plan: IngestPlan, settings: ClientSettings, offsets: int, silence: Silence) -> tuple[BrokerPart, ...]:
    parts: list[BrokerPart] = []
    for each in plan.ranges:
        name = TopicPartition(plan.topic, each.partition)
        count = -(-(each.end_offset - each.from_offset) // offsets)
        cuts = [
            each.from_offset + (each.end_offset - each.from_offset) * number // max(count, 1)
            for number in range(count + 1)
        ]
        for start, end in pairwise(cuts):
            epoch = each.position_epoch if start == each.position else None
            parts.append(BrokerPart(settings, plan.source.topic, name, start, end, epoch, silence, kept=plan.kept))
    return tuple(parts)
