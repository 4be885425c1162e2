"""A clean that has landed is told also where a run of assets died before it could, or somebody has ended its run."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.assets import sections
from keptlog.dagster.orchestration import clean_job
from keptlog.dagster.resources.clock import ClockResource
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import clean_logs, failed_run_sensor
from tests.orchestration.test_assets import materialize
from tests.orchestration.test_siblings import BACKFILL, queue, run_one, tags_of
from tests.orchestration.test_untold_cleans import USERS, Killed, failed, made


@pytest.fixture
def users(world: World) -> World:
    world.now_ms = time.time_ns() // 1_000_000
    # Dagster dates the run's beginning: a clock that stands still would be behind it.
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    return world


def killed(*_args: object) -> None:
    raise Killed


def last_run(world: World) -> dg.DagsterRun:
    assert [value for _, _, value in world.records("users")] == [b"2"], "its commit has landed"
    return world.instance.get_runs(limit=1)[0]


def from_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs have a selection, as those have that somebody has clicked for."""
    really = dg.DagsterInstance.create_run_for_job

    def create(*given: Any, **named: Any) -> dg.DagsterRun:
        return really(*given, **{**named, "asset_selection": named.get("asset_selection") or frozenset([USERS])})

    monkeypatch.setattr(dg.DagsterInstance, "create_run_for_job", create)


def test_a_run_by_hand_that_died_after_its_commit_is_told_at_the_next_tick(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, suppress(Killed):
        from_the_pages(patch)
        patch.setattr(sections, "observe_after", killed)
        materialize(users, "users", "users-0", "users-1")
    run = last_run(users)
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert failed(users) == {"users-0", "users-1"}

    assert f"run {run.run_id}: told now as cleaned: users-0" in users.skips(failed_run_sensor)

    assert failed(users) == {"users-1"}, "nothing of it was cleaned, so nobody says that it is as it should be"
    assert len(made(users)) == 1
    assert "no run has died" in users.skips(failed_run_sensor)
    assert len(made(users)) == 1


@pytest.mark.parametrize("is_ended", [False, True], ids=["died", "ended by somebody"])
def test_a_run_of_a_job_of_the_projects_own_that_could_not_tell_its_clean_is_told(
    users: World, monkeypatch: pytest.MonkeyPatch, *, is_ended: bool
) -> None:
    """A schedule starts it: Dagster stores no selection with such a run."""
    nightly = dg.define_asset_job("nightly_users", selection=dg.AssetSelection.assets(USERS))
    defs = dg.Definitions.merge(users.defs, dg.Definitions(jobs=[nightly]))
    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(sections, "observe_after", killed)
        defs.resolve_job_def("nightly_users").execute_in_process(instance=users.instance, partition_key="users-0")
    run = last_run(users)
    assert not run.asset_selection
    if is_ended:
        users.instance.report_run_canceled(run)

    assert f"run {run.run_id}: told now as cleaned: users-0" in users.skips(failed_run_sensor)
    assert not failed(users)


def test_a_run_that_somebody_has_ended_after_its_commit_is_told_at_the_next_tick(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its log was cleaned before, its last clean was told; this one would be told to nobody."""
    assert users.clean("users-0").success
    users.append("users", ("a", "1"), ("a", "2"))
    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(clean_job, "observe_after", killed)
        users.clean("users-0")
    run = last_run(users)
    users.instance.report_run_canceled(run)

    assert f"run {run.run_id}: told now as cleaned: users-0" in users.skips(failed_run_sensor)

    assert len(made(users)) == 2
    assert "no run has died" in users.skips(failed_run_sensor)


@pytest.mark.parametrize("orders", [{"dagster/partition": "orders-0"}, tags_of("orders-0", "orders-1")])
def test_a_backfill_that_somebody_has_ended_after_a_commit_for_all_its_runs_is_told_of_all(
    users: World, monkeypatch: pytest.MonkeyPatch, orders: dict[str, str]
) -> None:
    """The run that did the work is one topic's; the others never began. Many others were ended after that."""
    users.topic("orders", 2)
    users.append("orders", ("a", "1"), ("a", "2"))
    waiting = queue(users, "orders", tags=BACKFILL | orders)
    with monkeypatch.context() as patch, suppress(Killed):
        from_the_pages(patch)
        patch.setattr(sections, "observe_after", killed)
        run_one(users, "users", BACKFILL | tags_of("users-0", "users-1"))
    assert [value for _, _, value in users.records("orders")] == [b"2"], "it was cleaned as well"
    (first,) = users.instance.get_runs(dg.RunsFilter(tags=BACKFILL, statuses=[dg.DagsterRunStatus.FAILURE]))
    for run_id in (first.run_id, waiting):
        users.instance.report_run_canceled(run_of(users, run_id))
    for _ in range(150):
        users.instance.run_storage.add_run(dg.DagsterRun(job_name="theirs", status=dg.DagsterRunStatus.CANCELED))

    said = users.skips(failed_run_sensor)

    assert f"run {first.run_id}: told now as cleaned: users-0" in said
    assert f"run {waiting}: told now as cleaned: orders-0" in said
    assert "no run has died" in users.skips(failed_run_sensor)


def run_of(world: World, run_id: str) -> dg.DagsterRun:
    run = world.instance.get_run_by_id(run_id)
    assert run
    return run


def test_it_is_told_later_where_its_topic_could_not_be_read_then(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    users.topic("orders")
    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(clean_job, "observe_after", killed)
        users.clean("users-0")
    run = last_run(users)
    users.instance.report_run_canceled(run)
    metadata = Path(users.store.load_table("users").metadata_location.removeprefix("file://"))
    content = metadata.read_bytes()
    metadata.write_bytes(b"this is no metadata")
    users.reopen()
    assert "no run has died" in users.skips(failed_run_sensor)
    metadata.write_bytes(content)
    assert not users.log_store.observer.look(time.time_ns() // 1_000_000).unreadable

    assert f"run {run.run_id}: told now as cleaned: users-0" in users.skips(failed_run_sensor)

    assert "no run has died" in users.skips(failed_run_sensor)


def test_a_run_that_was_ended_before_it_cleaned_anything_is_told_nothing_of(users: World) -> None:
    config = {"ops": {"plan": {"config": {"logs": ["users-0"]}}}}
    run = users.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.STARTED)
    users.instance.report_run_canceled(run)

    assert "no run has died" in users.skips(failed_run_sensor)

    assert made(users) == []
