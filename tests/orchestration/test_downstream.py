"""What is downstream of a topic begins by itself, although some topic-partitions never had anything to clean."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.loader import LoadingContextForTest
from pyspark.sql import SparkSession

from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.shipped import CLEAN_SENSORS, clean_logs, dirty_ratio_sensor

CLEAN = dg.AssetKey(["users", "clean"])


class Project:
    """Assets downstream, judged as Dagster's daemon does."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cursor: dg.AssetDaemonCursor | None = None
        same = dg.StaticPartitionsDefinition(["users-0", "users-1"])
        eager = dg.AutomationCondition.eager()

        @dg.asset(deps=[CLEAN], automation_condition=eager)
        def report() -> None: ...

        @dg.asset(deps=[CLEAN], automation_condition=eager, partitions_def=same)
        def report_by_partition() -> None: ...

        self.assets: Sequence[dg.AssetsDefinition] = [report, report_by_partition]

    def judge(self) -> dict[str, set[str | None]]:
        """The partitions that are asked for, by asset."""
        defs = dg.Definitions.merge(self.world.defs, dg.Definitions(self.assets))
        result = dg.evaluate_automation_conditions(defs, self.world.instance, cursor=self.cursor)
        self.cursor = result.cursor
        return {each.key.to_user_string(): {*result.get_requested_partitions(each.key)} for each in self.assets}

    def tick(self) -> None:
        for sensor in CLEAN_SENSORS:
            self.world.tick(sensor)

    def launch_what_is_due(self) -> None:
        for request in self.world.requests(dirty_ratio_sensor):
            assert self.world.launch(request).success


def missing(world: World) -> set[str]:
    """The topic-partitions that are grey in the Partitions tab."""
    there = world.instance.get_materialized_partitions(CLEAN)
    return {str(log.topic_partition) for log in world.store.logs("users")} - there


def test_an_eager_asset_begins_although_one_topic_partition_never_had_anything_to_clean(
    world: World, spark: SparkSession
) -> None:
    world.topic("users", 2, min_cleanable_dirty_ratio="0")
    world.append("users", ("a", "1"), ("a", "2"))
    project = Project(world)
    assert project.judge() == {"report": set(), "report_by_partition": set()}

    project.launch_what_is_due()
    project.tick()

    assert missing(world) == set()
    assert project.judge() == {"report": {None}, "report_by_partition": {"users-0", "users-1"}}
    assert project.judge() == {"report": set(), "report_by_partition": set()}, "asked for once"

    world.append("users", ("a", "3"), age_ms=DAY_MS // 2)
    project.launch_what_is_due()
    assert project.judge() == {"report": {None}, "report_by_partition": {"users-0"}}


def test_what_is_downstream_is_out_of_date_after_a_clean_and_not_after_a_look(
    world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clock is weeks ahead of the storage's, and nobody purges: what a clean replaces would be late at once.
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    partitions = dg.StaticPartitionsDefinition(["users-0"])

    @dg.asset(deps=[CLEAN], partitions_def=partitions)
    def state() -> None: ...

    def status() -> StaleStatus:
        defs = dg.Definitions.merge(world.defs, dg.Definitions([state]))
        context = LoadingContextForTest(world.instance)
        resolver = CachingStaleStatusResolver(world.instance, defs.resolve_asset_graph(), context)
        return resolver.get_status(state.key, "users-0")

    def clean(*names: str) -> None:
        assert world.clean(*names, requested=True).success

    world.topic("users", min_cleanable_dirty_ratio="0")
    world.append("users", ("a", "1"), ("a", "2"))
    clean()
    source = dg.AssetSpec(CLEAN, partitions_def=partitions)
    assert dg.materialize([state, source], instance=world.instance, partition_key="users-0", selection=[state]).success
    assert status() is StaleStatus.FRESH

    world.tick(dirty_ratio_sensor)
    clean()
    assert status() is StaleStatus.FRESH, "there was nothing to clean"

    repair = world.break_segment("users")
    assert not world.run_job("verify", dg.RunRequest()).success
    repair()
    assert world.run_job("verify", dg.RunRequest()).success
    assert status() is StaleStatus.FRESH, "it was looked at, and is what it was"

    world.append("users", ("a", "3"))
    clean()
    assert status() is StaleStatus.STALE


def test_what_is_due_in_work_or_broken_is_left_to_its_clean(world: World, spark: SparkSession) -> None:
    world.topic("users", 3, min_cleanable_dirty_ratio="0")
    for partition in (0, 1):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    mend = world.break_segment("users", 1)
    world.tick(dirty_ratio_sensor)
    assert missing(world) == {"users-0", "users-1"}

    assert not world.clean().success
    world.tick(dirty_ratio_sensor)
    assert missing(world) == {"users-1"}, "red, and not green because it is paused"

    mend()
    world.now_ms += HOUR_MS
    assert world.clean(requested=True).success
    assert missing(world) == set()


def test_what_is_told_says_why_and_what_the_log_holds(world: World) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("b", "1"), age_ms=0)
    world.tick(dirty_ratio_sensor)

    told = world.instance.fetch_materializations(CLEAN, limit=5).records
    by_name = {each.partition_key: each.asset_materialization for each in told}

    young, empty = by_name["users-0"], by_name["users-1"]
    assert young
    assert empty
    assert young.description == "looked at, and left as it is: nothing of the log is to be cleaned now"
    assert empty.description == "looked at, and left as it is: the log is empty"
    assert [each.metadata["dagster/partition_row_count"].value for each in (young, empty)] == [2, 0]
    assert young.metadata["dagster/row_count"].value == 2


@pytest.mark.parametrize(
    ("status", "is_told"),
    [
        (dg.DagsterRunStatus.CANCELED, True),
        (dg.DagsterRunStatus.SUCCESS, True),
        (dg.DagsterRunStatus.FAILURE, False),
        (dg.DagsterRunStatus.STARTED, False),
        (dg.DagsterRunStatus.NOT_STARTED, False),
    ],
)
def test_a_log_is_left_to_its_clean_only_while_a_run_is_at_it_or_if_the_run_has_failed(
    world: World, status: dg.DagsterRunStatus, *, is_told: bool
) -> None:
    world.topic("users")
    planned_by(world, world.instance.create_run_for_job(clean_logs, status=status).run_id)

    world.tick(dirty_ratio_sensor)

    assert missing(world) == (set() if is_told else {"users-0"})


def test_a_log_whose_run_was_deleted_is_told(world: World) -> None:
    world.topic("users")
    planned_by(world, "00000000-0000-0000-0000-000000000000")
    world.tick(dirty_ratio_sensor)
    assert missing(world) == set()


def planned_by(world: World, run_id: str) -> None:
    planned = AssetMaterializationPlannedData(CLEAN, partition="users-0")
    event = dg.DagsterEvent.build_asset_materialization_planned_event("clean_logs", "plan", planned)
    world.instance.report_dagster_event(event, run_id)


def test_dagster_is_asked_about_a_topic_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is a query of Dagster's database, for each of thousands of topics."""
    world.topic("users", 2)
    asked: list[dg.AssetKey] = []
    storage = world.instance.event_log_storage
    really = storage.get_materialized_partitions

    def counted(asset_key: dg.AssetKey, *cursors: int) -> set[str]:
        asked.append(asset_key)
        return really(asset_key, *cursors)

    monkeypatch.setattr(storage, "get_materialized_partitions", counted)
    for _ in range(4):
        world.tick(dirty_ratio_sensor)
    assert asked == [CLEAN, CLEAN], "before it is told, and once it was"


def test_what_is_downstream_in_one_run_is_not_skipped(world: World, spark: SparkSession) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    defs = dg.Definitions.merge(world.defs, dg.Definitions(Project(world).assets[1:]))
    keys = {CLEAN, dg.AssetKey("report_by_partition")}
    job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=keys)

    for name in ("users-0", "users-1"):
        result = job.execute_in_process(instance=world.instance, partition_key=name)
        told = [event.asset_key for event in result.get_asset_materialization_events()]
        assert told == [CLEAN, dg.AssetKey("report_by_partition")]
    assert missing(world) == set()
