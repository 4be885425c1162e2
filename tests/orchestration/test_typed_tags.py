"""A tag of keptlog's that somebody types into the launchpad stops no sensor: it counts if it is as a run writes it."""

from __future__ import annotations

import time

import dagster as dg
import pytest

from keptlog.dagster.orchestration.ingest_failures import recent_failures
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.log.uncleanable import Backoff
from tests.orchestration.conftest import World, logs_of
from tests.orchestration.instance import fail
from tests.orchestration.shipped import (
    DEFS,
    clean_logs,
    dirty_ratio_sensor,
    erasure_sensor,
    failed_run_sensor,
    retention_sensor,
)

TYPED = ["Spark was down", '"Spark"', "[]", '{"at_ms": "yesterday", "reason": "Spark"}', '{"at_ms": [1]}', ""]


@pytest.fixture
def world(world: World) -> World:
    """Its clock is Dagster's, and a log is due."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    return world


def failed(world: World, job: dg.JobDefinition, config: dict[str, object], tags: dict[str, str]) -> dg.DagsterRun:
    run = world.instance.create_run_for_job(job, run_config=config, tags=tags, status=dg.DagsterRunStatus.STARTED)
    fail(world.instance, run, "out of memory")
    return run


@pytest.mark.parametrize("typed", TYPED)
def test_an_outage_that_somebody_typed_stops_no_clean_and_hides_no_death(world: World, typed: str) -> None:
    config: dict[str, object] = {"ops": {"plan": {"config": {"logs": ["users-0"]}}}}
    failed(world, clean_logs, config, {"keptlog/outage": typed})

    (request,) = world.requests(dirty_ratio_sensor)
    assert logs_of(request) == ["users-0"]
    assert "marked as uncleanable: users-0" in world.skips(failed_run_sensor)


def test_an_outage_that_somebody_typed_stops_no_retention(world: World) -> None:
    world.topic("views", cleanup_policy="delete", retention_ms="1")
    world.append("views", ("a", "1"))
    failed(world, DEFS.get_job_def("retention"), {}, {"keptlog/outage": "Spark was down"})

    assert world.requests(retention_sensor(300))


def test_a_time_that_somebody_typed_stops_no_erasure(world: World) -> None:
    tags = {"keptlog/trigger": "erasure", "keptlog/asked_at_ms": "yesterday", "keptlog/outage": "Spark was down"}
    failed(world, clean_logs, {"ops": {"plan": {"config": {"logs": ["users-0"]}}}}, tags)

    assert world.skips(erasure_sensor)


FAR = ['{"users-0": "far"}', '{"at_ms": 1, "positions": {"users-0": "far"}}']


@pytest.mark.parametrize(
    ("name", "typed"),
    [("keptlog/outage", text) for text in TYPED]
    + [(f"keptlog/ingest_{name}_at", text) for name in ("failed", "asked") for text in (*TYPED, *FAR)],
)
def test_a_failed_ingest_with_a_typed_tag_counts_as_one_that_said_nothing(world: World, name: str, typed: str) -> None:
    config: dict[str, object] = {"ops": {"ingest": {"config": {"topics": ["users"]}}}}
    run = failed(world, DEFS.get_job_def("ingest_kafka"), config, {name: typed})

    failures = recent_failures(OwnRuns(world.instance), Backoff(1000, 2000), time.time_ns() // 1_000_000)

    assert failures.runs_by_name == {"users": [run.run_id]}
