"""What an ingest failed at is left alone for longer and longer, and counts until a position moves or a run succeeds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.orchestration import in_flight, requests
from keptlog.dagster.resources.spark import SparkResource
from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.result import IngestResult
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, HOUR_MS
from tests.orchestration.ingesting import IngestWorld, asked_by, ingest_world
from tests.orchestration.instance import begin, fail
from tests.orchestration.shipped import ingest_kafka, ingest_lag_sensor

SECOND_MS = 1000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def dies(here: IngestWorld, request: dg.RunRequest, *, is_by_hand: bool = False) -> int:
    """Let a run that was asked for die without a word, and tell when; by hand it has none of the sensor's tags."""
    instance, tags = here.world.instance, {} if is_by_hand else dict(request.tags)
    run = instance.create_run_for_job(
        ingest_kafka, run_config=request.run_config, tags=tags, status=dg.DagsterRunStatus.STARTED
    )
    fail(instance, run)
    record = instance.get_run_record_by_id(run.run_id)
    assert record
    assert record.end_time
    return int(record.end_time * 1000)


def failed(here: IngestWorld, tags: dict[str, str]) -> dg.DagsterRun:
    """A run that has failed, and has said this."""
    run = here.world.instance.create_run_for_job(ingest_kafka, tags=tags, status=dg.DagsterRunStatus.STARTED)
    fail(here.world.instance, run)
    return run


def test_failures_end_with_the_position_that_they_happened_at(here: IngestWorld) -> None:
    here.produce("users", *[(f"k{number}", "1") for number in range(120)])
    here.knows("users", 100, 0, 0, 0)
    failed_at = {"at_ms": here.world.now_ms, "positions": {"users-0": 99}}
    for position in (99, 100):
        failed_at["positions"] = {"users-0": position}
        assert here.asked() == ["users-0"]
        tags = {"keptlog/ingest_failed_at": json.dumps(failed_at)}
        failed(here, tags)
    assert "users-0: failed 1 time" in here.skips()


def test_a_failure_that_a_clock_ahead_has_dated_holds_nothing_back(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    for days, expected in ((0, []), (1, ["users-0"])):
        failed_at = {"at_ms": here.world.now_ms + days * DAY_MS, "positions": {"users-0": 0}}
        tags = {"keptlog/ingest_failed_at": json.dumps(failed_at)}
        run = failed(here, tags)
        requests = here.world.requests(ingest_lag_sensor)
        assert [name for request in requests for name in asked_by(request)] == expected
        here.world.instance.delete_run(run.run_id)


@pytest.mark.parametrize("tag", ["keptlog/ingest_failed_at", "keptlog/outage"])
def test_a_run_whose_clock_was_ahead_is_asked_for_again_under_a_new_key(here: IngestWorld, tag: str) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    (first,) = here.world.requests(ingest_lag_sensor)
    told = json.dumps({"at_ms": here.world.now_ms + DAY_MS, "positions": {"users-0": 0}, "reason": "no answer"})
    here.world.instance.create_run_for_job(
        ingest_kafka,
        run_config=first.run_config,
        tags={"keptlog/failed": "users-0", tag: told},
        status=dg.DagsterRunStatus.FAILURE,
    )

    (second,) = here.world.requests(ingest_lag_sensor)

    assert asked_by(second) == asked_by(first)
    assert second.run_key != first.run_key


def test_a_run_that_died_counts_for_all_that_it_was_asked_for(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    (request,) = here.world.requests(ingest_lag_sensor)
    here.world.now_ms = dies(here, request)

    assert "users-0: failed 1 time" in here.skips()
    here.world.now_ms += 15 * SECOND_MS
    assert here.asked() == ["users-0"]


def test_a_run_that_was_cancelled_counts_for_an_hour_and_is_asked_for_again_under_a_new_key(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The key holds the hour too, and another one may begin meanwhile.
    monkeypatch.setattr(requests, "_HOUR_MS", 10 * here.world.now_ms)
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    (first,) = here.world.requests(ingest_lag_sensor)
    instance = here.world.instance
    run = instance.create_run_for_job(
        ingest_kafka, run_config=first.run_config, tags=dict(first.tags), status=dg.DagsterRunStatus.STARTED
    )
    begin(instance, run)
    instance.report_run_canceled(run)
    here.world.now_ms = time.time_ns() // 1_000_000

    assert "users-0: failed or was cancelled 1 time, the next ingest is at" in here.skips()
    here.world.now_ms += 15 * SECOND_MS
    (second,) = here.world.requests(ingest_lag_sensor)
    assert asked_by(second) == asked_by(first)
    assert second.run_key != first.run_key
    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + HOUR_MS / 1000)
    here.world.now_ms -= 15 * SECOND_MS
    assert here.asked() == asked_by(first)


@pytest.mark.parametrize("is_by_hand", [False, True])
def test_a_run_that_died_counts_no_longer_once_a_newer_one_has_succeeded(here: IngestWorld, is_by_hand: bool) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    (request,) = here.world.requests(ingest_lag_sensor)
    died_ms = dies(here, request, is_by_hand=is_by_hand)
    assert here.ingest().success
    here.produce("users", ("b", "1"))
    here.world.now_ms = died_ms

    assert here.asked() == ["users-0"]


def test_a_run_that_died_counts_on_for_topics_of_which_only_others_have_succeeded(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.produce("orders", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    here.knows("orders", 0, 0, 0, 0)
    (request,) = here.world.requests(ingest_lag_sensor)
    died_ms = dies(here, request, is_by_hand=True)
    assert here.ingest(topics=["orders"]).success
    here.produce("orders", ("b", "1"))
    here.world.now_ms = died_ms

    assert here.asked() == ["orders-0"]


def test_a_run_that_died_counts_only_for_what_is_still_where_it_was_asked_for(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.produce("users", ("b", "1"), partition=1)
    here.knows("users", 0, 0, 0, 0)
    (request,) = here.world.requests(ingest_lag_sensor)
    assert asked_by(request) == ["users-0", "users-1"]
    died_ms = dies(here, request)
    assert here.materialize("users", 0, 0).success
    here.produce("users", ("c", "1"))
    here.produce("users", ("d", "1"), partition=2)
    here.world.now_ms = died_ms

    assert here.asked() == ["users-0", "users-2"]


def test_a_topic_that_could_not_be_looked_at_counts_no_longer_once_a_newer_run_has_succeeded(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    failed_at = {"at_ms": here.world.now_ms, "positions": {"users": None}}
    tags = {"keptlog/ingest_failed_at": json.dumps(failed_at)}
    failed(here, tags)
    assert "users-0: failed 1 time" in here.skips()
    assert here.ingest(topic_partitions=["users-0"]).success
    here.produce("users", ("b", "1"))

    assert here.asked() == ["users-0"]


def test_a_failure_counts_at_its_position_although_the_catalog_is_away_afterwards(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 100, 0, 0)
    (request,) = here.world.requests(ingest_lag_sensor)
    really = Ingest.carry_out

    def away(*_: object, **__: object) -> None:
        raise StorageUnavailable("the catalog is away")

    def carried_out(*given: Any) -> IngestResult:
        result = really(*given)
        for name in ("topics", "source_of"):
            monkeypatch.setattr(LogStore, name, away)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Ingest, "carry_out", carried_out)
        result = here.run(request)
    monkeypatch.undo()

    assert here.failure(result).startswith("1 not ingested, 1 ingested: users-1: it ends at offset 100 here")
    assert "users-1: failed 1 time" in here.skips()


def test_what_landed_of_a_topic_partition_that_failed_moves_where_it_failed(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.produce("users", *[(f"k{number}", "1") for number in range(3)])
    here.knows("users", 1, 0, 0, 0)
    (request,) = here.world.requests(ingest_lag_sensor)
    really = Ingest.carry_out

    def cut_short(*given: Any) -> IngestResult:
        result = really(*given)
        return replace(result, failed={"users-0": KeptlogError("the rest can't be read")})

    monkeypatch.setattr(Ingest, "carry_out", cut_short)
    assert not here.run(request).success
    here.produce("users", ("later", "1"))

    assert "users-0: failed 1 time" in here.skips()


@pytest.mark.parametrize("config", [{"topic_partitions": ["users", "-"]}, {"topics": None}])
def test_a_run_that_was_launched_with_nonsense_breaks_no_tick(here: IngestWorld, config: dict[str, object]) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)

    assert not here.ingest(**config).success

    assert here.asked() == ["users-0"]


@pytest.mark.parametrize("field", ["skip_lost", "into", "config", "seen_ms"])
def test_a_run_whose_configuration_has_null_where_none_is_taken_has_tried_nothing(
    here: IngestWorld, field: str
) -> None:
    here.world.now_ms = time.time_ns() // 1_000_000
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    for _ in range(3):
        assert "validation error for IngestConfig" in here.failure(here.ingest(topics=["users"], **{field: None}))
    here.world.now_ms = time.time_ns() // 1_000_000 + 1

    assert here.asked() == ["users-0"]


def test_so_has_one_whose_spark_was_given_null_for_its_settings(here: IngestWorld) -> None:
    here.world.more_resources["spark"] = SparkResource()
    here.world.now_ms = time.time_ns() // 1_000_000
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    typed = {"ingest": {"config": {"topics": ["users"]}}}
    resources = {"spark": {"config": {"spark_config": None}}}
    for _ in range(3):
        assert not here.run(dg.RunRequest(run_config={"ops": typed, "resources": resources})).success
    here.world.now_ms = time.time_ns() // 1_000_000 + 1

    assert here.asked() == ["users-0"]


def test_a_topic_that_is_made_anew_does_not_wait_for_what_failed_before_as_a_whole(here: IngestWorld) -> None:
    here.world.now_ms = time.time_ns() // 1_000_000
    here.knows("users", 0, 0, 0, 0, there="users-there")
    for _ in range(3):
        assert not here.ingest(topics=["users"]).success
    here.world.store.delete_topic("users", here.world.now_ms)
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    here.world.now_ms += SECOND_MS
    assert here.asked() == ["users-0"]
