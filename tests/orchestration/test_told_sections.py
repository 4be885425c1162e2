"""A dirty section that has changed is told once to each who shows it: mount by mount, and topic by topic."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock, patch

import dagster as dg
import pytest
from dagster._core.events import (
    AssetMaterializationPlannedData,
    DagsterEvent,
    DagsterEventType,
    StepMaterializationData,
)

from keptlog.dagster.orchestration.clean_sensors import EVENTS_PER_TICK
from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.orchestration.still_told import AGAIN_MS, ASKED_AGAIN_PER_TICK
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World, unreadable_topics
from tests.orchestration.shipped import KEYS, clean_logs, dirty_ratio_sensor

LOGS = 2 * EVENTS_PER_TICK


def told(world: World) -> list[str]:
    """The topic-partitions of dirty sections that a tick tells of."""
    events = [each for each in world.tick(dirty_ratio_sensor).asset_events if isinstance(each, dg.AssetMaterialization)]
    return [each.partition or "" for each in events if each.asset_key == KEYS.dirty("users")]


def until_nothing_is_told(world: World) -> None:
    while world.tick(dirty_ratio_sensor).asset_events:
        pass


def test_what_was_wiped_in_dagster_is_told_again_once(world: World) -> None:
    """The button is called "Wipe materializations"."""
    world.topic("users", 2)
    world.topic("orders")
    until_nothing_is_told(world)
    for key in (KEYS.dirty("users"), KEYS.clean("users")):
        world.instance.wipe_assets([key])
        assert not world.instance.get_materialized_partitions(key)

        until_nothing_is_told(world)

        assert world.instance.get_materialized_partitions(key) == {"users-0", "users-1"}
    assert len(world.instance.fetch_materializations(KEYS.dirty("orders"), limit=10).records) == 1


@pytest.mark.parametrize("is_new_process", [False, True])
def test_so_it_is_where_all_sections_were_wiped(world: World, *, is_new_process: bool) -> None:
    world.topic("users", 2)
    until_nothing_is_told(world)
    world.instance.wipe_assets([KEYS.dirty("users")])
    if is_new_process:
        world.reopen()

    until_nothing_is_told(world)

    assert world.instance.get_materialized_partitions(KEYS.dirty("users")) == {"users-0", "users-1"}


@pytest.mark.parametrize("section", ["clean", "dirty"])
def test_so_it_is_where_a_run_has_planned_the_wiped_section_before_the_next_tick(world: World, section: str) -> None:
    """Who wipes wants it made anew: the next click is on "Materialize"."""
    world.topic("users", 3)
    until_nothing_is_told(world)
    key = dg.AssetKey(["users", section])
    world.tick(dirty_ratio_sensor)
    world.instance.wipe_assets([key])
    run = world.instance.create_run_for_job(clean_logs, status=dg.DagsterRunStatus.STARTING)
    planned = AssetMaterializationPlannedData(key, partition="users-0")
    event = dg.DagsterEvent.build_asset_materialization_planned_event(run.job_name, "clean", planned)
    world.instance.report_dagster_event(event, run.run_id)
    assert key in world.instance.get_asset_keys()
    world.now_ms += AGAIN_MS

    until_nothing_is_told(world)

    # The run will tell of the log that it is to clean.
    others = {"users-1", "users-2"}
    told = world.instance.get_materialized_partitions(key)
    assert told == (others if section == "clean" else {"users-0", *others})


def test_what_was_deleted_with_its_run_is_told_again(world: World) -> None:
    """Everybody deletes old runs. A log that nobody appends to is never cleaned again."""
    world.topic("users", 2)
    until_nothing_is_told(world)
    key = KEYS.clean("users")
    world.instance.wipe_assets([key])
    run = world.instance.create_run_for_job(clean_logs)
    for name in ("users-0", "users-1"):
        data = StepMaterializationData(dg.AssetMaterialization(key, partition=name))
        event = DagsterEvent(DagsterEventType.ASSET_MATERIALIZATION.value, run.job_name, event_specific_data=data)
        world.instance.report_dagster_event(event, run.run_id)
    until_nothing_is_told(world)
    world.tick(dirty_ratio_sensor)
    world.instance.delete_run(run.run_id)
    assert not world.instance.get_materialized_partitions(key)
    world.now_ms += AGAIN_MS

    until_nothing_is_told(world)

    assert world.instance.get_materialized_partitions(key) == {"users-0", "users-1"}


def test_dagster_is_asked_what_it_still_has_once_in_ten_minutes_a_few_sections_a_tick(world: World) -> None:
    topics = [f"topic{number}" for number in range(ASKED_AGAIN_PER_TICK)]
    for topic in topics:
        world.topic(topic)
    until_nothing_is_told(world)
    world.tick(dirty_ratio_sensor)
    asked = Counter[dg.AssetKey]()
    really = world.instance.get_materialized_partitions
    world.now_ms += AGAIN_MS

    with patch.object(world.instance, "get_materialized_partitions", lambda key: asked.update([key]) or really(key)):
        for turn in range(1, 4):
            assert not world.tick(dirty_ratio_sensor).asset_events
            assert asked.total() == min(turn, 2) * ASKED_AGAIN_PER_TICK

    assert asked == dict.fromkeys([key for each in topics for key in (KEYS.clean(each), KEYS.dirty(each))], 1)


def test_busy_logs_keep_no_other_one_from_being_told(world: World) -> None:
    world.topic("users", EVENTS_PER_TICK + 2)
    until_nothing_is_told(world)
    quiet = {f"users-{EVENTS_PER_TICK}", f"users-{EVENTS_PER_TICK + 1}"}
    for number in range(EVENTS_PER_TICK + 2):
        world.append("users", ("a", "1"), partition=number, age_ms=0)
    once = Counter(told(world))
    for number in range(EVENTS_PER_TICK):
        world.append("users", ("a", "2"), partition=number, age_ms=0)
    once.update(told(world))
    assert quiet <= set(once)
    assert len(once) == EVENTS_PER_TICK + 2


@dataclass
class Mounts:
    """Two mounts of one home in one process."""

    world: World
    defs: dict[str, dg.Definitions]
    cursors: dict[str, str | None] = field(default_factory=dict)

    def tick(self, name: str) -> int:
        """One of a mount: of how many dirty sections it tells."""
        sensor = self.defs[name].get_repository_def().get_sensor_def(f"{name}_dirty_ratio_sensor")
        instance, resources, cursor = self.world.instance, self.defs[name].resources, self.cursors.get(name)
        with dg.build_sensor_context(instance, cursor=cursor, resources=resources, sensor_name=sensor.name) as context:
            data = sensor.evaluate_tick(context)
        self.cursors[name] = data.cursor
        for each in data.asset_events:
            instance.report_runless_asset_event(each)
        return sum(each.asset_key == dg.AssetKey([name, "users", "dirty"]) for each in data.asset_events)


@pytest.fixture
def mounts(world: World) -> Mounts:
    names = ("a", "b")
    return Mounts(
        world, {each: build_defs(world.path, world.resources, name_prefix=each, key_prefix=each) for each in names}
    )


def test_two_mounts_of_one_home_in_one_process_are_each_told_all_of_it(world: World, mounts: Mounts) -> None:
    world.topic("users", LOGS)
    for _ in range(6):
        mounts.tick("a")
        mounts.tick("a")  # it ticks more often
        mounts.tick("b")
    for name in mounts.defs:
        key = dg.AssetKey([name, "users", "dirty"])
        assert len(world.instance.get_materialized_partitions(key)) == LOGS
    assert [mounts.tick(name) for name in ("a", "b", "a", "b")] == [0, 0, 0, 0]
    world.append("users", ("a", "1"))
    assert [mounts.tick(name) for name in ("a", "b", "a", "b")] == [1, 1, 0, 0]


def test_two_mounts_of_one_home_ask_dagster_once_each_what_it_was_told(
    world: World, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    for _ in range(2):  # from then on Dagster has all keys
        mounts.tick("a")
        mounts.tick("b")
    storage = type(world.instance.event_log_storage)
    really, asked = storage.get_materialized_partitions, Counter[str]()

    def counted(self: Any, key: dg.AssetKey, *bounds: Any) -> set[str]:
        asked[key.to_user_string()] += 1
        return really(self, key, *bounds)

    monkeypatch.setattr(storage, "get_materialized_partitions", counted)
    for _ in range(3):
        mounts.tick("a")
        mounts.tick("b")

    assert asked == {}


def test_a_mount_asks_dagster_for_keys_below_its_own_prefix_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Dagster may have very many assets of others."""
    world.topic("users")
    keys = Mock(wraps=world.instance.get_asset_keys)
    monkeypatch.setattr(world.instance, "get_asset_keys", keys)
    mount = build_defs(world.path, world.resources, name_prefix="a", key_prefix="a")
    sensor = mount.get_repository_def().get_sensor_def("a_dirty_ratio_sensor")
    with dg.build_sensor_context(world.instance, resources=mount.resources, sensor_name=sensor.name) as context:
        sensor.evaluate_tick(context)
    assert [call.kwargs for call in keys.call_args_list] == [{"prefix": ("a",)}]


def test_of_a_topic_that_is_gone_nothing_was_told_when_its_name_comes_back(world: World) -> None:
    world.topic("users")
    assert told(world) == ["users-0"]
    world.store.delete_topic("users", world.now_ms)
    assert told(world) == []
    world.topic("users")

    assert told(world) == ["users-0"]
    assert told(world) == []


def test_of_a_topic_that_was_made_anew_between_two_ticks_nothing_was_told(world: World) -> None:
    """The new one may be as the old one was."""
    world.topic("users")
    assert told(world) == ["users-0"]
    world.store.delete_topic("users", world.now_ms)
    world.topic("users")

    assert told(world) == ["users-0"]
    assert told(world) == []


def minutes_of_short_processes(world: World, minutes: int) -> None:
    """Where nobody has started a code server Dagster's daemon begins a process each minute; it ticks twice."""
    for minute in range(minutes):
        world.append("users", ("a", str(minute)), age_ms=0)
        world.reopen()
        world.tick(dirty_ratio_sensor)
        world.tick(dirty_ratio_sensor)


def materializations(world: World, key: dg.AssetKey) -> int:
    return len(world.instance.fetch_materializations(key, limit=1000).records)


def test_processes_of_two_ticks_each_tell_all_logs_of_a_topic_in_turn(world: World) -> None:
    world.topic("users", 2 * LOGS)

    minutes_of_short_processes(world, 8)

    everyone = {f"users-{number}" for number in range(2 * LOGS)}
    assert world.instance.get_materialized_partitions(KEYS.dirty("users")) == everyone
    # The first is written to, so it waits for its clean.
    assert world.instance.get_materialized_partitions(KEYS.clean("users")) >= everyone - {"users-0"}
    assert materializations(world, KEYS.dirty("users")) <= 2 * LOGS + 8


def test_processes_of_two_ticks_each_tell_all_topics_in_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keptlog.dagster.orchestration.first_looks.ASKED_PER_TICK", 2)
    monkeypatch.setattr("keptlog.dagster.orchestration.told_sections.ASKED_PER_TICK", 6)  # two topics, too
    others = [f"topic-{number}" for number in range(7)]
    for topic in ("users", *others):
        world.topic(topic)

    minutes_of_short_processes(world, 5)

    for topic in others:
        assert materializations(world, KEYS.clean(topic)) == materializations(world, KEYS.dirty(topic)) == 1
    world.append(others[-1], ("a", "1"))
    minutes_of_short_processes(world, 3)
    assert materializations(world, KEYS.dirty(others[-1])) == 2, "Dagster is asked about the last topic, too"


def test_a_new_process_tells_only_of_what_has_changed_since_the_last_one(world: World) -> None:
    world.topic("users", LOGS)
    world.topic("orders")
    until_nothing_is_told(world)
    world.append("users", ("a", "1"), partition=3)
    world.reopen()
    assert told(world) == ["users-3"]
    assert told(world) == []
    for number in range(LOGS):
        world.append("users", ("b", "1"), partition=number, age_ms=0)
    world.reopen()
    first = told(world)
    world.reopen()
    second = told(world)
    world.reopen()

    assert told(world) == []
    assert sorted(first + second) == sorted(f"users-{number}" for number in range(LOGS))


def test_a_new_process_tells_of_what_time_alone_has_changed(world: World) -> None:
    world.topic("users", min_compaction_lag_ms=str(HOUR_MS), min_cleanable_dirty_ratio="0.99")
    world.append("users", ("a", "1"), age_ms=0)
    world.append("users", ("b", "1"), age_ms=0)
    until_nothing_is_told(world)
    world.now_ms += 30 * DAY_MS
    world.reopen()

    assert told(world) == ["users-0"]
    world.reopen()
    assert told(world) == []


def test_busy_logs_keep_no_other_one_from_being_told_by_new_processes(world: World) -> None:
    world.topic("users", EVENTS_PER_TICK + 2)
    until_nothing_is_told(world)
    once = Counter[str]()
    for value in ("1", "2"):
        for number in range(EVENTS_PER_TICK + 2):
            world.append("users", ("a", value), partition=number, age_ms=0)
        world.reopen()
        once.update(told(world))

    assert len(once) == EVENTS_PER_TICK + 2


def test_a_new_process_tells_of_a_clean_that_has_moved_no_log_end(world: World) -> None:
    world.topic("users", 2)
    world.topic("orders")
    world.append("users", ("a", "1"), ("a", "2"))
    until_nothing_is_told(world)
    assert world.clean("users").success
    world.append("orders", ("a", "1"))
    world.reopen()

    assert told(world) == ["users-0"]


def test_a_new_process_takes_nothing_told_of_an_earlier_topic_for_that_of_the_new_one(world: World) -> None:
    world.topic("users")
    until_nothing_is_told(world)
    world.store.delete_topic("users", world.now_ms)
    world.topic("users")
    world.reopen()

    assert told(world) == ["users-0"]


def test_what_an_older_keptlog_has_told_is_told_once_more_after_the_next_change(world: World) -> None:
    """It left a cursor without turns, and events that do not say what section they were of."""
    world.topic("users", 3)
    until_nothing_is_told(world)
    for number in range(3):
        old = dg.AssetMaterialization(KEYS.dirty("users"), partition=f"users-{number}")
        world.instance.report_runless_asset_event(old)
    digest, *_ = (world.cursors["dirty_ratio_sensor"] or "").split(" ")
    world.cursors["dirty_ratio_sensor"] = f"{digest} 7"
    world.reopen()
    assert told(world) == []
    world.append("users", ("a", "1"))
    world.reopen()
    assert sorted(told(world)) == ["users-0", "users-1", "users-2"]
    world.append("users", ("a", "2"))
    world.reopen()

    assert told(world) == ["users-0"]


def test_a_topic_that_can_not_be_read_keeps_no_new_process_asking_about_all_others(world: World) -> None:
    world.topic("users", 2)
    unreadable_topics(world, 1)
    until_nothing_is_told(world)
    asked = Mock(wraps=world.instance.fetch_materializations)
    world.reopen()

    with patch.object(world.instance, "fetch_materializations", asked):
        assert told(world) == []

    assert KEYS.dirty("users") not in [call.args[0].asset_key for call in asked.call_args_list]
