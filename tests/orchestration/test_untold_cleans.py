"""A clean that has landed, and that no run could tell of, is told, and its log is not shown as failed."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData
from pyspark.sql import SparkSession

from keptlog.dagster.assets.attempts import last_attempts
from keptlog.dagster.assets.mount import Mount, MountCall
from keptlog.dagster.assets.names import AssetKeys
from keptlog.dagster.orchestration import clean_job, failed_runs
from keptlog.dagster.orchestration.untold_cleans import untold_cleans
from keptlog.dagster.resources.clock import ClockResource
from keptlog.log.steps import Compact
from keptlog.passes.clean import Cleaner
from tests.in_process import in_process_engine
from tests.orchestration.conftest import World
from tests.orchestration.shipped import KEYS, clean_logs, dirty_ratio_sensor, failed_run_sensor
from tests.orchestration.test_outages import LostSpark, spark_lost

USERS = KEYS.clean("users")


class Killed(BaseException):
    """In place of kill -9: no code of the run comes to know of it."""


@pytest.fixture
def died(world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> World:
    """A run has cleaned users-0, and died right after its commit."""
    world.now_ms = time.time_ns() // 1_000_000
    # Dagster dates the run's beginning: a clock that stands still would be behind it.
    world.more_resources["clock"] = ClockResource()
    world.topic("users", 2)
    die_after_a_clean(world, monkeypatch, 0)
    return world


def die_after_a_clean(world: World, monkeypatch: pytest.MonkeyPatch, partition: int) -> None:
    world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    kill_after_a_clean(world, monkeypatch, f"users-{partition}")
    assert [value for _, _, value in world.records("users", partition)] == [b"2"], "its commit has landed"


def kill_after_a_clean(world: World, monkeypatch: pytest.MonkeyPatch, *logs: str) -> None:
    def killed(*_args: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(clean_job, "observe_after", killed)
        with suppress(Killed):
            world.clean(*logs)
    run = world.instance.get_runs(limit=1)[0]
    if not run.is_finished:
        world.instance.report_run_failed(run, "killed")


def failed(world: World) -> set[str]:
    return {*last_attempts(world.instance, USERS, [dg.DagsterRunStatus.FAILURE])}


def made(world: World) -> list[str]:
    records = world.instance.fetch_materializations(USERS, limit=10).records
    return [
        f"{each.partition_key}: {each.asset_materialization.description}"
        for each in records
        if each.asset_materialization
    ]


def test_it_is_told_once_and_its_log_is_not_failed(died: World) -> None:
    assert failed(died) == {"users-0"}

    assert "told now as cleaned: users-0" in died.skips(failed_run_sensor)

    assert failed(died) == set()
    (told,) = made(died)
    assert told.startswith("users-0: looked at, and left as it is: it was cleaned, which run ")
    assert "no run has died" in died.skips(failed_run_sensor)
    assert len(made(died)) == 1


def test_a_log_that_a_later_run_is_to_clean_is_left_to_that(died: World) -> None:
    died.append("users", ("a", "3"), ("a", "4"))
    assert died.clean("users-0").success
    before = made(died)

    assert "told now as cleaned" not in died.skips(failed_run_sensor)

    assert made(died) == before


@pytest.fixture
def refused(world: World) -> World:
    """A run was to clean users-0, and Spark was down."""
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources |= {"clock": ClockResource(), "spark": LostSpark(spark_config={})}
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    with spark_lost():
        assert not world.clean("users-0").success
    world.tick(dirty_ratio_sensor)
    assert failed(world) == {"users-0"}, "nobody has cleaned it yet"
    return world


def test_a_clean_in_a_terminal_ends_that_its_log_is_failed(refused: World) -> None:
    clean_in_a_terminal(refused)

    refused.tick(dirty_ratio_sensor)

    assert failed(refused) == set()
    assert any(told.startswith("users-0: looked at, and left as it is: it was cleaned") for told in made(refused))
    before = made(refused)
    refused.tick(dirty_ratio_sensor)
    assert made(refused) == before


def test_a_log_that_was_found_broken_stays_failed_whoever_cleans_it(refused: World) -> None:
    mend = refused.break_segment("users")
    assert not refused.clean("users-0").success
    mend()
    clean_in_a_terminal(refused)

    refused.tick(dirty_ratio_sensor)

    assert failed(refused) == {"users-0"}


def test_a_tick_tells_of_some_and_the_next_one_of_the_others(died: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_runs, "EVENTS_PER_TICK", 0)
    died.tick(failed_run_sensor)
    assert failed(died) == {"users-0"}
    monkeypatch.undo()

    assert "told now as cleaned: users-0" in died.skips(failed_run_sensor)

    assert failed(died) == set()
    assert "no run has died" in died.skips(failed_run_sensor)


def test_a_tick_tells_no_more_of_several_runs_than_of_one(died: World, monkeypatch: pytest.MonkeyPatch) -> None:
    die_after_a_clean(died, monkeypatch, 1)
    monkeypatch.setattr(failed_runs, "EVENTS_PER_TICK", 1)
    left = [len(failed(died))]
    for _ in range(2):
        died.tick(failed_run_sensor)
        left.append(len(failed(died)))
    assert left == [2, 1, 0]


def test_of_how_many_topics_the_home_is_costs_each_topic_of_a_run_that_died_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them were named for each topic: of a run of 100 a tick took a minute in a home of 10,000."""
    topics = [f"topic{number}" for number in range(10)]
    run = world.instance.create_run_for_job(clean_logs, status=dg.DagsterRunStatus.STARTED)
    for topic in topics:
        world.topic(topic)
        planned = AssetMaterializationPlannedData(KEYS.clean(topic), partition=f"{topic}-0")
        event = dg.DagsterEvent.build_asset_materialization_planned_event(run.job_name, "clean", planned)
        world.instance.report_dagster_event(event, run.run_id)
    world.instance.report_run_failed(run)
    tick = MountCall(Mount(), dg.build_sensor_context(instance=world.instance))
    really, named = AssetKeys.clean, list[str]()

    def noted(keys: AssetKeys, topic: str) -> dg.AssetKey:
        named.append(topic)
        return really(keys, topic)

    monkeypatch.setattr(AssetKeys, "clean", noted)

    assert untold_cleans(tick, world.log_store.observer.look(world.now_ms), topics, 1000) == []

    assert len(topics) <= len(named) <= 2 * len(topics)


def test_what_a_run_has_told_is_read_once_in_a_tick_however_many_topics_it_has_cleaned(
    world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 1,000 topics has told as much. To read that takes seconds, and a tick has a minute."""
    topics = ["orders", "payments", "users"]
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources["clock"] = ClockResource()
    for topic in topics:
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    kill_after_a_clean(world, monkeypatch, *topics)
    really, read = world.instance.all_logs, list[object]()

    def noted(run_id: str, **wanted: Any) -> object:
        read.append(wanted.get("of_type"))
        return really(run_id, **wanted)

    monkeypatch.setattr(world.instance, "all_logs", noted)

    assert "told now as cleaned: orders-0, payments-0, users-0" in world.skips(failed_run_sensor)

    assert read.count(dg.DagsterEventType.ASSET_MATERIALIZATION) == 1


def clean_in_a_terminal(world: World) -> None:
    cleaner, now_ms = Cleaner(world.store, in_process_engine(world.store.files)), time.time_ns() // 1_000_000
    done = cleaner.commit(
        cleaner.stage(cleaner.begin(["users-0"], "by-hand", now_ms=now_ms, requested=True), [Compact])
    )
    assert done.committed
