"""Retention in Dagster: the sensor asks when there is something to remove, the job removes it."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.orchestration import in_flight
from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.log.retention import Retention, retention_of
from keptlog.log.segment import Log
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World, unreadable_topics
from tests.orchestration.instance import fail
from tests.orchestration.shipped import clean_logs, retention_sensor
from tests.orchestration.test_siblings import HERE

SENSOR = retention_sensor(300)


@pytest.fixture
def events(world: World) -> str:
    """Two segments, a day old and new; the topic keeps an hour."""
    world.topic("events", cleanup_policy="compact,delete", retention_ms=str(HOUR_MS))
    world.append("events", ("a", "1"), ("b", "1"), age_ms=DAY_MS)
    world.append("events", ("a", "2"), age_ms=0)
    return "events"


def retain(world: World, request: dg.RunRequest | None = None) -> dg.ExecuteInProcessResult:
    job = world.defs.get_job_def("retention")
    config = request.run_config if request else None
    return job.execute_in_process(run_config=config, instance=world.instance, raise_on_error=False)


def test_old_segments_are_requested_and_removed(world: World, events: str) -> None:
    (request,) = world.requests(SENSOR)
    assert request.tags["keptlog/topic_partitions"] == "events-0"

    assert retain(world, request).success

    assert world.records(events) == [(2, b"a", b"2")]
    assert "1 log, none has a segment to remove now" in world.skips(SENSOR)


def test_what_was_removed_is_an_observation_of_the_clean_section(world: World, events: str) -> None:
    result = retain(world)
    (observation,) = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    ]
    assert (observation.asset_key, observation.partition) == (dg.AssetKey(["events", "clean"]), "events-0")
    numbers = {name: value.value for name, value in observation.metadata.items()}
    assert {name: numbers[name] for name in ("segments_removed", "records_removed", "log_start_offset")} == {
        "segments_removed": 1,
        "records_removed": 2,
        "log_start_offset": 2,
    }


def test_a_log_that_is_being_cleaned_waits(world: World, events: str) -> None:
    config = {"ops": {"plan": {"config": {"logs": ["events-0"]}}}}
    world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.STARTED)
    assert world.requests(SENSOR) == []
    assert world.skips(SENSOR) == "to be retained once their cleans are done: events-0"
    assert retain(world).success
    assert len(world.records(events)) == 3


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTED])
def test_a_clean_of_everything_keeps_no_log_waiting_that_no_clean_comes_to(
    world: World, status: dg.DagsterRunStatus
) -> None:
    """Nothing was removed of it while a nightly clean was at work, or waited, and runs by hand succeeded."""
    world.topic("carts", cleanup_policy="delete", retention_ms=str(HOUR_MS))
    world.append("carts", ("a", "1"), age_ms=DAY_MS)
    world.append("carts", ("b", "1"), age_ms=0)
    world.instance.create_run_for_job(clean_logs, status=status, remote_job_origin=HERE)

    (request,) = world.requests(SENSOR)

    assert retained_logs(request) == ["carts-0"]
    assert retain(world).success
    assert len(world.records("carts")) == 1


@pytest.mark.parametrize("names", [[], ["events-0"]])
def test_a_clean_that_waits_in_the_queue_keeps_no_log_waiting(world: World, events: str, names: list[str]) -> None:
    """It plans when it begins; until then its logs were said to be cleaned, and kept what was old."""
    config = {"ops": {"plan": {"config": {"logs": names}}}}
    status = dg.DagsterRunStatus.QUEUED
    world.instance.create_run_for_job(clean_logs, run_config=config, status=status, remote_job_origin=HERE)

    (request,) = world.requests(SENSOR)

    assert retained_logs(request) == ["events-0"]
    assert retain(world).success
    assert world.records(events) == [(2, b"a", b"2")]


def test_a_topic_that_cannot_be_read_fails_the_run_and_stops_no_other(world: World, events: str) -> None:
    world.topic("odd")
    world.store.load_table("odd").transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    result = retain(world)
    assert not result.success
    assert world.records(events) == [(2, b"a", b"2")]


def test_a_tick_asks_for_the_others_and_names_the_topic_of_which_nobody_can_tell_what_is_old(
    world: World, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It judges all logs in one call: a single one kept all others from ever being retained."""
    world.topic("odd")

    def retention(log: Log, now_ms: int) -> Retention:
        if log.topic_partition.topic == "odd":
            raise OverflowError("int too large")
        return retention_of(log, now_ms)

    monkeypatch.setattr("keptlog.log.plan.retention_of", retention)
    (request,) = world.requests(SENSOR)
    assert request.tags["keptlog/topic_partitions"] == f"{events}-0"
    assert retain(world, request).success
    assert "odd can't be read: the look at it stopped at OverflowError" in world.skips(SENSOR)


def test_a_tick_names_the_topics_that_cannot_be_read(world: World) -> None:
    unreadable_topics(world, 5)

    told = world.skips(SENSOR)

    assert told.startswith("0 logs, none has a segment to remove now; odd-0 can't be read: property log.p0.log-end-")
    assert told.endswith("; and 2 more topics can't be read")


@pytest.mark.parametrize("error", [StorageUnavailable("its bucket is gone"), LogCorrupt("its manifest is cut off")])
def test_a_large_topic_that_can_never_be_retained_keeps_retention_from_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, error: KeptlogError
) -> None:
    monkeypatch.setattr("keptlog.dagster.orchestration.retention_sensor.LOGS_PER_RUN", 2)
    for topic, partitions in (("a", 2), ("b", 1), ("c", 2)):
        world.topic(topic, partitions, cleanup_policy="delete", retention_ms=str(HOUR_MS))
        for partition in range(partitions):
            world.append(topic, ("a", "1"), age_ms=DAY_MS, partition=partition)
            world.append(topic, ("b", "1"), age_ms=0, partition=partition)
    really = LogStore.retain

    def a_refuses(store: LogStore, topic: str, *rest: Any) -> None:
        if topic == "a":
            raise error
        really(store, topic, *rest)

    monkeypatch.setattr(LogStore, "retain", a_refuses)
    asked: list[list[str]] = []
    keys: set[str | None] = set()
    for _ in range(4):
        (request,) = world.requests(SENSOR)
        asked.append(retained_logs(request))
        keys.add(request.run_key)
        world.run_job("retention", request)

    assert asked[:3] == [["a-0", "a-1"], ["b-0", "c-0"], ["c-1", "a-0"]]
    assert asked[3] == ["a-1", "a-0"], "it is not forgotten"
    assert len(keys) == 4
    assert [len(world.records("c", partition)) for partition in (0, 1)] == [1, 1]


@pytest.mark.parametrize("is_new_process", [False, True])
def test_logs_with_an_old_segment_at_each_look_keep_no_other_one_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *, is_new_process: bool
) -> None:
    monkeypatch.setattr("keptlog.dagster.orchestration.retention_sensor.LOGS_PER_RUN", 2)
    world.topic("events", 5, cleanup_policy="delete", retention_ms=str(HOUR_MS))
    asked: list[str] = []
    for look in range(5):
        for partition in range(5):
            world.append("events", ("a", str(look)), age_ms=0, partition=partition)
        world.now_ms += 2 * HOUR_MS
        (request,) = world.requests(SENSOR)
        asked += retained_logs(request)
        assert retain(world, request).success
        if is_new_process:
            world.reopen()

    assert sorted(asked) == sorted(2 * [f"events-{partition}" for partition in range(5)])
    assert "3 more logs are due and not asked for yet: a tick asks for at most 2" in capfd.readouterr().err


@pytest.mark.parametrize("has_died", [False, True])
def test_what_one_run_left_has_its_turn_again_where_other_logs_have_an_old_segment_at_each_look(
    world: World, monkeypatch: pytest.MonkeyPatch, *, has_died: bool
) -> None:
    """It came last for good: one run that died, or met an outage, kept its logs from ever being retained."""
    monkeypatch.setattr("keptlog.dagster.orchestration.retention_sensor.LOGS_PER_RUN", 2)
    for topic in "abcde":
        world.topic(topic, 1, cleanup_policy="delete", retention_ms=str(HOUR_MS))
    asked: list[list[str]] = []
    for look in range(6):
        for topic in "abcde":
            world.append(topic, ("a", str(look)), age_ms=0)
        world.now_ms += 2 * HOUR_MS
        with monkeypatch.context() as patch:
            patch.setattr(in_flight, "get_current_timestamp", lambda later=look: time.time() + later * HOUR_MS / 1000)
            (request,) = world.requests(SENSOR)
        asked.append(retained_logs(request))
        if look == 0 and has_died:
            job = world.defs.get_job_def("retention")
            fail(world.instance, world.instance.create_run_for_job(job, run_config=request.run_config), "killed")
            continue
        with monkeypatch.context() as outage:
            if look == 0:
                outage.setattr(LogStore, "retain", away)
            assert world.run_job("retention", request).success == (look > 0)

    assert asked == [["a-0", "b-0"], ["c-0", "d-0"], ["e-0", "a-0"], ["b-0", "c-0"], ["d-0", "e-0"], ["a-0", "b-0"]]


def away(*_: object) -> None:
    raise StorageUnavailable("the bucket does not answer")


def test_a_cancelled_run_keeps_no_other_logs_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keptlog.dagster.orchestration.retention_sensor.LOGS_PER_RUN", 1)
    world.topic("events", 2, cleanup_policy="delete", retention_ms=str(HOUR_MS))
    for partition in range(2):
        world.append("events", ("a", "1"), age_ms=DAY_MS, partition=partition)
        world.append("events", ("b", "1"), age_ms=0, partition=partition)
    (first,) = world.requests(SENSOR)
    job, config = world.defs.get_job_def("retention"), first.run_config
    world.instance.create_run_for_job(job, run_config=config, status=dg.DagsterRunStatus.CANCELED)

    (second,) = world.requests(SENSOR)

    assert retained_logs(first) + retained_logs(second) == ["events-0", "events-1"]


def test_what_a_run_left_that_died_is_asked_for_under_a_new_key(world: World, events: str) -> None:
    (first,) = world.requests(SENSOR)
    job = world.defs.get_job_def("retention")
    run = world.instance.create_run_for_job(job, run_config=first.run_config, tags=first.tags)
    fail(world.instance, run, "killed")

    (second,) = world.requests(SENSOR)
    (same,) = world.requests(SENSOR)

    assert retained_logs(second) == retained_logs(first) == ["events-0"]
    assert second.run_key != first.run_key, "Dagster starts a key once"
    assert same.run_key == second.run_key


def test_what_somebody_has_cancelled_is_not_asked_for_under_a_new_key(world: World, events: str) -> None:
    (first,) = world.requests(SENSOR)
    job, config = world.defs.get_job_def("retention"), first.run_config
    world.instance.create_run_for_job(job, run_config=config, status=dg.DagsterRunStatus.CANCELED)

    (second,) = world.requests(SENSOR)

    assert second.run_key == first.run_key


def retained_logs(request: dg.RunRequest) -> list[str]:
    config: Any = request.run_config
    return list(config["ops"]["remove_old_segments"]["config"]["logs"])


def test_the_sensor_looks_as_often_as_the_broker_setting_says(world: World, events: str) -> None:
    def interval(defs: dg.Definitions) -> int | None:
        return defs.get_repository_def().get_sensor_def("retention_sensor").minimum_interval_seconds

    assert interval(world.defs) == 300
    (world.path / "server.properties").write_text("log.retention.check.interval.ms=90000")
    world.reopen()
    assert interval(world.defs) == 90
    assert interval(build_defs(LogStoreResource(home=str(world.path / "server.properties")))) == 300
    (world.path / "server.properties").write_text(f"log.retention.check.interval.ms={2**63 - 1}")
    world.reopen()
    assert interval(world.defs) == 2**31 - 1, "a longer time makes Dagster's pages of sensors fail"
