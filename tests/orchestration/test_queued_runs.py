"""A run that waits in Dagster's queue cleans nothing yet, and ticks and health say so."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.dagster.orchestration import erasure_looks
from keptlog.log.erasures.open_erasures import ErasureNeed
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import ask, asked_for, due, need, passes, topic_with_the_key
from tests.orchestration.shipped import (
    AUTOMATION,
    clean_logs,
    dirty_ratio_sensor,
    erasure_sensor,
    health_sensor,
    verify_erasures,
)
from tests.orchestration.test_siblings import HERE

EVERYTHING = dg.RunRequest(run_config={})


@pytest.fixture
def users(world: World) -> str:
    return topic_with_the_key(world)


def queue(world: World, job: dg.JobDefinition, request: dg.RunRequest) -> None:
    """A run that waits for a place, as it was asked for."""
    world.instance.create_run_for_job(
        job,
        run_config=request.run_config,
        tags=dict(request.tags or {}),
        status=dg.DagsterRunStatus.QUEUED,
        remote_job_origin=HERE,
    )


def test_a_log_whose_run_is_queued_is_not_said_to_be_cleaned_and_all_of_them_are_counted(world: World) -> None:
    world.topic("users", 6)
    for partition in range(6):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    (request,) = world.requests(dirty_ratio_sensor)
    queue(world, clean_logs, request)

    said = world.skips(dirty_ratio_sensor)

    assert "users-0 waits for its clean, whose run is queued" in said
    assert "and 3 more" in said
    assert "is being cleaned" not in said
    (event,) = world.tick(health_sensor).asset_events
    assert "its clean's run is queued" in str(event.metadata["worst"].value)


@pytest.mark.parametrize("size", [0, 1])
def test_more_threads_count_for_runs_that_wait_in_the_queue_already(world: World, size: int) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    queue(world, clean_logs, request)
    storage = world.instance.event_log_storage
    storage.set_concurrency_slots("log_cleaner", size)
    (world.path / "server.properties").write_text("log.cleaner.threads=3\n")
    world.reopen()

    assert "waits for its clean, whose run is queued" in world.skips(dirty_ratio_sensor)

    assert [each.limit for each in storage.get_pool_limits() if each.name == "log_cleaner"] == [3]


def test_more_threads_count_where_no_log_is_due_for_its_own_sake(world: World, users: str) -> None:
    ask(world, by_ms=4 * HOUR_MS)
    world.now_ms += HOUR_MS
    queue(world, clean_logs, dg.RunRequest(run_config={"ops": {"plan": {"config": {"requested": True}}}}))
    (world.path / "server.properties").write_text("log.cleaner.threads=3\n")
    world.reopen()

    assert "none is due" in world.skips(dirty_ratio_sensor)

    pools = world.instance.event_log_storage.get_pool_limits()
    assert [each.limit for each in pools if each.name == "log_cleaner"] == [3]


def test_an_erasure_waits_for_no_clean_that_only_waits_itself(world: World, users: str) -> None:
    due(world)
    queue(world, clean_logs, EVERYTHING)

    (request,) = world.requests(erasure_sensor)

    assert (asked_for(request), request.tags["dagster/priority"]) == (["users-0"], "10")
    queue(world, clean_logs, request)
    said = world.skips(erasure_sensor)
    assert "users-0 waits to be cleaned, its run is queued" in said
    assert "is being cleaned" not in said


def test_an_erasure_waits_for_no_purge_and_no_verification_that_only_wait_themselves(world: World, users: str) -> None:
    ask(world, by_ms=HOUR_MS)
    for _ in range(2):
        world.now_ms += 2 * HOUR_MS
        passes(world).clean()
        world.log_store.eraser().advance(now_ms=world.now_ms)
    queue(world, AUTOMATION.jobs.purge, EVERYTHING)
    queue(world, verify_erasures, EVERYTHING)

    (purge,) = world.requests(erasure_sensor)
    passes(world).purge()
    world.log_store.eraser().advance(now_ms=world.now_ms)
    assert need(world) == ErasureNeed.VERIFICATION
    (verification,) = world.requests(erasure_sensor)

    assert [each.job_name for each in (purge, verification)] == ["purge", "verify_erasures"]


def test_a_look_at_a_large_topic_waits_for_none_that_only_waits_itself(
    world: World, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_looks, "LARGE_BYTES", 1)
    ask(world, by_ms=30 * DAY_MS)
    world.now_ms += 2 * HOUR_MS
    passes(world).clean()
    queue(world, verify_erasures, EVERYTHING)

    (request,) = world.requests(erasure_sensor)

    assert (request.job_name, asked_for(request)) == ("verify_erasures", ["users"])
