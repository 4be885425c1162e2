"""A log that failed stays failed when a later attempt at it is ended or deleted: in its tab and in its checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent
from dagster._core.loader import LoadingContextForTest

from keptlog.dagster.assets.attempts import last_attempts
from keptlog.dagster.assets.checks import TopicFindings, check_specs, look_at
from keptlog.dagster.orchestration import still_failed, still_told
from keptlog.dagster.orchestration.still_told import AGAIN_MS, ASKED_AGAIN_PER_TICK
from keptlog.dagster.resources.clock import ClockResource
from keptlog.errors import StorageUnavailable
from keptlog.passes.observer import Observer
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.instance import begin
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


def queue_by_hand(world: World, name: str) -> dg.DagsterRun:
    """Somebody materializes a topic-partition, and the run waits."""
    return world.instance.create_run_for_job(
        job_of(world, "users"),
        tags={"dagster/partition": name},
        asset_selection=frozenset([CLEAN]),
        status=dg.DagsterRunStatus.QUEUED,
        remote_job_origin=HERE,
    )


def turn_comes(world: World) -> None:
    """Let the sensor tick when it is the section's turn again."""
    world.now_ms += 2 * AGAIN_MS
    world.more_resources["clock"] = ClockResource(now_ms=world.now_ms)
    world.tick(failed_run_sensor)


def end_job(world: World) -> None:
    """Somebody ends a clean when it has planned."""
    run = world.instance.get_run_by_id(plan_alone(world))
    assert run
    world.instance.report_run_canceled(run)


def plan_alone(world: World) -> str:
    """Somebody runs the op ``plan`` alone, as Dagster's launchpad lets one choose; gives its run."""
    config = {"ops": {"plan": {"config": {"logs": ["users-0"], "requested": True}}}}
    planning = world.defs.get_job_def(clean_logs.name).get_subset(op_selection=["plan"])
    result = planning.execute_in_process(run_config=config, instance=world.instance)
    assert result.success
    return result.run_id


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
    queue_by_hand(users, "users-0")
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


@pytest.mark.parametrize("is_cancelled_first", [False, True])
def test_so_they_are_where_that_run_was_deleted_once_it_is_the_sections_turn(
    users: World, *, is_cancelled_first: bool
) -> None:
    """Dagster keeps what was planned of a deleted run's checks."""
    users.break_segment("users", 1)
    assert not verify(users).success
    before = statuses(users)
    users.tick(failed_run_sensor)
    run = queue_by_hand(users, "users-0")
    turn_comes(users)
    assert {*statuses(users).values()} == {"IN_PROGRESS"}
    if is_cancelled_first:
        users.instance.report_run_canceled(run)
    users.instance.delete_run(run.run_id)
    assert {*statuses(users).values()} == {"SKIPPED"}

    turn_comes(users)

    assert statuses(users) == before
    rows = users.instance.event_log_storage.get_asset_check_execution_history
    told = [len(rows(spec.key, limit=100)) for spec in check_specs(CLEAN)]
    turn_comes(users)
    assert [len(rows(spec.key, limit=100)) for spec in check_specs(CLEAN)] == told


def test_so_is_a_check_that_a_run_by_hand_does_not_evaluate(users: World) -> None:
    """A clean has no time for G8."""
    assert verify(users).success
    before = statuses(users)
    run = queue_by_hand(users, "users-0")
    begin(users.instance, run)
    users.instance.report_dagster_event(DagsterEvent("PIPELINE_SUCCESS", run.job_name), run.run_id)
    assert {*statuses(users).values()} == {"SKIPPED"}

    turn_comes(users)

    assert {name: statuses(users)[name] for name in before} == before


def test_what_was_found_of_a_deleted_topic_is_not_told_of_one_that_was_made_anew(users: World) -> None:
    users.break_segment("users", 1)
    assert not verify(users).success
    users.store.delete_topic("users", users.now_ms)
    users.topic("users", 3)
    users.instance.delete_run(queue_by_hand(users, "users-0").run_id)

    turn_comes(users)

    assert "FAILED" not in statuses(users).values()


def test_a_log_is_failed_again_though_the_run_that_hid_it_was_deleted_after_another_had_been_ended(
    users: World,
) -> None:
    failed = fail(users)
    first, second = queue_by_hand(users, "users-0"), queue_by_hand(users, "users-0")
    users.instance.report_run_canceled(first)
    users.tick(failed_run_sensor)
    assert failed_by(users) == {}
    users.instance.delete_run(second.run_id)

    turn_comes(users)

    assert failed_by(users) == {"users-0": failed}
    assert tab(users) == [RED, GREEN, GREEN]


def test_a_log_is_failed_again_though_a_run_that_only_planned_has_succeeded_once_it_is_the_sections_turn(
    users: World,
) -> None:
    """It was green while it could not be cleaned, for as long as its back-off lasts."""
    failed = fail(users)
    plan_alone(users)
    assert failed_by(users) == {}

    turn_comes(users)

    assert failed_by(users) == {"users-0": failed}
    assert tab(users) == [RED, GREEN, GREEN]


def test_a_log_that_a_run_only_planned_and_that_is_as_it_should_be_is_not_failed_again(users: World) -> None:
    dirty(users, 0)
    mend = users.break_segment("users")
    assert not users.clean("users-0", requested=True).success
    mend()
    assert users.clean("users-0", requested=True).success
    dirty(users, 0)
    plan_alone(users)
    turn_comes(users)
    assert tab(users) == [GREEN] * 3


def test_of_a_failed_run_that_was_deleted_the_check_still_tells_and_the_tab_does_not(users: World) -> None:
    """Dagster keeps no plan of it, so there is none that could be the last again: docs/dagster.md says so."""
    users.instance.delete_run(fail(users))

    turn_comes(users)

    assert statuses(users)["cleaned"] == "FAILED"
    assert tab(users) == [GREEN] * 3
    assert not users.clean("users-0", requested=True).success
    assert {*failed_by(users)} == {"users-0"}


def test_a_tick_asks_of_few_sections_and_of_none_twice_in_ten_minutes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(ASKED_AGAIN_PER_TICK + 1):
        world.topic(f"topic{number}")
    asked = list[dg.AssetKey]()
    monkeypatch.setattr(still_failed, "bring_back", lambda _instance, key, _topic_id: asked.append(key))

    told = []
    for _ in range(3):
        world.tick(failed_run_sensor)
        told.append(len(asked))

    assert told == [ASKED_AGAIN_PER_TICK, ASKED_AGAIN_PER_TICK + 1, ASKED_AGAIN_PER_TICK + 1]
    assert len({*asked}) == len(asked)
    world.now_ms += AGAIN_MS
    world.tick(failed_run_sensor)
    assert len(asked) == 2 * ASKED_AGAIN_PER_TICK + 1


def test_a_section_with_an_uncleanable_log_does_not_wait_until_all_others_had_their_turn(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand topics a round takes more than an hour."""
    monkeypatch.setattr(still_told, "ASKED_AGAIN_PER_TICK", 1)
    failed = fail(users)
    for number in range(5):
        users.topic(f"topic{number}")
    users.tick(failed_run_sensor)
    plan_alone(users)

    turn_comes(users)

    assert failed_by(users) == {"users-0": failed}


def test_the_turn_of_the_last_section_comes_though_the_code_server_is_started_again_and_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(still_told, "ASKED_AGAIN_PER_TICK", 1)
    for number in range(5):
        world.topic(f"topic{number}")
    asked = set[dg.AssetKey]()
    monkeypatch.setattr(still_failed, "bring_back", lambda _instance, key, _topic_id: asked.add(key))

    for _ in range(5):
        world.reopen()
        world.tick(failed_run_sensor)
        world.now_ms += 30_000

    assert len(asked) == 5


def test_a_tick_of_a_home_that_cannot_be_looked_at_fails_of_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sensors that look at each tick tell why."""
    world.topic("users")

    def away(*_: object) -> None:
        raise StorageUnavailable("the catalog can't be reached")

    monkeypatch.setattr(Observer, "look", away)

    assert world.skips(failed_run_sensor) == "no run has died since the last tick"


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
