"""What a tick tells of assets is told again if Dagster did not store it, and it is told once if Dagster did."""

from __future__ import annotations

import sqlite3
from unittest.mock import patch

import dagster as dg
import pytest

from keptlog.dagster.orchestration import clean_sensors
from keptlog.dagster.orchestration.clean_sensors import EVENTS_PER_TICK
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.instance import fresh_instance
from tests.orchestration.shipped import KEYS, dirty_ratio_sensor


def told(result: dg.SensorResult) -> list[str]:
    """The topic-partitions of dirty sections that a tick tells of."""
    events = [each for each in result.asset_events if isinstance(each, dg.AssetMaterialization)]
    return [each.partition or "" for each in events if each.asset_key == KEYS.dirty("users")]


def tick_that_is_not_stored(world: World) -> dg.SensorResult:
    """A preview in Dagster's pages; or Dagster's disk is full."""
    cursors = dict(world.cursors)
    with patch.object(world.instance, "report_runless_asset_event"):
        try:
            return world.tick(dirty_ratio_sensor)
        finally:
            world.cursors = cursors


def test_a_dirty_section_is_told_again_after_a_tick_that_was_not_stored(world: World) -> None:
    world.topic("users", 2)
    world.tick(dirty_ratio_sensor)
    world.append("users", ("a", "1"))
    assert told(tick_that_is_not_stored(world)) == ["users-0"]
    world.append("users", ("a", "1"), partition=1)
    assert sorted(told(tick_that_is_not_stored(world))) == ["users-0", "users-1"]

    assert sorted(told(world.tick(dirty_ratio_sensor))) == ["users-0", "users-1"]

    assert told(world.tick(dirty_ratio_sensor)) == []


def test_so_is_the_only_one_that_has_changed_by_time_alone(world: World) -> None:
    world.topic("users", min_compaction_lag_ms=str(HOUR_MS))
    world.append("users", ("a", "1"), age_ms=0)
    while world.tick(dirty_ratio_sensor).asset_events:
        pass
    world.now_ms += 2 * HOUR_MS
    assert told(tick_that_is_not_stored(world)) == ["users-0"]

    assert told(world.tick(dirty_ratio_sensor)) == ["users-0"]

    assert told(world.tick(dirty_ratio_sensor)) == []


def test_a_dirty_section_is_told_after_a_tick_in_which_dagsters_database_was_locked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_args: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    world.topic("users")
    world.tick(dirty_ratio_sensor)
    world.append("users", ("a", "1"))
    with monkeypatch.context() as patch:
        patch.setattr(clean_sensors, "untold_cleans", locked)
        with pytest.raises(sqlite3.OperationalError):
            world.tick(dirty_ratio_sensor)

    assert told(world.tick(dirty_ratio_sensor)) == ["users-0"]


def test_it_is_also_told_again_where_a_tick_could_tell_only_a_part(world: World) -> None:
    world.topic("users", 3 * EVENTS_PER_TICK)
    while world.tick(dirty_ratio_sensor).asset_events:
        pass
    world.now_ms += 1
    for partition in range(2 * EVENTS_PER_TICK):
        world.append("users", ("a", "1"), partition=partition)
    assert len(told(tick_that_is_not_stored(world))) == EVENTS_PER_TICK

    ticks = [told(world.tick(dirty_ratio_sensor)) for _ in range(3)]

    assert [len(each) for each in ticks] == [EVENTS_PER_TICK, EVENTS_PER_TICK, 0]
    assert len({name for each in ticks for name in each}) == 2 * EVENTS_PER_TICK


def test_a_dagster_with_a_new_database_hears_of_all_sections_from_a_process_that_went_on(world: World) -> None:
    world.topic("users", 2)
    world.tick(dirty_ratio_sensor)
    with fresh_instance() as instance:
        world.instance = instance
        world.cursors.clear()

        world.tick(dirty_ratio_sensor)

        for key in (KEYS.dirty("users"), KEYS.clean("users")):
            assert instance.get_materialized_partitions(key) == {"users-0", "users-1"}


def test_nothing_is_told_again_because_of_a_preview_with_another_cursor(world: World) -> None:
    world.topic("users", 2)
    world.tick(dirty_ratio_sensor)
    cursors, world.cursors = world.cursors, {}
    world.tick(dirty_ratio_sensor)
    world.cursors = cursors

    assert told(world.tick(dirty_ratio_sensor)) == []
