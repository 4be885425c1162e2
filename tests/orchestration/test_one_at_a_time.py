"""Purges, and verifications of all, are asked for one at a time: where each takes long, they would take all places."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.orchestration.schedules import LONGEST_PURGE
from tests.orchestration.conftest import World

NAME = "purge_schedule"


def under_way(
    world: World, status: dg.DagsterRunStatus, schedule: str = NAME, home: Path | None = None
) -> dg.DagsterRun:
    """A run that a tick over this home has asked for, as Dagster makes it."""
    requests = asked(world, home=home)
    assert isinstance(requests, list)
    purge = build_defs(home or world.path).get_job_def("purge")
    tags = {**requests[0].tags, "dagster/schedule_name": schedule}
    return world.instance.create_run_for_job(purge, status=status, tags=tags)


def asked(
    world: World, later: timedelta = timedelta(), home: Path | None = None, schedule: str = NAME
) -> list[dg.RunRequest] | str:
    """The runs that a tick asks for, or why it asks for none."""
    found = build_defs(home or world.path).get_repository_def().get_schedule_def(schedule)
    at = datetime.now(UTC) + later
    with dg.build_schedule_context(instance=world.instance, scheduled_execution_time=at) as context:
        tick = found.evaluate_tick(context)
    return tick.skip_message or list(tick.run_requests or ())


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
def test_none_is_asked_for_while_its_last_is_under_way(world: World, status: dg.DagsterRunStatus) -> None:
    run = under_way(world, status)
    assert asked(world) == f"run {run.run_id} is still under way; the next tick asks again"
    world.instance.report_run_canceled(run)
    assert isinstance(asked(world), list)


def test_a_verification_of_all_is_asked_for_again_at_the_night_after_the_next(world: World) -> None:
    requests = asked(world, schedule="verify_schedule")
    assert isinstance(requests, list)
    assert requests[0].tags["keptlog/trigger"] == "schedule"
    verify = build_defs(world.path).get_job_def("verify")
    tags = {**requests[0].tags, "dagster/schedule_name": "verify_schedule"}
    run = world.instance.create_run_for_job(verify, status=dg.DagsterRunStatus.STARTED, tags=tags)

    told = asked(world, timedelta(days=1), schedule="verify_schedule")

    assert told == f"run {run.run_id} is still under way; the next tick asks again"
    assert isinstance(asked(world, timedelta(days=2), schedule="verify_schedule"), list)


def test_one_that_died_and_nobody_has_told_holds_up_none_for_long(world: World) -> None:
    under_way(world, dg.DagsterRunStatus.STARTED)
    requests = asked(world, LONGEST_PURGE + timedelta(minutes=1))
    assert isinstance(requests, list)
    assert len(requests) == 1


def test_a_purge_of_another_schedule_is_another_matter(world: World) -> None:
    under_way(world, dg.DagsterRunStatus.STARTED, "crm_purge_schedule")
    assert isinstance(asked(world), list)


def test_a_purge_of_another_home_is_another_matter_also_where_its_schedule_has_the_same_name(
    world: World, tmp_path: Path
) -> None:
    """Code locations that share a Dagster need no prefix."""
    under_way(world, dg.DagsterRunStatus.STARTED, home=tmp_path / "other")
    assert isinstance(asked(world), list)
