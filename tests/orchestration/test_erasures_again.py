"""When the sensor of erasures asks for the same again: not at once, sooner where an outage was in the way."""

from __future__ import annotations

import json
import time
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.assets.outage import FAILED_TAG
from keptlog.dagster.orchestration import erasure_looks
from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.dagster.orchestration.erasure_requests import ASKED_TAG
from keptlog.dagster.orchestration.in_flight import has_looked_at
from keptlog.dagster.orchestration.own_runs import VERIFY_ERASURES_JOB_NAME
from keptlog.log.erasures.open_erasures import ErasureNeed
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, asked_for, due, need, passes, topic_with_the_key
from tests.orchestration.instance import fail
from tests.orchestration.shipped import clean_logs, erasure_sensor, verify_erasures

MINUTE_MS = 60_000


@pytest.fixture
def users(world: World) -> str:
    return topic_with_the_key(world)


def deleted(world: World) -> None:
    """An erasure of which only the verification is left, due at once."""
    deleted_too(world, "r1")


def deleted_too(world: World, request_id: str, by_ms: int = HOUR_MS) -> None:
    ask(world, by_ms=by_ms, request_id=request_id)
    for wait_ms in (2 * HOUR_MS, LOOK_AGAIN_MS + HOUR_MS):
        world.now_ms += wait_ms
        passes(world).clean()
        world.log_store.eraser().advance(now_ms=world.now_ms)
    world.now_ms += LOOK_AGAIN_MS
    passes(world).purge()
    world.log_store.eraser().advance(now_ms=world.now_ms)
    assert need(world) == ErasureNeed.VERIFICATION


def failed(world: World, request: dg.RunRequest, *, by_outage: bool) -> None:
    """Let the run that was asked for fail now."""
    tags = dict(request.tags)
    if by_outage:
        tags["keptlog/outage"] = json.dumps({"at_ms": world.now_ms, "reason": "the bucket does not answer"})
    run = world.instance.create_run_for_job(
        verify_erasures, run_config=request.run_config, tags=tags, status=dg.DagsterRunStatus.STARTED
    )
    fail(world.instance, run)


def test_what_is_asked_for_is_asked_once_and_again_when_it_did_not_help(world: World, users: str) -> None:
    due(world)
    (first,), (second,) = world.requests(erasure_sensor), world.requests(erasure_sensor)
    assert first.run_key == second.run_key
    started = world.instance.create_run_for_job(
        clean_logs, run_config=first.run_config, tags=dict(first.tags), status=dg.DagsterRunStatus.STARTED
    )
    assert "users-0 is being cleaned" in world.skips(erasure_sensor)
    world.instance.report_run_canceled(started)
    assert "users-0 was to be cleaned already, again at" in world.skips(erasure_sensor)
    world.now_ms += 10 * MINUTE_MS

    (third,) = world.requests(erasure_sensor)

    assert third.run_key != first.run_key


def test_a_clock_that_was_ahead_when_it_was_asked_for_holds_nothing_back(world: World, users: str) -> None:
    due(world)
    world.now_ms += DAY_MS
    (request,) = world.requests(erasure_sensor)
    run = world.instance.create_run_for_job(
        clean_logs, run_config=request.run_config, tags=dict(request.tags), status=dg.DagsterRunStatus.STARTED
    )
    fail(world.instance, run)
    assert "users-0 was to be cleaned already, again at" in world.skips(erasure_sensor)
    world.now_ms -= DAY_MS

    (again,) = world.requests(erasure_sensor)

    assert asked_for(again) == ["users-0"]
    assert again.run_key != request.run_key


def test_a_clock_that_was_ahead_by_a_little_keeps_no_run_from_being_started_again(world: World, users: str) -> None:
    deleted(world)
    world.now_ms += 1
    (request,) = world.requests(erasure_sensor)
    failed(world, request, by_outage=False)
    world.now_ms -= 1

    (again,) = world.requests(erasure_sensor)

    assert asked_for(again) == ["users"]
    assert again.run_key != request.run_key


def test_a_run_whose_clock_was_ahead_when_an_outage_stopped_it_is_asked_for_at_the_next_tick(
    world: World, users: str
) -> None:
    deleted(world)
    (request,) = world.requests(erasure_sensor)
    world.now_ms += DAY_MS
    failed(world, request, by_outage=True)
    world.now_ms -= DAY_MS

    (again,) = world.requests(erasure_sensor)

    assert again.run_key != request.run_key


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (dg.DagsterRunStatus.FAILURE, {}),
        (dg.DagsterRunStatus.FAILURE, {FAILED_TAG: "others,users"}),
        (dg.DagsterRunStatus.CANCELED, {}),
        (None, {}),
    ],
    ids=["died", "failed", "cancelled", "never was"],
)
def test_a_large_topic_whose_look_was_lost_with_its_run_is_looked_at_in_another_an_hour_later(
    world: World,
    users: str,
    monkeypatch: pytest.MonkeyPatch,
    status: dg.DagsterRunStatus | None,
    told: dict[str, str],
) -> None:
    (request,) = look(world, monkeypatch)
    last_week = dict(request.tags) | {ASKED_TAG: str(world.now_ms - 7 * DAY_MS)}
    ended(world, request, dg.DagsterRunStatus.SUCCESS, last_week)
    if status:
        ended(world, request, status, dict(request.tags) | told)
    world.now_ms += HOUR_MS - 1
    assert world.requests(erasure_sensor) == []
    world.now_ms += LOOK_AGAIN_MS

    (again,) = world.requests(erasure_sensor)

    assert (again.job_name, asked_for(again)) == (VERIFY_ERASURES_JOB_NAME, ["users"])
    assert again.run_key != request.run_key
    assert world.requests(erasure_sensor) == [], "once"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (dg.DagsterRunStatus.SUCCESS, {}),
        (dg.DagsterRunStatus.FAILURE, {FAILED_TAG: ""}),
        (dg.DagsterRunStatus.FAILURE, {FAILED_TAG: "others"}),
        (dg.DagsterRunStatus.STARTED, {}),
    ],
    ids=["looked", "looked, and not all is verified", "looked, and not at others", "is looking"],
)
def test_a_large_topic_that_a_run_has_looked_at_or_is_looking_at_is_not_looked_at_again(
    world: World, users: str, monkeypatch: pytest.MonkeyPatch, status: dg.DagsterRunStatus, told: dict[str, str]
) -> None:
    (request,) = look(world, monkeypatch)
    ended(world, request, status, dict(request.tags) | told)
    world.now_ms += HOUR_MS + LOOK_AGAIN_MS

    assert all(each.job_name != VERIFY_ERASURES_JOB_NAME for each in world.requests(erasure_sensor))


def test_a_large_topic_that_is_appended_to_is_looked_at_by_one_run_at_a_time(
    world: World, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (request,) = look(world, monkeypatch)
    run = world.instance.create_run_for_job(
        verify_erasures, run_config=request.run_config, tags=dict(request.tags), status=dg.DagsterRunStatus.STARTED
    )
    for _ in range(7):
        world.append("users", ("other", "2"), age_ms=0)
        world.now_ms += LOOK_AGAIN_MS
        assert looks(world) == []
    world.instance.report_run_canceled(run)

    assert looks(world) == [["users"]]


def test_a_large_topic_that_a_run_is_to_verify_is_not_looked_at_by_another_beside_it(
    world: World, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(world)
    ask(world, by_ms=30 * DAY_MS, request_id="r2")
    monkeypatch.setattr(erasure_looks, "LARGE_BYTES", 1)

    assert looks(world) == [["users"]]


def looks(world: World) -> list[list[str]]:
    """What topics a tick asks runs to look through, run by run."""
    requests = world.requests(erasure_sensor)
    return [asked_for(each) for each in requests if each.job_name == VERIFY_ERASURES_JOB_NAME]


def look(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dg.RunRequest]:
    """What a tick asks for of a large topic that was cleaned elsewhere, and waits for a long time."""
    monkeypatch.setattr(erasure_looks, "LARGE_BYTES", 1)
    ask(world, by_ms=30 * DAY_MS)
    world.now_ms += 2 * HOUR_MS
    passes(world).clean()
    return world.requests(erasure_sensor)


def ended(world: World, request: dg.RunRequest, status: dg.DagsterRunStatus, tags: dict[str, str]) -> None:
    world.instance.create_run_for_job(verify_erasures, run_config=request.run_config, tags=tags, status=status)


def test_a_run_says_at_which_topics_it_could_not_look(world: World, users: str) -> None:
    world.topic("odd")
    Path(world.store.load_table("odd").metadata_location.removeprefix("file://")).write_bytes(b"{")
    world.reopen()
    config = {"ops": {"verify_deleted": {"config": {"topics": ["odd", "users"]}}}}
    result = world.run_job("verify_erasures", dg.RunRequest(run_config=config))
    run = world.instance.get_run_by_id(result.run_id)
    assert run
    assert not result.success
    assert (has_looked_at(run, "users"), has_looked_at(run, "odd")) == (True, False)


def test_what_one_outage_has_stopped_is_asked_for_at_the_next_tick_and_then_with_pauses(
    world: World, users: str
) -> None:
    deleted(world)
    keys = []
    for pause_ms in (0, 30_000, MINUTE_MS):
        (request,) = world.requests(erasure_sensor)
        keys.append(request.run_key)
        failed(world, request, by_outage=True)
        world.now_ms += pause_ms
    assert len(world.requests(erasure_sensor)) == 1
    world.now_ms -= 1
    assert "users was to be looked through already, again at" in world.skips(erasure_sensor)
    assert len(set(keys)) == len(keys)


def test_a_run_that_an_outage_did_not_stop_is_asked_for_no_sooner_because_one_before_was_stopped(
    world: World, users: str
) -> None:
    deleted(world)
    for by_outage in (True, False):
        (request,) = world.requests(erasure_sensor)
        assert (request.job_name, asked_for(request)) == (VERIFY_ERASURES_JOB_NAME, ["users"])
        failed(world, request, by_outage=by_outage)
        world.now_ms += MINUTE_MS

    assert "users was to be looked through already, again at" in world.skips(erasure_sensor)


def test_a_clean_that_counts_as_dead_is_not_asked_for_again_as_one_that_an_outage_stopped(world: World) -> None:
    """Three others of the same log have never begun before it; this sensor had not asked for them."""
    world.now_ms = time.time_ns() // 1_000_000 - 2 * HOUR_MS
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"), ("other", "1"), age_ms=0)
    due(world)
    (request,) = world.requests(erasure_sensor)
    for tags in ({}, {}, {}, request.tags):
        run = world.instance.create_run_for_job(clean_logs, run_config=request.run_config, tags=dict(tags))
        world.instance.report_run_failed(run)
    world.now_ms = time.time_ns() // 1_000_000 + 6 * MINUTE_MS
    assert "users-0 was to be cleaned already, again at" in world.skips(erasure_sensor)


def searched_in_vain(world: World, request: dg.RunRequest) -> None:
    """Let the run that was asked for end as one does that has found a record."""
    assert (request.job_name, asked_for(request)) == (VERIFY_ERASURES_JOB_NAME, ["users"])
    tags = dict(request.tags) | {FAILED_TAG: ""}
    run = world.instance.create_run_for_job(
        verify_erasures, run_config=request.run_config, tags=tags, status=dg.DagsterRunStatus.STARTED
    )
    fail(world.instance, run)


def searched_in_vain_and_not_again_for(world: World, hours: int) -> None:
    (request,) = world.requests(erasure_sensor)
    searched_in_vain(world, request)
    world.now_ms += hours * HOUR_MS - 1
    assert world.requests(erasure_sensor) == []
    world.now_ms += 1


def test_a_verification_that_something_keeps_open_reads_the_whole_topic_less_and_less_often(
    world: World, users: str
) -> None:
    deleted(world)
    for hours in (1, 2, 4, 8, 16, 24, 24):
        (request,) = world.requests(erasure_sensor)
        searched_in_vain(world, request)
        world.now_ms += hours * HOUR_MS - 1
        assert world.requests(erasure_sensor) == []
        told = world.skips(erasure_sensor)
        assert "users was to be looked through already, again at" in told
        assert ("times in vain: take away what its erasures name, and launch verify_erasures" in told) == (hours > 1)
        world.now_ms += 1
    assert len(world.requests(erasure_sensor)) == 1


def test_one_whose_run_died_before_it_had_searched_is_asked_for_each_hour(world: World, users: str) -> None:
    deleted(world)
    for _ in range(4):
        (request,) = world.requests(erasure_sensor)
        failed(world, request, by_outage=False)
        world.now_ms += HOUR_MS


def test_what_was_looked_for_before_the_deadline_lets_nobody_wait_for_long_behind_it(world: World, users: str) -> None:
    asked_ms = world.now_ms
    deleted_too(world, "r1", by_ms=4 * HOUR_MS)
    world.now_ms = asked_ms + 4 * HOUR_MS - 10 * MINUTE_MS
    for hours in (1, 1, 2):
        searched_in_vain_and_not_again_for(world, hours)


def test_an_overdue_erasure_makes_none_wait_for_long_whose_deadline_is_ahead(world: World, users: str) -> None:
    deleted(world)
    deleted_too(world, "r2", by_ms=30 * HOUR_MS)
    deadlines = [each.erasure.deadline_ms or 0 for each in world.log_store.eraser().list(now_ms=world.now_ms).rows]
    tries = 0
    while world.now_ms <= max(deadlines):
        assert world.now_ms > min(deadlines)
        (request,) = world.requests(erasure_sensor)
        searched_in_vain(world, request)
        tries += 1
        world.now_ms += HOUR_MS
    assert tries > 20
    for hours in (1, 2, 4):
        searched_in_vain_and_not_again_for(world, hours)


def test_another_erasure_that_comes_to_wait_for_it_does_not_wait_for_long(world: World, users: str) -> None:
    deleted(world)
    for hours in (1, 2, 4, 8):
        (request,) = world.requests(erasure_sensor)
        searched_in_vain(world, request)
        world.now_ms += hours * HOUR_MS
    (request,) = world.requests(erasure_sensor)
    searched_in_vain(world, request)
    world.now_ms += HOUR_MS
    assert world.requests(erasure_sensor) == []

    deleted_too(world, "r2")

    (request,) = world.requests(erasure_sensor)
    searched_in_vain(world, request)
    world.now_ms += HOUR_MS
    assert len(world.requests(erasure_sensor)) == 1
