"""In a Dagster that is shared, another code location's runs hold none of ours back, whatever they are called."""

from __future__ import annotations

import json
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from keptlog.dagster.orchestration import own_runs
from keptlog.dagster.orchestration.in_flight import UNDER_WAY, logs_in_flight, topics_in_flight
from keptlog.dagster.orchestration.outages import recent_outages
from keptlog.dagster.orchestration.own_runs import OWN_JOBS, OwnRuns
from tests.orchestration.conftest import World, logs_of
from tests.orchestration.shipped import dirty_ratio_sensor

HERE, THERE = "__repository__@here", "__repository__@there"


def under_way(world: World, job: str, place: str) -> None:
    """A run that names nothing, and so works on everything."""
    tags = {".dagster/repository": place}
    create_run_for_test(world.instance, job_name=job, status=dg.DagsterRunStatus.STARTED, tags=tags)


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A topic that is due, in a code location called ``here``."""
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    of_tick = lambda tick: OwnRuns(tick.context.instance, HERE)  # noqa: E731
    monkeypatch.setattr(own_runs.OwnRuns, "of_tick", of_tick)
    return world


def test_a_clean_of_another_code_location_is_not_waited_for(users: World) -> None:
    under_way(users, "clean_logs", THERE)

    (request,) = users.requests(dirty_ratio_sensor)

    assert logs_of(request) == ["users-0"]


def test_a_clean_of_ones_own_is_waited_for(users: World) -> None:
    under_way(users, "clean_logs", HERE)

    assert "users-0 is being cleaned" in users.skips(dirty_ratio_sensor)


def test_somebody_elses_job_of_the_same_name_is_none_of_ours(users: World) -> None:
    under_way(users, "purge", THERE)

    here, there = OwnRuns(users.instance, HERE), OwnRuns(users.instance, THERE)
    assert not topics_in_flight(here, "purge", here.records(*UNDER_WAY)).everything
    assert topics_in_flight(there, "purge", there.records(*UNDER_WAY)).everything


def test_who_does_not_know_his_place_sees_all(users: World) -> None:
    under_way(users, "clean_logs", THERE)

    own = OwnRuns(users.instance)
    assert logs_in_flight(own, own.records(*UNDER_WAY)).everything


def test_anothers_outage_is_not_ours(users: World) -> None:
    told = {".dagster/repository": THERE, "keptlog/outage": json.dumps({"at_ms": users.now_ms})}
    config = {"ops": {"plan": {"config": {"logs": ["users-0"]}}}}
    create_run_for_test(
        users.instance, job_name="clean_logs", status=dg.DagsterRunStatus.FAILURE, tags=told, run_config=config
    )

    def count(place: str) -> int:
        names = lambda _: ["users-0"]  # noqa: E731
        return recent_outages(OwnRuns(users.instance, place), "clean_logs", names, users.now_ms).count("users-0")

    assert (count(HERE), count(THERE)) == (0, 1)


def test_every_job_of_a_mount_is_known_as_one_whose_configuration_says_what_it_works_on(world: World) -> None:
    jobs = {job.name for job in world.defs.get_repository_def().get_all_jobs()}
    assert {name for name in jobs if not name.startswith("__")} == set(OWN_JOBS)


def test_ours_are_found_behind_as_many_of_others_as_are_asked_for(world: World) -> None:
    for place in (HERE, THERE, THERE):
        under_way(world, "purge", place)

    here = OwnRuns(world.instance, HERE)
    assert [len(here.records(*UNDER_WAY, job_name="purge", limit=limit)) for limit in (1, 2, 3, None)] == [1, 1, 1, 1]
    assert len(OwnRuns(world.instance, THERE).records(*UNDER_WAY, job_name="purge", limit=1)) == 1


def test_no_run_that_dagster_ever_kept_is_gone_through_for_its_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has it as a tag: with 50,000 runs each of a tick's questions took a fifth of a second."""
    under_way(world, "purge", HERE)
    asked: list[dg.RunsFilter] = []
    records = dg.DagsterInstance.get_run_records

    def noted(instance: dg.DagsterInstance, filters: dg.RunsFilter, limit: int | None = None) -> Any:
        asked.append(filters)
        return records(instance, filters, limit=limit)

    monkeypatch.setattr(dg.DagsterInstance, "get_run_records", noted)
    here = OwnRuns(world.instance, HERE)
    assert len(here.records(*UNDER_WAY)) == len(here.records(*UNDER_WAY, job_name="purge", limit=1)) == 1
    assert [each.tags for each in asked] == [{}, {}]


def test_a_backfill_of_others_is_not_read_run_by_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 of their queued runs took 0.6 s at each question of each tick."""
    for place in (HERE, *[THERE] * 300, HERE):
        under_way(world, "purge", place)
    read = 0
    records = dg.DagsterInstance.get_run_records

    def counted(instance: dg.DagsterInstance, filters: dg.RunsFilter, limit: int | None = None) -> Any:
        nonlocal read
        found = records(instance, filters, limit=limit)
        read += len(found)
        return found

    monkeypatch.setattr(dg.DagsterInstance, "get_run_records", counted)
    assert len(OwnRuns(world.instance, HERE).records(*UNDER_WAY)) == 2
    assert read <= 202
    assert len(OwnRuns(world.instance, THERE).records(*UNDER_WAY)) == 300
