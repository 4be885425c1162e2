"""A topic that was deleted and made anew under its name: Dagster does not show what the old one was as what it is."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData
from pyspark.sql import SparkSession

from keptlog.dagster.assets.attempts import last_attempts
from keptlog.dagster.assets.last_results import last_results
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.instance import fail
from tests.orchestration.shipped import clean_logs, dirty_ratio_sensor

CLEAN = dg.AssetKey(["users", "clean"])


def made_anew(world: World) -> None:
    world.store.delete_topic("users", world.now_ms)
    world.topic("users", 2)


def told(world: World) -> list[tuple[str, object]]:
    """What a tick tells of the clean section: of which topic-partitions, and how many records each has."""
    events = [each for each in world.tick(dirty_ratio_sensor).asset_events if each.asset_key == CLEAN]
    made = [each for each in events if isinstance(each, dg.AssetMaterialization)]
    return sorted((each.partition or "", each.metadata["dagster/partition_row_count"].value) for each in made)


def failed(world: World) -> set[str]:
    """The topic-partitions that the Partitions tab shows as failed."""
    return {*last_attempts(world.instance, CLEAN, [dg.DagsterRunStatus.FAILURE])}


@pytest.fixture
def cleaned(world: World, spark: SparkSession) -> World:
    """A home with a topic of which both logs were cleaned, and told to Dagster."""
    world.topic("users", 2)
    for partition in range(2):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    assert world.clean(requested=True).success
    assert told(world) == []
    return world


@pytest.mark.parametrize("is_restarted", [False, True], ids=["seen by one process", "seen by another process"])
def test_its_logs_are_told_as_they_are_and_once(cleaned: World, *, is_restarted: bool) -> None:
    made_anew(cleaned)
    if is_restarted:
        cleaned.reopen()

    assert told(cleaned) == [("users-0", 0), ("users-1", 0)]
    assert told(cleaned) == []
    cleaned.reopen()
    assert told(cleaned) == []


def test_a_log_of_it_that_was_cleaned_before_the_first_look_does_not_hide_the_others(cleaned: World) -> None:
    made_anew(cleaned)
    cleaned.append("users", ("a", "1"), ("a", "2"), age_ms=DAY_MS)
    assert cleaned.clean("users-0", requested=True).success
    cleaned.reopen()

    assert told(cleaned) == [("users-1", 0)]


def test_what_does_not_say_of_which_topic_it_is_counts_as_told(world: World) -> None:
    """An older keptlog has told it, or a run that failed because of other logs."""
    world.topic("users")
    world.instance.report_runless_asset_event(dg.AssetMaterialization(CLEAN, partition="users-0"))

    assert told(world) == []


def test_what_a_verify_has_told_of_the_old_topic_is_not_shown_as_that_of_the_new_one(world: World) -> None:
    world.topic("users", 2)
    assert told(world) == [("users-0", 0), ("users-1", 0)]
    world.append("users", ("a", "1"), partition=1)
    repair = world.break_segment("users", 1)
    assert not world.run_job("verify", dg.RunRequest()).success
    repair()
    assert world.run_job("verify", dg.RunRequest()).success
    made_anew(world)
    world.reopen()

    assert told(world) == [("users-0", 0), ("users-1", 0)]


def test_what_does_not_say_of_which_topic_it_is_counts_as_the_old_ones_if_a_later_one_does(world: World) -> None:
    world.topic("users", 3)
    of_old = {"topic_id": world.store.describe_topic("users").id or ""}
    for partition, metadata in enumerate([of_old, {}, of_old]):
        made = dg.AssetMaterialization(CLEAN, partition=f"users-{partition}", metadata=metadata)
        world.instance.report_runless_asset_event(made)
    world.store.delete_topic("users", world.now_ms)
    world.topic("users", 3)

    assert told(world) == [("users-0", 0), ("users-1", 0), ("users-2", 0)]


def test_what_was_found_of_a_topic_that_could_not_be_read_any_more_is_not_told_of_it(world: World) -> None:
    """Its metadata do not say any more which topic it is; deleting it and making it anew is what mends it."""
    world.topic("users", 2)
    assert world.run_job("verify", dg.RunRequest()).success
    broken = {"log.partitions": "many"}
    world.store.load_table("users").transaction().set_properties(broken).commit_transaction()
    assert not world.run_job("verify", dg.RunRequest()).success
    made_anew(world)
    one_log = {"ops": {"verify_logs": {"config": {"logs": ["users-0"]}}}}
    assert world.run_job("verify", dg.RunRequest(run_config=one_log)).success

    topic_id = world.store.describe_topic("users").id
    assert last_results(world.instance, dg.AssetCheckKey(CLEAN, "cleaned"), topic_id, world.now_ms).keys() == {0}


def test_it_has_not_failed_because_a_clean_of_the_old_one_did(world: World) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    world.break_segment("users")
    assert not world.clean("users-0", requested=True).success
    assert failed(world) == {"users-0"}
    made_anew(world)
    world.reopen()

    assert told(world) == [("users-0", 0), ("users-1", 0)]
    assert failed(world) == set()


def test_it_has_not_failed_because_somebody_materialized_the_old_one_in_vain(world: World) -> None:
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    world.break_segment("users")
    job = world.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={CLEAN})
    assert not job.execute_in_process(
        instance=world.instance, raise_on_error=False, tags={"dagster/partition": "users-0"}
    ).success
    assert failed(world) == {"users-0"}
    made_anew(world)
    world.reopen()

    assert told(world) == [("users-0", 0), ("users-1", 0)]
    assert failed(world) == set()


def test_it_has_not_failed_because_a_verify_found_the_old_one_broken(world: World) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    world.break_segment("users")
    assert not world.run_job("verify", dg.RunRequest()).success
    assert failed(world) == {"users-0"}
    made_anew(world)
    world.reopen()

    assert ("users-0", 0) in told(world)
    assert failed(world) == set()


def test_a_failed_attempt_that_does_not_say_of_which_topic_it_was_counts_as_its_own(world: World) -> None:
    """Dagster plans it, or an older keptlog has."""
    world.topic("users", 2)
    run = world.instance.create_run_for_job(clean_logs, status=dg.DagsterRunStatus.STARTED)
    planned = AssetMaterializationPlannedData(CLEAN, partition="users-0")
    event = dg.DagsterEvent.build_asset_materialization_planned_event("clean_logs", "plan", planned)
    world.instance.report_dagster_event(event, run.run_id)
    fail(world.instance, run)

    assert told(world) == [("users-1", 0)]
