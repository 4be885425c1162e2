"""An outage of Spark, catalog or storage is held against no log, told as what it is, and over soon after it is over."""

from __future__ import annotations

import errno
import itertools
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from examples.ports import free_port
from keptlog.dagster.assets.outage import OUTAGE_TAG, outage_among
from keptlog.dagster.orchestration.retention_sensor import retention_interval_seconds
from keptlog.dagster.resources.spark import spark_resource
from keptlog.disk import FolderShut
from keptlog.errors import Action, CommitStateUnknown, KeptlogError, NoRightToWrite, StorageUnavailable
from keptlog.log.uncleanable import Uncleanable
from keptlog.table.io import files
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, World, logs_of
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import clean_logs, dirty_ratio_sensor, failed_run_sensor, retention_sensor

SECOND_MS = 1000


class LostSpark(InProcessSpark):
    """A Spark that can't be started while ``why`` says why not."""

    why: ClassVar[str | None] = None

    @property
    def spark_session(self) -> SparkSession:
        if self.why:
            raise ConnectionError(self.why)
        return super().spark_session


@pytest.fixture
def dirty(world: World) -> World:
    """Two topics that are due."""
    for topic in ("users", "orders"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    world.more_resources["spark"] = LostSpark(spark_config={})
    return world


@contextmanager
def spark_lost() -> Iterator[None]:
    LostSpark.why = "the cluster manager is gone"
    try:
        yield
    finally:
        LostSpark.why = None


def marks(world: World) -> list[object]:
    return [log.uncleanable for topic in world.store.topics() for log in world.store.logs(topic)]


def told(world: World, result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    run = world.instance.get_run_by_id(result.run_id)
    assert run
    found: dict[str, Any] = json.loads(run.tags["keptlog/outage"])
    return found


def failed_run_sensor_says(world: World, run_id: str) -> str:
    said = world.skips(failed_run_sensor)
    assert run_id in said
    return said


def test_a_run_without_spark_says_why_marks_no_log_and_is_asked_for_again_at_the_next_tick(dirty: World) -> None:
    (first,) = dirty.requests(dirty_ratio_sensor)
    with spark_lost():
        result = dirty.launch(first)
    assert not result.success
    failure = result.failure_data_for_node("compact")
    assert failure
    assert failure.user_failure_data
    assert "the cluster manager is gone" in (failure.user_failure_data.description or "")
    assert "the cluster manager is gone" in told(dirty, result)["reason"]
    assert "no log's fault" in failed_run_sensor_says(dirty, result.run_id)
    assert marks(dirty) == [None, None]

    (second,) = dirty.requests(dirty_ratio_sensor)
    assert logs_of(second) == logs_of(first)
    assert second.run_key != first.run_key
    assert dirty.launch(second).success
    assert dirty.records("users") == dirty.records("orders") == [(1, b"a", b"2")]


def test_an_outage_that_lasts_leaves_fewer_and_fewer_runs_and_is_noticed_to_be_over_within_minutes(
    dirty: World,
) -> None:
    asked_at_s: list[int] = []
    with spark_lost():
        for second in range(0, 1800, 30):
            requests = dirty.requests(dirty_ratio_sensor)
            asked_at_s += [second] * len(requests)
            assert not any(dirty.launch(request).success for request in requests)
            dirty.now_ms += 30 * SECOND_MS
    assert asked_at_s[:5] == [0, 30, 60, 120, 240]
    assert max(after - before for before, after in itertools.pairwise(asked_at_s)) == 300
    assert marks(dirty) == [None, None]
    dirty.now_ms += 300 * SECOND_MS
    (request,) = dirty.requests(dirty_ratio_sensor)
    assert dirty.launch(request).success


def test_a_clock_that_was_ahead_while_runs_were_stopped_holds_nothing_back(dirty: World) -> None:
    dirty.now_ms += DAY_MS
    with spark_lost():
        for _ in range(2):
            (request,) = dirty.requests(dirty_ratio_sensor)
            assert not dirty.launch(request).success
    assert "an outage has stopped" in dirty.skips(dirty_ratio_sensor)
    dirty.now_ms -= DAY_MS

    (request,) = dirty.requests(dirty_ratio_sensor)

    assert sorted(logs_of(request)) == ["orders-0", "users-0"]


def test_a_run_whose_clock_was_ahead_is_asked_for_again_at_the_next_tick_under_a_new_key(dirty: World) -> None:
    (first,) = dirty.requests(dirty_ratio_sensor)
    dirty.now_ms += DAY_MS
    with spark_lost():
        assert not dirty.launch(first).success
    dirty.now_ms -= DAY_MS

    (second,) = dirty.requests(dirty_ratio_sensor)

    assert logs_of(second) == logs_of(first)
    assert second.run_key != first.run_key


def test_runs_whose_clock_is_ahead_are_paused_between_by_when_they_were_created(world: World) -> None:
    """Or each tick of a long outage would leave a failed run, for as long as that clock is ahead."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    world.more_resources["spark"] = LostSpark(spark_config={})
    for _ in range(2):
        (request,) = world.requests(dirty_ratio_sensor)
        world.now_ms += DAY_MS
        with spark_lost():
            assert not world.launch(request).success
        world.now_ms -= DAY_MS

    last_ms = max(round(each.create_timestamp.timestamp() * 1000) for each in world.instance.get_run_records())
    world.now_ms = last_ms + 29 * SECOND_MS
    assert "an outage has stopped the clean of users-0" in world.skips(dirty_ratio_sensor)
    world.now_ms = last_ms + 30 * SECOND_MS
    assert len(world.requests(dirty_ratio_sensor)) == 1


def test_a_log_that_an_outage_did_not_stop_is_asked_for_meanwhile(dirty: World) -> None:
    with spark_lost():
        for _ in range(2):
            (request,) = dirty.requests(dirty_ratio_sensor)
            assert not dirty.launch(request).success
    dirty.topic("later")
    dirty.append("later", ("a", "1"), ("a", "2"))
    (request,) = dirty.requests(dirty_ratio_sensor)
    assert logs_of(request) == ["later-0"]
    dirty.instance.create_run_for_job(clean_logs, run_config=request.run_config, status=dg.DagsterRunStatus.STARTED)
    assert "an outage has stopped the clean of users-0, the next is asked for at" in dirty.skips(dirty_ratio_sensor)


def test_no_run_is_asked_for_while_the_spark_server_does_not_answer_and_the_first_tick_after_that_asks(
    dirty: World,
) -> None:
    port = free_port()
    dirty.more_resources["spark"] = spark_resource(f"sc://localhost:{port}")
    said = dirty.skips(dirty_ratio_sensor)
    assert f"no Spark Connect server answers at localhost:{port}" in said
    assert "2 logs will wait" in said
    with socket.create_server(("127.0.0.1", port)):
        (request,) = dirty.requests(dirty_ratio_sensor)
    assert sorted(logs_of(request)) == ["orders-0", "users-0"]


def test_a_catalog_that_takes_no_commit_marks_no_log_and_tells_its_own_reason(
    dirty: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> None:
        raise StorageUnavailable("database is locked")

    (first,) = dirty.requests(dirty_ratio_sensor)
    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "swap", locked)
        result = dirty.launch(first)
    assert told(dirty, result)["reason"] == "database is locked"
    assert marks(dirty) == [None, None]
    (second,) = dirty.requests(dirty_ratio_sensor)
    assert dirty.launch(second).success


@pytest.mark.parametrize("ahead_ms", [0, 60 * SECOND_MS], ids=["one clock", "the run's clock is ahead"])
@pytest.mark.parametrize("kind", [StorageUnavailable, CommitStateUnknown])
def test_retention_that_an_outage_has_stopped_is_asked_for_again(
    world: World, monkeypatch: pytest.MonkeyPatch, ahead_ms: int, kind: type[KeptlogError]
) -> None:
    world.topic("old", cleanup_policy="delete", retention_ms=str(DAY_MS))
    world.append("old", ("a", "1"), age_ms=3 * DAY_MS)
    world.append("old", ("b", "1"), age_ms=0)
    sensor = retention_sensor(retention_interval_seconds(world.log_store))

    def locked(*_: object) -> None:
        raise kind("database is locked")

    (first,) = world.requests(sensor)
    world.now_ms += ahead_ms
    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "retain", locked)
        assert not world.run_job("retention", first).success
    world.now_ms -= ahead_ms
    (second,) = world.requests(sensor)
    assert second.run_key != first.run_key
    assert world.run_job("retention", second).success
    assert len(world.records("old")) == 1


def test_a_materialization_by_hand_says_what_is_down(dirty: World) -> None:
    job = dirty.defs.resolve_implicit_global_asset_job_def()
    with spark_lost():
        result = job.get_subset(asset_selection={dg.AssetKey(["users", "clean"])}).execute_in_process(
            instance=dirty.instance, raise_on_error=False, tags={"dagster/partition": "users-0"}
        )
    assert "the cluster manager is gone" in told(dirty, result)["reason"]
    assert marks(dirty) == [None, None]


@pytest.mark.parametrize("what", ["metadata_locations", "purge"], ids=["the catalog", "each topic"])
def test_a_purge_that_an_outage_has_stopped_says_what_is_down(
    dirty: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def locked(*_: object) -> None:
        raise StorageUnavailable("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(LogStore, what, locked)
        result = dirty.run_job("purge", dg.RunRequest(run_config={}))

    failure = result.failure_data_for_node("delete_retired_files")
    assert failure
    assert failure.user_failure_data, "Dagster tells an error of its own"
    assert "database is locked" in (failure.user_failure_data.description or "")
    assert told(dirty, result)["reason"] == "database is locked"
    assert dirty.run_job("purge", dg.RunRequest(run_config={})).success


def test_a_folder_that_this_user_may_not_write_to_is_no_outage(dirty: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lasts until somebody acts: tries have the back-off of a mark, and not the short pauses of an outage."""

    def refused(local: str, _: object) -> None:
        raise FolderShut(errno.EACCES, "Permission denied", str(Path(local).parent))

    (request,) = dirty.requests(dirty_ratio_sensor)
    monkeypatch.setattr(files, "create_local", refused)
    result = dirty.launch(request)

    run = dirty.instance.get_run_by_id(result.run_id)
    assert run
    assert OUTAGE_TAG not in run.tags
    assert [mark.action if isinstance(mark, Uncleanable) else mark for mark in marks(dirty)] == [Action.FIX_STORAGE] * 2
    said = dirty.skips(dirty_ratio_sensor)
    assert "users-0 is uncleanable since" in said
    assert "may not write to" in said
    shut = {"users-0": NoRightToWrite("user alice may not write to /data")}
    assert outage_among(shut, is_any_done=False) is None
    down = StorageUnavailable("S3 does not answer")
    assert outage_among(shut | {"orders-0": down}, is_any_done=False) is down


def test_what_landed_before_the_catalog_was_lost_is_told_and_no_log_is_marked(
    dirty: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is lost for good between two commits of one run, and so for whatever the run asks after them."""
    lost: list[str] = []
    really_swap = LogStore.swap

    def swap(store: LogStore, topic: str, *rest: object, **named: object) -> object:
        if topic == "users":
            lost.append(topic)
            raise StorageUnavailable("the catalog is away")
        return really_swap(store, topic, *rest, **named)  # type: ignore[arg-type]

    def once_lost(name: str) -> None:
        really: Any = getattr(LogStore, name)

        def asked(store: LogStore, *given: object, **named: object) -> object:
            if lost:
                raise StorageUnavailable("the catalog is away")
            return really(store, *given, **named)

        monkeypatch.setattr(LogStore, name, asked)

    (request,) = dirty.requests(dirty_ratio_sensor)
    monkeypatch.setattr(LogStore, "swap", swap)
    for name in ("load_table", "metadata_locations", "topics", "observe", "logs", "mark_uncleanable"):
        once_lost(name)
    result = dirty.launch(request)
    monkeypatch.undo()
    lost.clear()

    assert not result.success
    assert told(dirty, result)["reason"] == "the catalog is away"
    landed = dirty.instance.event_log_storage.get_materialized_partitions(dg.AssetKey(["orders", "clean"]))
    assert landed == {"orders-0"}
    assert "no log's fault" in failed_run_sensor_says(dirty, result.run_id)
    assert marks(dirty) == [None, None]
