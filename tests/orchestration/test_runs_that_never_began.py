"""A run that failed before it began has tried nothing: it is held against no log, and is asked for again at once."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.events import DagsterEvent, DagsterEventType

from keptlog.dagster.orchestration import ingest_failures, outages
from keptlog.dagster.orchestration.ingest_failures import recent_failures
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.ingesting import asked_by, ingest_world
from tests.orchestration.shipped import (
    AUTOMATION,
    clean_logs,
    dirty_ratio_sensor,
    failed_run_sensor,
    ingest_kafka,
    ingest_lag_sensor,
    retention_sensor,
)


def never_begins(world: World, job: dg.JobDefinition, request: dg.RunRequest) -> None:
    """Let a run be launched, and fail before its process says a word, as Dagster tells it."""
    run = world.instance.create_run_for_job(job, run_config=request.run_config, tags=dict(request.tags))
    starting = DagsterEvent(DagsterEventType.PIPELINE_STARTING.value, run.job_name)
    world.instance.report_dagster_event(starting, run.run_id)
    world.instance.report_run_failed(run, "Run timed out due to taking longer than 300 seconds to start.")
    world.now_ms = time.time_ns() // 1_000_000 + 1


def test_a_clean_marks_no_log_and_is_asked_for_again_with_a_pause_only_after_the_second(world: World) -> None:
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    keys = set()
    for _ in range(2):
        (request,) = world.requests(dirty_ratio_sensor)
        keys.add(request.run_key)
        never_begins(world, clean_logs, request)
        said = world.skips(failed_run_sensor)
        assert "stopped by an outage before it began: that is no log's fault, nothing is marked for it" in said

    assert len(keys) == 2
    assert "an outage has stopped the clean of users-0, the next is asked for at" in world.skips(dirty_ratio_sensor)
    assert world.store.logs("users")[0].uncleanable is None


def test_the_fourth_within_an_hour_counts_as_a_run_that_died(world: World) -> None:
    """It may never begin, and somebody is to be told."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    for _ in range(3):
        never_begins(world, clean_logs, request)
        assert "nothing is marked for it" in world.skips(failed_run_sensor)

    never_begins(world, clean_logs, request)
    assert "marked as uncleanable: users-0" in world.skips(failed_run_sensor)

    mark = world.store.logs("users")[0].uncleanable
    assert mark
    assert "Run timed out due to taking longer than 300 seconds to start." in mark.reason
    world.now_ms += HOUR_MS
    (again,) = world.requests(dirty_ratio_sensor)
    assert again.run_key != request.run_key


def test_the_fourth_ingest_within_an_hour_is_a_failed_one(tmp_path: Path) -> None:
    with ingest_world(tmp_path / "home") as here:
        here.world.now_ms = time.time_ns() // 1_000_000
        here.produce("users", ("a", "1"))
        here.knows("users", 0, 0, 0, 0)
        (request,) = here.world.requests(ingest_lag_sensor)
        failures = []
        for _ in range(4):
            never_begins(here.world, ingest_kafka, request)
            known = recent_failures(OwnRuns(here.world.instance), Backoff(1, 1), here.world.now_ms)
            failures.append(len(known.by_name))

        assert failures == [0, 0, 0, 1]


def test_the_fourth_ingest_is_a_failed_one_also_where_others_were_cancelled_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many that no more runs are looked back at."""
    monkeypatch.setattr(ingest_failures, "_RUNS", 5)
    monkeypatch.setattr(outages, "_RUNS", 5)
    with ingest_world(tmp_path / "home") as here:
        instance, here.world.now_ms = here.world.instance, time.time_ns() // 1_000_000
        here.produce("users", ("a", "1"))
        here.knows("users", 0, 0, 0, 0)
        (request,) = here.world.requests(ingest_lag_sensor)
        for _ in range(4):
            never_begins(here.world, ingest_kafka, request)
        for _ in range(3):
            others = {"ops": {"ingest": {"config": {"topics": ["orders"]}}}}
            instance.report_run_canceled(instance.create_run_for_job(ingest_kafka, run_config=others))

        known = recent_failures(OwnRuns(instance), Backoff(1, 1), here.world.now_ms)

        assert "users-0" in known.by_name
        assert len(known.runs(TopicPartition("users", 0))) == 4


def test_a_retention_is_asked_for_at_the_next_tick_however_many_never_began(world: World) -> None:
    """Nothing is marked for them, so none of them is a run that died."""
    world.now_ms = time.time_ns() // 1_000_000
    sensor = retention_sensor(300)
    world.topic("events", cleanup_policy="delete", retention_ms=str(HOUR_MS))
    world.append("events", ("a", "1"), age_ms=2 * HOUR_MS)
    world.append("events", ("b", "1"), age_ms=0)
    keys = []
    for _ in range(6):
        (request,) = world.requests(sensor)
        keys.append(request.run_key)
        never_begins(world, AUTOMATION.jobs.retention, request)

    assert len({*keys}) == len(keys)


def test_an_ingest_is_held_against_no_position(tmp_path: Path) -> None:
    with ingest_world(tmp_path / "home") as here:
        here.world.now_ms = time.time_ns() // 1_000_000
        here.produce("users", ("a", "1"))
        here.knows("users", 0, 0, 0, 0)
        (first,) = here.world.requests(ingest_lag_sensor)
        never_begins(here.world, ingest_kafka, first)

        (second,) = here.world.requests(ingest_lag_sensor)

        assert asked_by(second) == asked_by(first)
        assert second.run_key != first.run_key


def test_one_whose_code_server_is_starting_goes_back_into_the_queue() -> None:
    settings = yaml.safe_load((Path(__file__).parents[2] / "dagster.yaml").read_text())
    assert settings["run_coordinator"]["config"]["max_user_code_failure_retries"] > 0
