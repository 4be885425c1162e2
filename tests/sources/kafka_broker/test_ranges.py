"""Ranges are cut so that all cores are busy, without gaps, into parts that are neither tiny nor huge."""

from __future__ import annotations

import pytest

from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan, OffsetRange, SourceIdentity
from keptlog.sources.kafka_broker.ranges import LEAST_OFFSETS, MOST_OFFSETS, broker_parts

SETTINGS = ClientSettings.load({"bootstrap.servers": "a:1"}, {})


def plan(*ranges: tuple[int, int]) -> IngestPlan:
    read = tuple(OffsetRange(number, None, start, end) for number, (start, end) in enumerate(ranges))
    return IngestPlan("here", SourceIdentity("there"), len(ranges), read)


@pytest.mark.parametrize(
    ("cores", "ranges", "lengths"),
    [
        (4, [(100, 100 + 8 * LEAST_OFFSETS)], [[2 * LEAST_OFFSETS] * 4]),
        (4, [(0, LEAST_OFFSETS)], [[LEAST_OFFSETS]]),
        (4, [(0, LEAST_OFFSETS + 1)], [[LEAST_OFFSETS // 2, LEAST_OFFSETS // 2 + 1]]),
        (2, [(0, 1), (7, 7), (0, 3)], [[1], [], [3]]),
        (1, [(0, 2 * MOST_OFFSETS)], [[MOST_OFFSETS] * 2]),
    ],
)
def test_ranges_are_cut_evenly(cores: int, ranges: list[tuple[int, int]], lengths: list[list[int]]) -> None:
    [parts] = broker_parts([(plan(*ranges), SETTINGS)], cores)
    found = [[part.weight for part in parts if part.topic_partition.partition == n] for n in range(len(ranges))]
    assert found == lengths
    for number, (start, end) in enumerate(ranges):
        own = [part for part in parts if part.topic_partition.partition == number]
        assert [start, *(part.end_offset for part in own)] == [*(part.from_offset for part in own), end]
    assert {(part.topic, part.topic_partition.topic) for part in parts} == {("there", "here")}


def test_the_parts_of_all_topics_share_the_cores() -> None:
    plans = [(plan((0, 4 * LEAST_OFFSETS)), SETTINGS)] * 2
    assert [len(parts) for parts in broker_parts(plans, cores=2)] == [1, 1]


def test_the_parts_of_one_cluster_know_together_that_it_is_silent() -> None:
    plans = [(plan((0, 1)), SETTINGS), (plan((0, 1)), SETTINGS.at("a:1")), (plan((0, 1)), SETTINGS.at("b:1"))]
    (first,), (second,), (other,) = broker_parts(plans, cores=2)
    assert first.silence is second.silence
    assert first.silence is not other.silence
