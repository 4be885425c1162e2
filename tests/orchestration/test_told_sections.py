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
from tests.orchestration.conftest import World
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
