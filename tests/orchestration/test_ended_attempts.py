"""A log that failed stays failed when a later attempt at it is ended: in the Partitions tab, and in its checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest

from keptlog.dagster.assets.attempts import last_attempts
from keptlog.dagster.assets.checks import TopicFindings, check_specs, look_at
from keptlog.dagster.resources.clock import ClockResource
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import KEYS, clean_logs, failed_run_sensor
from tests.orchestration.test_attempts import GREEN, RED, dirty, tab, verify
from tests.orchestration.test_siblings import HERE, job_of

CLEAN = KEYS.clean("users")


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Three logs that were cleaned."""
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    # Dagster dates the end of a run: by another clock it would have ended long ago.
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    world.topic("users", 3)
    dirty(world, 0, 1, 2)
    assert world.clean("users", requested=True).success
    return world


def fail(world: World) -> str:
    """Let a clean of users-0 fail; gives its run."""
    dirty(world, 0)
    world.break_segment("users")
    result = world.clean("users-0", requested=True)
    assert not result.success
    assert failed_by(world) == {"users-0": result.run_id}
    return result.run_id


def failed_by(world: World) -> dict[str, str]:
    """The failed logs, each with its run. The Partitions tab remembers the first answer that somebody gets."""
    return last_attempts(world.instance, CLEAN, [dg.DagsterRunStatus.FAILURE])


def end_by_hand(world: World, *names: str) -> None:
    """Somebody materializes topic-partitions, and ends the run in the queue."""
    first, last = names[0], names[-1]
    of_range = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    run = world.instance.create_run_for_job(
        job_of(world, "users"),
        tags={"dagster/partition": first} if first == last else of_range,
        asset_selection=frozenset([CLEAN]),
        status=dg.DagsterRunStatus.QUEUED,
        remote_job_origin=HERE,
    )
    world.instance.report_run_canceled(run)


def end_job(world: World) -> None:
    """Somebody ends a clean when it has planned."""
    config = {"ops": {"plan": {"config": {"logs": ["users-0"], "requested": True}}}}
    planning = world.defs.get_job_def(clean_logs.name).get_subset(op_selection=["plan"])
    result = planning.execute_in_process(run_config=config, instance=world.instance)
    run = world.instance.get_run_by_id(result.run_id)
    assert run
    world.instance.report_run_canceled(run)


def statuses(world: World) -> dict[str, str]:
    """What Dagster shows of the section's checks."""
    keys = [spec.key for spec in check_specs(CLEAN)]
    newest = world.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    loading = LoadingContextForTest(world.instance)
    return {key.name: asyncio.run(row.resolve_status(loading)).value for key, row in newest.items()}


@pytest.mark.parametrize("end", [lambda world: end_by_hand(world, "users-0"), end_job], ids=["by hand", "of the job"])
def test_a_log_that_could_not_be_cleaned_is_failed_by_that_run_again_at_the_next_tick(
    users: World, end: Callable[[World], None]
) -> None:
    failed = fail(users)
    end(users)
    assert failed_by(users) == {}

    assert "users-0 had failed before" in users.skips(failed_run_sensor)

    assert failed_by(users) == {"users-0": failed}
    assert tab(users) == [RED, GREEN, GREEN]
    assert "had failed before" not in users.skips(failed_run_sensor)


def test_a_log_that_verify_found_broken_is_failed_again_too(users: World) -> None:
    mend = users.break_segment("users", 1)
    assert not verify(users).success
    end_by_hand(users, "users-0", "users-2")
    assert failed_by(users) == {}

    users.tick(failed_run_sensor)

    assert tab(users) == [GREEN, RED, GREEN]
    mend()
    assert verify(users).success
    assert tab(users) == [GREEN] * 3


def test_however_many_attempts_were_ended_after_it(users: World) -> None:
    fail(users)
    for _ in range(3):
        end_by_hand(users, "users-0")
    users.tick(failed_run_sensor)
    assert tab(users) == [RED, GREEN, GREEN]


def test_a_log_that_was_cleaned_since_is_not_failed_again(users: World) -> None:
    dirty(users, 0)
    mend = users.break_segment("users")
    assert not users.clean("users-0", requested=True).success
    mend()
    assert users.clean("users-0", requested=True).success
    end_by_hand(users, "users-0")
    assert "had failed before" not in users.skips(failed_run_sensor)
    assert tab(users) == [GREEN] * 3


def test_what_a_later_attempt_is_about_to_clean_is_left_to_it(users: World) -> None:
    fail(users)
    end_by_hand(users, "users-0")
    users.instance.create_run_for_job(
        job_of(users, "users"),
        tags={"dagster/partition": "users-0"},
        asset_selection=frozenset([CLEAN]),
        status=dg.DagsterRunStatus.QUEUED,
        remote_job_origin=HERE,
    )
    users.tick(failed_run_sensor)
    assert failed_by(users) == {}


def test_checks_that_a_run_by_hand_was_to_evaluate_are_shown_as_they_were(users: World) -> None:
    users.break_segment("users", 1)
    assert not verify(users).success
    before = statuses(users)
    assert "FAILED" in before.values()
    end_by_hand(users, "users-0")
    assert {*statuses(users).values()} == {"SKIPPED"}

    users.tick(failed_run_sensor)

    assert {name: statuses(users)[name] for name in before} == before


def test_a_log_that_verify_finds_broken_again_is_failed_again_though_that_verify_is_ended(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.topic("zeta")
    users.break_segment("users", 1)
    first = verify(users)
    assert failed_by(users) == {"users-1": first.run_id}
    ended_at(monkeypatch, "zeta")
    assert not verify(users).success
    assert users.instance.get_runs(limit=1)[0].status is dg.DagsterRunStatus.CANCELED
    assert failed_by(users) == {}

    users.tick(failed_run_sensor)

    assert failed_by(users) == {"users-1": first.run_id}


def ended_at(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    """Somebody ends the next verify when it looks at a topic."""

    def look(run: Any, looked: TopicFindings, *given: Any, **named: Any) -> TopicFindings:
        if looked.topic == topic:
            run.context.instance.report_run_canceling(run.context.run)
            raise dg.DagsterExecutionInterruptedError
        return look_at(run, looked, *given, **named)

    monkeypatch.setattr("keptlog.dagster.orchestration.verify_job.look_at", look)
