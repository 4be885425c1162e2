"""What is told of other topics while a large one is told for the first time."""

from __future__ import annotations

import pytest

from keptlog.dagster.assets.numbers import UNCLEANABLE
from keptlog.dagster.orchestration.clean_sensors import EVENTS_PER_TICK
from keptlog.log.uncleanable import Backoff
from keptlog.table.changes.mark import Failure
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.shipped import KEYS, dirty_ratio_sensor
from tests.orchestration.test_told_sections import LOGS, until_nothing_is_told


@pytest.fixture
def beside(world: World) -> World:
    """A topic of which all was told, and a large one of which nothing was."""
    world.topic("orders")
    world.append("orders", ("a", "1"))
    until_nothing_is_told(world)
    world.topic("users", LOGS)
    return world


def test_a_mark_does_not_wait_until_the_clean_sections_of_the_large_one_are_told(beside: World) -> None:
    """They took all places of each tick."""
    log = beside.store.logs("orders")[0]
    failure = Failure(log.topic_partition, "a segment is damaged", log.checkpoint)
    beside.store.mark_uncleanable("orders", [failure], beside.now_ms, Backoff(HOUR_MS, HOUR_MS))

    beside.tick(dirty_ratio_sensor)

    [newest] = beside.instance.fetch_materializations(KEYS.dirty("orders"), limit=1).records
    assert newest.asset_materialization
    assert UNCLEANABLE in newest.asset_materialization.metadata


def test_half_of_a_tick_is_for_the_clean_sections_and_all_of_it_where_nothing_else_is_to_be_told(beside: World) -> None:
    beside.tick(dirty_ratio_sensor)
    told = beside.instance.get_materialized_partitions
    assert len(told(KEYS.clean("users"))) == len(told(KEYS.dirty("users"))) == EVENTS_PER_TICK // 2

    for _ in range(3):
        beside.tick(dirty_ratio_sensor)

    assert len(told(KEYS.clean("users"))) == len(told(KEYS.dirty("users"))) == LOGS == 2 * EVENTS_PER_TICK
    assert not beside.tick(dirty_ratio_sensor).asset_events
