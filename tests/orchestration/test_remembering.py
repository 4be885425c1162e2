"""What the sensors remember from tick to tick: nothing is read twice, told twice, or waited for too long."""

from __future__ import annotations

import itertools
from dataclasses import fields

import dagster as dg
import pytest

from keptlog.dagster.orchestration.clean_sensors import EVENTS_PER_TICK
from keptlog.log.told.metrics import CleanerMetrics
from keptlog.passes.observer import READING_MS
from keptlog.table.store import LogStore
from tests.orchestration.conftest import HOUR_MS, World, logs_of
from tests.orchestration.shipped import CLEAN_SENSORS, dirty_ratio_sensor, max_compaction_lag_sensor


def test_unchanged_topics_are_not_read_again_by_any_sensor(world: World, looked_at: list[str]) -> None:
    for topic in ("users", "orders"):
        world.topic(topic, min_cleanable_dirty_ratio="1")
        world.append(topic, ("a", "1"))
    looked_at.clear()
    for sensor in CLEAN_SENSORS * 3:
        world.tick(sensor)
    assert sorted(looked_at) == ["orders", "users"]

    looked_at.clear()
    world.store.alter_topic("users", {"delete.retention.ms": "1"})
    for sensor in CLEAN_SENSORS * 3:
        world.tick(sensor)
    assert looked_at == ["users"]


def test_a_first_look_asks_the_catalog_for_no_topic_a_second_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("users", "orders"):
        world.topic(topic)
    world.tick(max_compaction_lag_sensor)  # reads them
    asked: list[str] = []
    monkeypatch.setattr(LogStore, "load_table", lambda _, topic: asked.append(topic))

    made = {each.partition for each in told(world, "clean") if isinstance(each, dg.AssetMaterialization)}
    assert (made, asked) == ({"users-0", "orders-0"}, [])


def test_the_clock_alone_makes_a_log_due_without_reading_it_again(world: World, looked_at: list[str]) -> None:
    world.topic("users", segment_ms=str(HOUR_MS))
    world.append("users", ("a", "1"), age_ms=0)
    assert "next to look at: users-0" in world.skips(dirty_ratio_sensor)
    looked_at.clear()
    world.now_ms += HOUR_MS + 1

    assert len(world.requests(dirty_ratio_sensor)) == 1
    assert looked_at == []


def told(world: World, section: str) -> list[dg.AssetMaterialization | dg.AssetObservation]:
    """What a tick tells of sections of this kind."""
    events = world.tick(dirty_ratio_sensor).asset_events
    found = [each for each in events if isinstance(each, dg.AssetMaterialization | dg.AssetObservation)]
    return [each for each in found if each.asset_key.path[-1] == section]


def test_dirty_sections_are_told_when_they_change_and_only_a_few_a_tick(world: World) -> None:
    world.topic("users", EVENTS_PER_TICK + 1)
    counts = [len(told(world, "dirty")) for _ in range(4)]
    half = EVENTS_PER_TICK // 2
    assert counts == [half, half, 1, 0], "the clean sections, of which Dagster was never told, have the other places"

    world.append("users", ("a", "1"), ("b", "1"))
    (event,) = told(world, "dirty")

    assert isinstance(event, dg.AssetMaterialization), "the page of an asset that is observed says: never materialized"
    assert (event.asset_key, event.partition) == (dg.AssetKey(["users", "dirty"]), "users-0")
    assert event.metadata["dirty_records"].value == 2
    assert event.tags == {"dagster/data_version": "2"}


def test_the_event_of_a_dirty_section_has_the_metrics_of_its_log(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"))

    (event,) = told(world, "dirty")

    known = {field.name.replace("_", "-") for field in fields(CleanerMetrics)} - {"time-since-last-run-ms"}
    assert event.metadata.keys() >= known, "all but the one that is null before the first clean"


def test_a_restarted_process_reports_nothing_that_was_reported(world: World) -> None:
    world.topic("users")
    assert len(told(world, "dirty")) == 1

    world.reopen()

    assert told(world, "dirty") == []
    assert len(world.cursors["dirty_ratio_sensor"] or "") < 100


def slow_observer(world: World, looked_at: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process with time for two topics a look: only reading them takes any."""
    looked_at.clear()
    world.reopen()
    monkeypatch.setattr(world.log_store.observer, "monotonic_ms", lambda: len(looked_at) * READING_MS // 2)


def test_a_look_that_runs_out_of_time_goes_on_in_the_next_tick(
    world: World, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        world.topic(f"topic-{number}")
        world.append(f"topic-{number}", ("a", "1"), ("a", "2"))
    slow_observer(world, looked_at, monkeypatch)

    assert "2 logs, none is due because it is late; 3 topics still to be read" in world.skips(max_compaction_lag_sensor)
    assert sorted(looked_at) == ["topic-0", "topic-1"]
    (request,) = world.requests(dirty_ratio_sensor)
    assert logs_of(request) == [f"topic-{number}-0" for number in range(4)]
    (request,) = world.requests(dirty_ratio_sensor)
    assert logs_of(request) == [f"topic-{number}-0" for number in range(5)]
    assert sorted(looked_at) == [f"topic-{number}" for number in range(5)]


def test_a_tick_says_how_much_is_still_to_be_read(
    world: World, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        world.topic(f"topic-{number}")
    slow_observer(world, looked_at, monkeypatch)

    assert "1 topic still to be read, in the next ticks" in world.skips(max_compaction_lag_sensor)
    assert "still to be read" not in world.skips(max_compaction_lag_sensor)


def test_a_restarted_process_reports_nothing_again_before_it_has_read_all(
    world: World, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        world.topic(f"topic-{number}")
    assert len(told(world, "dirty")) == 3
    slow_observer(world, looked_at, monkeypatch)

    assert [len(told(world, "dirty")) for _ in range(3)] == [0, 0, 0]


def test_a_topic_that_changed_while_there_was_no_time_is_judged_as_it_was_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (first,) = world.requests(dirty_ratio_sensor)
    observer = world.log_store.observer
    world.append("users", ("a", "3"))
    clock = itertools.count(0, 2 * READING_MS)
    monkeypatch.setattr(observer, "monotonic_ms", lambda: next(clock))

    seen = observer.look(world.now_ms)

    assert seen.behind == 1
    assert [each.log.log_end_offset for each in seen.assessments] == [2]
    assert world.requests(dirty_ratio_sensor)[0].run_key == first.run_key
