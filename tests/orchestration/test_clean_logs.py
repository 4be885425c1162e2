"""The job: many logs in one run, each with its numbers, none held up by another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import ClassVar

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from keptlog.cli.receipt_text import bytes_of, files_of
from keptlog.dagster.assets.outage import OUTAGE_TAG
from keptlog.home import open_home
from keptlog.log.told.metrics import CleanerMetrics
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.units import size
from keptlog.passes.names import named_logs
from keptlog.table.io.files import TableFiles
from tests.logs import carry_out
from tests.orchestration.conftest import DAY_MS, NOW_MS, World
from tests.table.receipt_chains import chain_at

AT_ONCE = {"ops": {"delete_retired_files": {"config": {"orphan_grace_ms": 0}}}}
"""A purge that gives orphans no grace."""


def events(world: World, result: dg.ExecuteInProcessResult) -> list[dg.DagsterEvent]:
    """What is left of a run; the result of one that failed lacks what its last step logged."""
    return [entry.dagster_event for entry in world.instance.all_logs(result.run_id) if entry.dagster_event]


def materializations(world: World, result: dg.ExecuteInProcessResult, partition: str) -> list[dict[str, object]]:
    """The numbers that a run left at a topic-partition, oldest first."""
    logged = [event.step_materialization_data for event in events(world, result) if event.is_step_materialization]
    return [
        {name: value.value for name, value in each.materialization.metadata.items()}
        for each in logged
        if each.materialization.partition == partition
    ]


def checks(world: World, result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    """Topic and check to whether it passed."""
    logged = [each for each in events(world, result) if each.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION]
    found = [each.asset_check_evaluation_data for each in logged]
    return {f"{each.asset_key.path[0]} {each.check_name}": each.passed for each in found}


def failed_tag(world: World, result: dg.ExecuteInProcessResult) -> str | None:
    run = world.instance.get_run_by_id(result.run_id)
    return run.tags.get("keptlog/failed") if run else None


def test_one_run_cleans_all_due_logs_of_all_topics(world: World, spark: SparkSession) -> None:
    world.topic("users", 2)
    world.topic("db.s.orders")
    world.append("users", ("a", "1"), ("b", "1"), ("a", "2"))
    world.append("users", ("c", "1"), ("c", "2"), partition=1)
    world.append("db.s.orders", ("x", "1"), ("x", None))

    assert world.clean().success

    assert world.records("users", 0) == [(1, b"b", b"1"), (2, b"a", b"2")]
    assert world.records("users", 1) == [(1, b"c", b"2")]
    assert world.records("db.s.orders") == [(1, b"x", None)]


def test_a_cleaned_log_shows_what_the_clean_did_in_numbers(world: World, spark: SparkSession) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("b", "1"), ("a", "2"), ("b", None))
    world.append("users", ("z", "1"), age_ms=0)

    [log] = materializations(world, world.clean(), "users-0")

    assert isinstance(log["segments_new"], dg.TableMetadataValue)
    [segment] = log["segments_new"].records
    live = world.store.logs("users")[0].segments
    assert segment.data["path"] in [each.path for each in live]
    assert {name: segment.data[name] for name in ("base_offset", "last_offset", "records", "tombstones")} == {
        "base_offset": 2,
        "last_offset": 3,
        "records": 2,
        "tombstones": 1,
    }
    shown = {name: log[name] for name in ("records_in", "records_out", "records_superseded", "tombstones_stamped")}
    assert shown == {"records_in": 4, "records_out": 2, "records_superseded": 2, "tombstones_stamped": 1}
    assert (log["dirty_ratio_before"], log["dirty_ratio_after"]) == (1.0, 0.0)
    assert (log["files_kept"], log["files_rewritten"], log["files_new"], log["offsets_left"]) == (0, 1, 1, 0)
    assert log["oldest_uncompacted"] == NOW_MS / 1000
    assert log.keys() >= {field.name.replace("_", "-") for field in fields(CleanerMetrics)}


def test_a_clean_that_ends_where_its_map_is_full_shows_how_much_is_left(
    world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_CLEANER_IO_BUFFER_LOAD_FACTOR", str(2.01 / (134_217_728 // 24)))
    world.topic("users")
    world.append("users", *((key, "1") for key in "abcde"))

    result = world.clean()

    [log] = materializations(world, result, "users-0")
    assert log["offsets_left"] == 3
    [told] = [
        event.step_materialization_data.materialization.description or ""
        for event in events(world, result)
        if event.is_step_materialization and event.partition == "users-0"
    ]
    assert "; its offset map was full at offset 2, and 5 was to be reached: clean again" in told


def test_the_checks_of_every_guarantee_are_evaluated_on_what_was_stored(world: World, spark: SparkSession) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))

    found = checks(world, world.clean())

    keys = world.defs.resolve_asset_graph().asset_check_keys
    # G8 is about what is not live, and is looked for by those who verify and purge.
    of_topic = [key for key in keys if key.asset_key.path[0] == "users" and not key.name.startswith("G8")]
    assert set(found) == {f"users {key.name}" for key in of_topic}
    assert all(found.values())


def test_a_second_run_finds_nothing_and_commits_nothing(world: World, spark: SparkSession) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    world.clean()
    before = world.store.metadata_locations()

    result = world.clean(requested=True)

    assert result.success
    assert materializations(world, result, "users-0") == []
    assert world.store.metadata_locations() == before


def test_a_log_below_its_dirty_ratio_is_cleaned_only_by_request(world: World, spark: SparkSession) -> None:
    world.topic("users", min_cleanable_dirty_ratio="1")
    world.append("users", ("a", "1"), ("a", "2"))

    assert materializations(world, world.clean(), "users-0") == []
    assert materializations(world, world.clean("users", requested=True), "users-0")[-1]["trigger"] == "requested"


def test_tombstones_expire_without_new_data(world: World, spark: SparkSession) -> None:
    world.topic("users", delete_retention_ms=str(DAY_MS))
    world.append("users", ("a", "1"), ("b", "1"), ("a", None))
    world.clean()
    world.now_ms += DAY_MS

    numbers = materializations(world, world.clean(), "users-0")[-1]

    assert (numbers["trigger"], numbers["tombstones_expired"]) == ("tombstone_expiry", 1)
    assert world.records("users") == [(1, b"b", b"1")]


def test_a_broken_log_is_named_and_all_others_are_cleaned(world: World, spark: SparkSession) -> None:
    for topic in ("good", "broken", "fine"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    world.break_segment("broken")

    result = world.clean()

    assert not result.success
    failure = result.failure_data_for_node("commit")
    assert failure
    assert failure.user_failure_data
    assert (failure.user_failure_data.description or "").startswith("1 not cleaned, 2 cleaned: broken-0: ")
    assert failed_tag(world, result) == "broken-0"
    assert world.records("good") == world.records("fine") == [(1, b"a", b"2")]
    found = checks(world, result)
    assert (found["good cleaned"], found["broken cleaned"]) == (True, False)


def test_a_topic_that_cannot_be_read_stops_no_other(world: World, spark: SparkSession) -> None:
    world.topic("good")
    world.append("good", ("a", "1"), ("a", "2"))
    world.topic("odd")
    table = world.store.load_table("odd")
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()

    result = world.clean()

    assert not result.success
    assert world.records("good") == [(1, b"a", b"2")]
    assert checks(world, result)["odd cleaned"] is False


class InterruptedSpark(LazyPySparkResource):
    """Brings the session after somebody else has cleaned a topic."""

    interrupt: ClassVar[Callable[[], None]]

    @property
    def spark_session(self) -> SparkSession:
        session: SparkSession = super().spark_session
        type(self).interrupt()
        return session


def test_a_stale_plan_of_one_topic_stops_no_other_and_loses_nothing(world: World, spark: SparkSession) -> None:
    for topic in ("contested", "other"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))

    def clean_first() -> None:
        cleaner = open_home(world.path).cleaner(lambda: spark)
        carry_out(cleaner, cleaner.plan(["contested"], now_ms=world.now_ms, requested=True), "somebody-else")

    InterruptedSpark.interrupt = clean_first
    world.more_resources["spark"] = InterruptedSpark(spark_config={})

    result = world.clean()

    assert not result.success
    assert failed_tag(world, result) == "contested-0"
    assert world.records("contested") == world.records("other") == [(1, b"a", b"2")]


def test_purge_deletes_what_a_clean_has_replaced(world: World, spark: SparkSession) -> None:
    world.topic("users", file_delete_delay_ms="0")
    world.append("users", ("a", "1"), ("a", "2"))
    replaced = world.segment_file("users")
    world.clean()
    assert replaced.exists()

    assert world.defs.get_job_def("purge").execute_in_process(instance=world.instance).success

    assert not replaced.exists()
    assert world.records("users") == [(1, b"a", b"2")]


def test_a_purge_names_a_tag_whose_retention_is_over_and_that_it_drops(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"))
    table = world.store.load_table("users")
    current = table.current_snapshot()
    assert current
    table.manage_snapshots().create_tag(current.snapshot_id, "audit", max_ref_age_ms=1).commit()
    result = world.defs.get_job_def("purge").execute_in_process(instance=world.instance)
    [told] = [line for _, line in world.told(result) if "audit" in line]
    assert told == f"users: dropped tag audit, whose retention ended {iso_time(current.timestamp_ms + 1)}"


def test_what_a_purge_could_not_delete_fails_the_run_and_is_named_with_its_receipts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users", file_delete_delay_ms="0")
    location = world.store.describe_topic("users").location
    for name in ("stuck", "other"):
        world.store.files.write_bytes(f"{location}/data/{name}.parquet", b"of a run that died")
    real = TableFiles.delete

    def delete(files: TableFiles, path: str) -> None:
        if path.endswith("stuck.parquet"):
            raise PermissionError(13, "Permission denied")
        real(files, path)

    monkeypatch.setattr(TableFiles, "delete", delete)
    purge = world.defs.get_job_def("purge")
    result = purge.execute_in_process(AT_ONCE, instance=world.instance, raise_on_error=False)

    failure = result.failure_data_for_node("delete_retired_files")
    assert failure
    assert failure.user_failure_data
    named = f"1 not purged: topic users: 1 file could not be deleted: {location}/data/stuck.parquet ("
    assert (failure.user_failure_data.description or "").startswith(named)
    told = [line for _, line in world.told(result)]
    assert any(line.startswith(f"users: not deleted: {location}/data/stuck.parquet: ") for line in told)
    assert any(line.startswith("users: 1 file deleted (18 B), receipt ") for line in told)


def test_a_purge_whose_receipt_can_not_be_sealed_fails_the_run_after_it_has_told_what_is_gone(world: World) -> None:
    """It ended in success, so nobody was told that what is gone can't be proved, as with a topic's deletion."""
    world.topic("users", file_delete_delay_ms="0")
    location = world.store.describe_topic("users").location
    world.store.files.write_bytes(f"{location}/data/orphan.parquet", b"of a run that died")
    key = world.path / "receipts.key"
    key.touch(0o600)

    result = world.run_job("purge", dg.RunRequest(run_config=AT_ONCE))

    failure = result.failure_data_for_node("delete_retired_files")
    assert failure
    assert failure.user_failure_data
    named = "1 not purged, or not sealed: topic users: 1 receipt can't be sealed (InvalidConfig: "
    assert (failure.user_failure_data.description or "").startswith(named)
    assert "users: 1 file deleted (18 B)" in [line for _, line in world.told(result)]
    assert any(name.endswith("G8_gone_in_time") for name in checks(world, result))
    assert OUTAGE_TAG not in world.instance.get_run_by_id(result.run_id).tags  # type: ignore[union-attr]
    key.unlink()
    assert world.run_job("purge", dg.RunRequest(run_config=AT_ONCE)).success
    assert len(list(chain_at(world.path).receipts())) == 1


def test_a_purge_tells_each_topic_once_with_as_many_files_as_its_receipts_count(world: World) -> None:
    """It left manifests out of the number, and not out of the bytes: nobody could account for the rest."""
    world.topic("users", cleanup_policy="delete", file_delete_delay_ms="0")
    world.append("users", ("a", "1"), ("a", "2"))
    world.append("users", ("a", "3"))
    world.store.delete_records(TopicPartition("users", 0), 2, "r")
    world.log_store.retainer.retain(named_logs(world.store), "r", now_ms=world.now_ms)

    result = world.defs.get_job_def("purge").execute_in_process(instance=world.instance)

    (receipt,) = chain_at(world.path).receipts()
    (told,) = [line for _, line in world.told(result) if line.startswith("users: ")]
    files = files_of(receipt)
    assert len(files) > 1
    freed = f"{len(files)} files deleted ({size(bytes_of(files))})"
    assert told == f"users: 2 snapshots expired, {freed}, receipt {receipt.id}"


def test_a_topic_that_cannot_be_purged_fails_the_run_and_stops_no_other(world: World, spark: SparkSession) -> None:
    world.topic("odd")
    world.store.load_table("odd").transaction().set_properties({"log.partitions": "many"}).commit_transaction()
    world.topic("users", file_delete_delay_ms="0")
    world.append("users", ("a", "1"), ("a", "2"))
    replaced = world.segment_file("users")
    assert world.clean("users").success

    result = world.defs.get_job_def("purge").execute_in_process(instance=world.instance, raise_on_error=False)

    assert not result.success
    failure = result.failure_data_for_node("delete_retired_files")
    assert failure
    assert failure.user_failure_data
    assert (failure.user_failure_data.description or "").startswith("1 not purged: topic odd: ")
    assert not replaced.exists()
