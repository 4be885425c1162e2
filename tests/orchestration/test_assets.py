"""Topics as assets: materialized by hand, with partitions, and checked on what is stored."""

from __future__ import annotations

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from tests.orchestration.conftest import DAY_MS, World


def materialize(world: World, topic: str, first: str, last: str) -> dg.ExecuteInProcessResult:
    """What the button in the UI does for a range of partitions."""
    job = world.defs.resolve_implicit_global_asset_job_def()
    return job.get_subset(asset_selection={dg.AssetKey([topic, "clean"])}).execute_in_process(
        instance=world.instance,
        raise_on_error=False,
        tags={"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last},
    )


def materialized(world: World, topic: str) -> set[str]:
    return set(world.instance.get_materialized_partitions(dg.AssetKey([topic, "clean"])))


def test_materializing_partitions_cleans_those_and_no_others(world: World, spark: SparkSession) -> None:
    world.topic("users", 3)
    for partition in range(3):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)

    assert materialize(world, "users", "users-0", "users-1").success

    assert [len(world.records("users", partition)) for partition in range(3)] == [1, 1, 2]
    assert materialized(world, "users") == {"users-0", "users-1"}


def test_a_partition_with_nothing_to_clean_is_marked_and_checked(world: World, spark: SparkSession) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))

    result = materialize(world, "users", "users-0", "users-1")

    assert result.success
    assert materialized(world, "users") == {"users-0", "users-1"}
    last = world.instance.fetch_materializations(dg.AssetKey(["users", "clean"]), limit=2).records
    said = {each.partition_key: each.asset_materialization.metadata for each in last if each.asset_materialization}
    assert said["users-0"]["records_superseded"].value == 1
    assert "1 superseded" in str(said["users-0"]["done"].value)
    assert (said["users-1"]["done"].value, said["users-1"]["dagster/partition_row_count"].value) == (
        "looked at, and left as it is: empty: nothing was ever appended",
        0,
    )
    assert {
        each.metadata["checked"].value for each in result.get_asset_check_evaluations() if each.check_name != "cleaned"
    } == {2}


def test_a_materialization_by_hand_asks_neither_ratio_nor_lag(world: World, spark: SparkSession) -> None:
    world.topic("users", min_cleanable_dirty_ratio="1")
    world.append("users", ("a", "1"), ("a", "2"))

    assert materialize(world, "users", "users-0", "users-0").success

    assert world.records("users") == [(1, b"a", b"2")]


def test_a_broken_log_fails_the_run_and_its_check_and_cleans_the_rest(
    world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clock is weeks ahead of the storage's: what the clean replaces would be late at once.
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    world.topic("users", 2)
    for partition in range(2):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    world.break_segment("users", 1)

    result = materialize(world, "users", "users-0", "users-1")

    assert not result.success
    told = world.instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    evaluations = [
        evaluation
        for each in told
        if (evaluation := each.get_dagster_event().asset_check_evaluation_data).severity is dg.AssetCheckSeverity.ERROR
    ]
    broken = {each.check_name: each.description for each in evaluations if not each.passed}
    assert set(broken) == {"G1_one_record_a_key", "cleaned"}
    assert (broken["cleaned"] or "").startswith("users-1: ")
    assert materialized(world, "users") == {"users-0"}


def test_an_empty_range_of_partitions_is_refused_and_not_taken_for_all(world: World, spark: SparkSession) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))

    assert not materialize(world, "users", "users-1", "users-0").success

    assert len(world.records("users")) == 2


def test_topics_that_differ_only_by_dots_hyphens_and_underscores_stand_side_by_side(
    world: World, spark: SparkSession
) -> None:
    for topic in ("a-b", "a_b", "a.b", "db.s.t"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))

    for topic in ("a-b", "a_b", "a.b", "db.s.t"):
        assert materialize(world, topic, f"{topic}-0", f"{topic}-0").success
        assert world.records(topic) == [(1, b"a", b"2")]

    groups = {spec.key.path[0]: spec.group_name for spec in world.defs.resolve_all_asset_specs()}
    assert (groups["a_b"], groups["a.b"], groups["db.s.t"]) == ("a_b", "a/b", "db/s/t")
    del groups["erasures"], groups["keptlog"]
    assert len(set(groups.values())) == 4
