"""The sensors: each fires when it should, says why when it does not, asks for no log twice and gives up on none."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

import keptlog.dagster.orchestration.requests as requests_module
from keptlog.errors import StorageUnavailable
from keptlog.home import Home, open_home
from keptlog.passes.marked import Death
from tests.orchestration.conftest import COMPACT, DAY_MS, HOUR_MS, World, logs_of
from tests.orchestration.shipped import (
    clean_logs,
    dirty_ratio_sensor,
    max_compaction_lag_sensor,
    tombstone_expiry_sensor,
)


def test_a_log_above_its_dirty_ratio_is_requested_by_the_dirty_ratio_sensor_alone(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))

    (request,) = world.requests(dirty_ratio_sensor)

    assert logs_of(request) == ["users-0"]
    assert request.tags["keptlog/trigger"] == "dirty_ratio"
    assert request.tags["keptlog/topic_partitions"] == "users-0"
    assert "1 log, none is due because it is late" in world.skips(max_compaction_lag_sensor)
    assert "1 log, none is due because of a tombstone" in world.skips(tombstone_expiry_sensor)


def test_a_late_log_is_requested_by_the_max_compaction_lag_sensor_alone(world: World) -> None:
    world.topic("users", min_cleanable_dirty_ratio="1", max_compaction_lag_ms=str(2 * HOUR_MS))
    world.append("users", ("a", "1"), age_ms=HOUR_MS)
    assert world.requests(max_compaction_lag_sensor) == []
    world.now_ms += HOUR_MS + 1

    (request,) = world.requests(max_compaction_lag_sensor)

    assert logs_of(request) == ["users-0"]
    assert world.requests(dirty_ratio_sensor) == []


def test_a_tombstone_past_its_horizon_is_requested_without_new_data(world: World, spark: SparkSession) -> None:
    world.topic("users", delete_retention_ms=str(DAY_MS))
    world.append("users", ("a", None))
    world.clean()
    assert "next to look at: users-0 at" in world.skips(tombstone_expiry_sensor)
    world.now_ms += DAY_MS

    (request,) = world.requests(tombstone_expiry_sensor)

    assert world.launch(request).success
    assert world.records("users") == []


def test_the_most_urgent_logs_come_first_and_their_number_is_capped(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(requests_module, "LOGS_PER_RUN", 2)
    world.topic("users", 3, max_compaction_lag_ms=str(HOUR_MS))
    for partition in range(3):
        world.append("users", ("a", "1"), partition=partition, age_ms=(partition + 2) * HOUR_MS)

    (request,) = world.requests(max_compaction_lag_sensor)

    assert logs_of(request) == ["users-2", "users-1"]
    assert "1 more log is due and not asked for yet: a tick asks for at most 2" in capfd.readouterr().err


def test_a_log_that_a_run_is_cleaning_is_not_requested_again(world: World) -> None:
    world.topic("users", 2)
    for partition in range(2):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    config = {"ops": {"plan": {"config": {"logs": ["users-0"]}}}}
    world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.STARTED)

    (request,) = world.requests(dirty_ratio_sensor)
    assert logs_of(request) == ["users-1"]

    world.instance.create_run_for_job(clean_logs, run_config=request.run_config, status=dg.DagsterRunStatus.STARTING)
    assert "users-0 is being cleaned; users-1 is being cleaned" in world.skips(dirty_ratio_sensor)


def test_a_run_over_everything_that_is_due_counts_for_every_log(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    world.instance.create_run_for_job(clean_logs, status=dg.DagsterRunStatus.STARTED)

    assert "users-0 is being cleaned" in world.skips(dirty_ratio_sensor)


def test_the_same_state_has_the_same_run_key_and_new_data_another(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (first,), (second,) = world.requests(dirty_ratio_sensor), world.requests(dirty_ratio_sensor)
    world.append("users", ("a", "3"))
    (third,) = world.requests(dirty_ratio_sensor)

    assert first.run_key == second.run_key
    assert third.run_key != first.run_key


def test_a_failed_log_is_tried_again_with_a_new_key_and_a_longer_pause_each_time(
    world: World, spark: SparkSession
) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    repair = world.break_segment("users")
    (first,) = world.requests(dirty_ratio_sensor)
    assert not world.launch(first).success

    assert "users-0 is uncleanable since" in world.skips(dirty_ratio_sensor)
    assert "1 clean failed" in world.skips(dirty_ratio_sensor)
    world.now_ms = retry_at_ms(world)
    (second,) = world.requests(dirty_ratio_sensor)
    assert second.run_key != first.run_key
    assert not world.launch(second).success

    assert retry_at_ms(world) - world.now_ms >= 30_000
    assert "2 cleans failed" in world.skips(dirty_ratio_sensor)
    world.now_ms = retry_at_ms(world)
    (third,) = world.requests(dirty_ratio_sensor)
    repair()
    assert world.launch(third).success
    assert world.records("users") == [(1, b"a", b"2")]
    assert world.store.logs("users")[0].uncleanable is None

    world.append("users", ("a", "3"), ("b", "1"))
    assert len(world.requests(dirty_ratio_sensor)) == 1


@pytest.mark.parametrize(
    ("sensor", "untrue"),
    [(max_compaction_lag_sensor, "none is late"), (dirty_ratio_sensor, "none is above its dirty ratio")],
    ids=["late", "dirty"],
)
def test_a_late_and_dirty_log_that_waits_after_a_failed_clean_is_not_said_to_be_in_time_or_clean(
    world: World, sensor: dg.SensorDefinition, untrue: str
) -> None:
    world.topic("users", max_compaction_lag_ms=str(HOUR_MS))
    world.append("users", ("a", "1"), ("a", "2"), age_ms=3 * HOUR_MS)
    died = Death(("users-0",), "run 7 died", world.now_ms)
    world.log_store.cleaner().mark_still_due(died, set(), now_ms=world.now_ms)

    told = world.skips(sensor)

    assert untrue not in told
    assert told.startswith("1 log, none is due because ")
    assert "users-0 is 2 h late, and uncleanable since " in told


def retry_at_ms(world: World) -> int:
    mark = world.store.logs("users")[0].uncleanable
    assert mark
    return mark.retry_at_ms


def test_a_log_that_was_cleaned_in_a_failed_run_does_not_back_off(world: World, spark: SparkSession) -> None:
    world.topic("users", 2)
    for partition in range(2):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    world.break_segment("users", 1)
    (request,) = world.requests(dirty_ratio_sensor)
    assert not world.launch(request).success
    world.append("users", *[(f"k{number}", "1") for number in range(500)])

    (next_request,) = world.requests(dirty_ratio_sensor)

    assert logs_of(next_request) == ["users-0"]


def test_a_cancelled_run_is_asked_for_again_within_the_hour(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (first,) = world.requests(dirty_ratio_sensor)
    config = first.run_config
    world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.CANCELED)
    world.now_ms += HOUR_MS
    (second,) = world.requests(dirty_ratio_sensor)
    assert second.run_key != first.run_key


def test_a_cancelled_run_keeps_no_other_logs_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_module, "LOGS_PER_RUN", 1)
    world.topic("users", 2)
    for partition in range(2):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    (first,) = world.requests(dirty_ratio_sensor)
    config = first.run_config
    world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.CANCELED)

    (second,) = world.requests(dirty_ratio_sensor)

    assert logs_of(first) + logs_of(second) == ["users-0", "users-1"]
    config = second.run_config
    world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.STARTED)
    (third,) = world.requests(dirty_ratio_sensor)
    assert third.run_key == first.run_key, "it is not begun again within the hour"


@pytest.mark.parametrize(("threads", "limit"), [(3, 3), (5000, 1000)], ids=["few", "more than Dagster has slots"])
def test_the_pool_is_as_large_as_log_cleaner_threads_says(world: World, threads: int, limit: int) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    buffers = f"log.cleaner.dedupe.buffer.size={2**40}"
    (world.path / "server.properties").write_text(f"log.cleaner.threads={threads}\n{buffers}")
    world.reopen()
    assert world.requests(dirty_ratio_sensor)
    assert [(pool.name, pool.limit) for pool in world.instance.event_log_storage.get_pool_limits()] == [
        ("log_cleaner", limit)
    ]


def test_a_disabled_cleaner_asks_for_no_run_and_says_so(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (world.path / "server.properties").write_text("log.cleaner.enable=false")
    world.reopen()
    assert "log.cleaner.enable=false" in world.skips(dirty_ratio_sensor)


def test_a_new_topic_is_handled_without_a_reload_of_the_code_location(world: World, spark: SparkSession) -> None:
    job = world.defs.get_job_def("clean_logs")
    assert "no topics yet" in world.skips(dirty_ratio_sensor)
    world.topic("later")
    world.append("later", ("a", "1"), ("a", "2"))

    (request,) = world.requests(dirty_ratio_sensor)

    assert job.execute_in_process(run_config=request.run_config, instance=world.instance).success
    assert world.records("later") == [(1, b"a", b"2")]
    assert world.instance.get_materialized_partitions(dg.AssetKey(["later", "clean"])) == {"later-0"}


def test_a_topic_that_cannot_be_read_is_named_and_the_others_are_requested(world: World) -> None:
    world.topic("good")
    world.append("good", ("a", "1"), ("a", "2"))
    world.topic("odd")
    world.store.load_table("odd").transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()

    (request,) = world.requests(dirty_ratio_sensor)

    assert logs_of(request) == ["good-0"]
    assert "odd can't be read" in world.skips(max_compaction_lag_sensor)


def test_a_home_that_was_deleted_and_made_again_is_read_anew(world: World) -> None:
    world.topic("before")
    assert "1 log" in world.skips(dirty_ratio_sensor)
    shutil.rmtree(world.path)
    with pytest.raises(StorageUnavailable, match="has lost its catalog"):
        world.tick(dirty_ratio_sensor)
    open_home(world.path).store.create_topic("after", 2, COMPACT)

    assert "2 logs" in world.skips(dirty_ratio_sensor)


def test_a_catalog_that_was_put_back_between_two_ticks_is_read_anew(world: World) -> None:
    world.topic("before")
    backup = world.path.with_name("backup.db")
    shutil.copyfile(world.path / "catalog.db", backup)
    world.topic("later")
    assert "2 logs" in world.skips(dirty_ratio_sensor)

    backup.replace(world.path / "catalog.db")

    assert "1 log," in world.skips(dirty_ratio_sensor)


def test_a_home_that_was_put_back_between_two_ticks_is_read_anew(world: World) -> None:
    world.topic("before")
    backup = world.path.with_name("backup")
    shutil.copytree(world.path, backup)
    world.topic("later")
    assert "2 logs" in world.skips(dirty_ratio_sensor)

    # A file system may give the new folder the number that the old one had.
    for each in world.path.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    shutil.copytree(backup, world.path, dirs_exist_ok=True)

    assert "1 log," in world.skips(dirty_ratio_sensor)


def test_no_commit_has_the_home_opened_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    def counted(path: Path) -> Home:
        opened.append(path)
        return open_home(path)

    monkeypatch.setattr("keptlog.dagster.resources.log_store.open_home", counted)
    for _ in range(3):
        assert "no topics yet" in world.skips(dirty_ratio_sensor)
    world.topic("users")
    world.tick(dirty_ratio_sensor)
    assert len(opened) <= 2, "once more at most when the catalog's file is there"
    opened.clear()

    for number in range(3):
        world.append("users", (f"key-{number}", "1"))
        world.tick(dirty_ratio_sensor)
    world.topic("later")
    world.tick(dirty_ratio_sensor)

    assert opened == []


def test_an_unreachable_home_fails_the_tick_with_the_reason_and_the_next_tick_tries_again(world: World) -> None:
    world.path.write_text("not a folder")
    with pytest.raises(Exception, match=str(world.path)):
        world.tick(dirty_ratio_sensor)

    world.path.unlink()
    assert "no topics yet" in world.skips(dirty_ratio_sensor)
