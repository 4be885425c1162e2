"""The first run of a backfill cleans what the others of it still wait to clean, and they need not start."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from pyspark.sql import SparkSession

from keptlog.dagster.assets import sections
from keptlog.dagster.assets.checks import check_specs
from keptlog.dagster.assets.mount import AssetRun
from keptlog.dagster.assets.siblings import TAKEN_BY_TAG, Siblings, take_over
from keptlog.errors import SparkUnavailable
from keptlog.passes.clean import Cleaner, Pass
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.test_attempts import checks

BACKFILL = {"dagster/backfill": "abcdefgh"}
HERE, THERE = (
    RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(name), "__repository__").get_job_origin("__ASSET_JOB")
    for name in ("here", "there")
)
QUEUE = {"module": "dagster.core.run_coordinator", "class": "QueuedRunCoordinator"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with dg.instance_for_test(overrides={"run_coordinator": QUEUE}) as instance:
        yield World(tmp_path / "home", instance)


@pytest.fixture
def three_topics(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    # The clock is weeks ahead of the storage's: what the clean replaces would be late at once.
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    for topic in ("users", "orders", "refunds"):
        world.topic(topic, 3)
        for partition in (0, 2):
            world.append(topic, ("a", "1"), ("a", "2"), partition=partition)
    return world


def tags_of(first: str, last: str) -> dict[str, str]:
    return {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}


def clean_of(topic: str) -> dg.AssetKey:
    return dg.AssetKey([topic, "clean"])


def job_of(world: World, *topics: str) -> dg.JobDefinition:
    selected = {clean_of(topic) for topic in topics}
    return world.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=selected)


def queue(
    world: World,
    *topics: str,
    tags: dict[str, str],
    ours: dg.JobDefinition | None = None,
    place: RemoteJobOrigin = HERE,
) -> str:
    """A run as the backfill's daemon submits it, which waits for the pool."""
    run = world.instance.create_run_for_job(
        ours or job_of(world, *topics),
        tags=tags,
        status=dg.DagsterRunStatus.QUEUED,
        asset_selection=frozenset(map(clean_of, topics)),
        run_config={"execution": {"config": {"in_process": {}}}},
        remote_job_origin=place,
    )
    return run.run_id


def queue_with_checks(world: World, topic: str, *more: dg.AssetCheckKey) -> str:
    """One for which the backfill has selected the checks too: keptlog's, and these."""
    own = {spec.key for spec in check_specs(clean_of(topic))}
    run = dg.DagsterRun(
        job_name="__ASSET_JOB",
        tags=BACKFILL | tags_of(f"{topic}-0", f"{topic}-2"),
        status=dg.DagsterRunStatus.QUEUED,
        asset_selection=frozenset([clean_of(topic)]),
        asset_check_selection=frozenset(own.union(more)),
        remote_job_origin=HERE,
    )
    return world.instance.run_storage.add_run(run).run_id


def run_one(world: World, topic: str, tags: dict[str, str]) -> dg.ExecuteInProcessResult:
    return job_of(world, topic).execute_in_process(instance=world.instance, tags=tags, raise_on_error=False)


def status(world: World, run_id: str) -> dg.DagsterRunStatus:
    run = world.instance.get_run_by_id(run_id)
    assert run
    return run.status


def materialized(world: World, topic: str) -> set[str]:
    return set(world.instance.get_materialized_partitions(clean_of(topic)))


def test_one_run_cleans_any_selection_and_ends_the_others(three_topics: World, spark: SparkSession) -> None:
    world = three_topics
    orders = queue(world, "orders", tags=BACKFILL | tags_of("orders-0", "orders-1"))
    refunds = queue(world, "refunds", tags=BACKFILL | {"dagster/partition": "refunds-2"})

    result = run_one(world, "users", BACKFILL | tags_of("users-0", "users-2"))

    assert result.success
    assert {status(world, run_id) for run_id in (orders, refunds)} == {dg.DagsterRunStatus.SUCCESS}
    kept = {topic: [len(world.records(topic, n)) for n in range(3)] for topic in ("users", "orders", "refunds")}
    assert kept == {"users": [1, 0, 1], "orders": [1, 0, 2], "refunds": [2, 0, 1]}
    assert materialized(world, "users") == {"users-0", "users-1", "users-2"}
    assert materialized(world, "orders") == {"orders-0", "orders-1"}
    assert materialized(world, "refunds") == {"refunds-2"}
    evaluated = {each.asset_key for each in result.get_asset_check_evaluations() if each.passed}
    assert evaluated == {clean_of(topic) for topic in ("users", "orders", "refunds")}
    assert {event.asset_key for event in result.get_asset_materialization_events()} == evaluated


def test_what_could_not_be_cleaned_stays_with_its_own_run(three_topics: World, spark: SparkSession) -> None:
    world = three_topics
    orders = queue(world, "orders", tags=BACKFILL | tags_of("orders-0", "orders-2"))
    refunds = queue(world, "refunds", tags=BACKFILL | tags_of("refunds-0", "refunds-2"))
    world.break_segment("orders", 2)

    assert run_one(world, "users", BACKFILL | tags_of("users-0", "users-2")).success

    assert status(world, refunds) is dg.DagsterRunStatus.SUCCESS
    assert status(world, orders) is dg.DagsterRunStatus.QUEUED
    assert materialized(world, "orders") == {"orders-0", "orders-1"}
    assert len(world.records("orders", 0)) == 1


def test_a_run_that_fails_itself_ends_the_others_all_the_same(three_topics: World, spark: SparkSession) -> None:
    world = three_topics
    orders = queue(world, "orders", tags=BACKFILL | tags_of("orders-0", "orders-1"))
    world.break_segment("users", 0)

    assert not run_one(world, "users", BACKFILL | tags_of("users-0", "users-2")).success

    assert status(world, orders) is dg.DagsterRunStatus.SUCCESS
    assert materialized(world, "orders") == {"orders-0", "orders-1"}
    assert materialized(world, "users") == {"users-1", "users-2"}


def test_other_backfills_and_runs_that_do_more_are_left_alone(three_topics: World, spark: SparkSession) -> None:
    world = three_topics
    left = [
        queue(world, "orders", tags={"dagster/backfill": "another"} | tags_of("orders-0", "orders-2")),
        queue(world, "orders", tags=tags_of("orders-0", "orders-2")),
        queue(world, "orders", "refunds", tags=BACKFILL),
    ]

    assert run_one(world, "users", BACKFILL | tags_of("users-0", "users-2")).success

    assert {status(world, run_id) for run_id in left} == {dg.DagsterRunStatus.QUEUED}
    assert [len(world.records("orders", n)) for n in (0, 2)] == [2, 2]


def test_a_run_of_another_home_that_has_a_topic_of_the_same_name_is_left_alone(
    three_topics: World, spark: SparkSession
) -> None:
    """A backfill may have runs of several code locations, and each cleans its own home."""
    world = three_topics
    theirs = queue(world, "orders", tags=BACKFILL | tags_of("orders-0", "orders-2"), place=THERE)
    ours = queue(world, "refunds", tags=BACKFILL | tags_of("refunds-0", "refunds-2"))
    users = queue(world, "users", tags=BACKFILL | tags_of("users-0", "users-2"))

    world.instance.report_dagster_event(event_of(DagsterEventType.PIPELINE_STARTING), users)
    run = world.instance.get_run_by_id(users)
    assert run
    execute_run(InMemoryJob(job_of(world, "users")), run, world.instance)

    assert status(world, ours) is dg.DagsterRunStatus.SUCCESS
    assert status(world, theirs) is dg.DagsterRunStatus.QUEUED
    assert [len(world.records("orders", n)) for n in (0, 2)] == [2, 2]


@pytest.mark.parametrize("broken", [(), (1,)], ids=["all is whole", "a log is broken"])
def test_checks_are_shown_as_found_though_a_run_of_the_same_topic_was_made_later_and_taken_over(
    three_topics: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, broken: tuple[int, ...]
) -> None:
    """As Dagster's daemon does it: a backfill with gaps becomes several runs, of which each has planned the checks."""
    world = three_topics
    for partition in broken:
        world.append("users", ("a", "1"), partition=partition)
        world.break_segment("users", partition)
        assert not world.run_job("verify", dg.RunRequest()).success
    later: list[str] = []

    def made_later(run: AssetRun) -> Siblings:
        later.append(queue(world, "users", tags=BACKFILL | {"dagster/partition": "users-2"}))
        return take_over(run)

    monkeypatch.setattr(sections, "take_over", made_later)
    assert run_one(world, "users", BACKFILL | {"dagster/partition": "users-0"}).success
    assert status(world, later[0]) is dg.DagsterRunStatus.SUCCESS

    found = checks(world)
    assert len(found) == len(check_specs(clean_of("users")))
    assert found["G1"][0] == ("red" if broken else "green")


@dg.asset_check(asset=clean_of("orders"))
def no_order_is_negative() -> dg.AssetCheckResult:
    """A project's own."""
    return dg.AssetCheckResult(passed=True)


def test_runs_that_make_a_check_of_a_projects_own_are_left_to_make_it(three_topics: World, spark: SparkSession) -> None:
    world = three_topics
    defs = dg.Definitions.merge(world.defs, dg.Definitions(asset_checks=[no_order_is_negative]))
    ours = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={clean_of("orders")})
    unselected = queue(world, "orders", tags=BACKFILL | tags_of("orders-0", "orders-1"), ours=ours)
    selected = queue_with_checks(world, "orders", *no_order_is_negative.check_keys)
    refunds = queue_with_checks(world, "refunds")

    assert run_one(world, "users", BACKFILL | tags_of("users-0", "users-2")).success

    assert {status(world, run_id) for run_id in (unselected, selected)} == {dg.DagsterRunStatus.QUEUED}
    assert status(world, refunds) is dg.DagsterRunStatus.SUCCESS


def test_a_run_that_starts_although_it_was_taken_waits_for_its_taker(three_topics: World, spark: SparkSession) -> None:
    world = three_topics
    taker = queue(world, "orders", tags=BACKFILL)
    world.instance.report_dagster_event(event_of(DagsterEventType.PIPELINE_START), taker)
    seen: list[int] = []

    def end_it() -> None:
        seen.append(len(world.records("users", 0)))
        world.instance.report_dagster_event(event_of(DagsterEventType.PIPELINE_SUCCESS), taker)

    timer = threading.Timer(2, end_it)
    timer.start()
    result = run_one(world, "users", BACKFILL | tags_of("users-0", "users-0") | {TAKEN_BY_TAG: taker})
    timer.join()

    assert result.success
    assert seen == [2], "nothing was done before the other run had ended"
    assert len(world.records("users", 0)) == 1


def carry_out(world: World, *topics: str) -> list[str]:
    """A backfill of these topics, run by run with the tags that others have given it; which were carried out."""
    runs = {topic: queue(world, topic, tags=BACKFILL | tags_of(f"{topic}-0", f"{topic}-0")) for topic in topics}
    carried_out = []
    for topic, run_id in runs.items():
        run = world.instance.get_run_by_id(run_id)
        assert run
        if run.status is dg.DagsterRunStatus.QUEUED:
            world.instance.report_run_canceled(run)  # it leaves the queue
            run_one(world, topic, dict(run.tags))
            carried_out.append(topic)
    return carried_out


def worked_on(monkeypatch: pytest.MonkeyPatch, poison: str, death: BaseException) -> list[str]:
    """What each pass from now on has tried to clean; one that cleans this topic dies."""
    passes: list[str] = []
    really = Cleaner.stage

    def stage(cleaner: Cleaner, planned: Pass, **options: Any) -> Pass:
        topics = sorted({step.topic_partition.topic for step in planned.plan.steps})
        passes.append(", ".join(topics))
        if poison in topics:
            raise death
        return really(cleaner, planned, **options)

    monkeypatch.setattr(Cleaner, "stage", stage)
    return passes


def test_a_log_that_kills_its_run_costs_the_other_runs_of_the_backfill_nothing(
    three_topics: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = three_topics
    passes = worked_on(monkeypatch, "refunds", SystemExit(9))

    assert carry_out(world, "users", "orders", "refunds") == ["users", "orders", "refunds"]

    assert passes == ["orders, refunds, users", "orders", "refunds"]
    assert [len(world.records("orders", n)) for n in (0, 2)] == [1, 2]
    assert materialized(world, "orders") == {"orders-0"}
    assert len(world.records("refunds", 0)) == 2


def test_after_an_outage_the_next_run_takes_the_others_once_more_and_none_a_third_time(
    three_topics: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log may be what ends Spark each time."""
    world = three_topics
    world.topic("visits", 1)
    world.append("visits", ("a", "1"), ("a", "2"))
    passes = worked_on(monkeypatch, "refunds", SparkUnavailable("Spark has lost all of its executors"))

    carry_out(world, "users", "orders", "refunds", "visits")

    assert passes == ["orders, refunds, users, visits", "orders, refunds, visits", "refunds", "visits"]
    assert len(world.records("visits", 0)) == 1


def test_what_a_run_that_is_under_way_has_taken_is_taken_by_no_other(three_topics: World, spark: SparkSession) -> None:
    world = three_topics
    taker = queue(world, "users", tags=BACKFILL)
    world.instance.report_dagster_event(event_of(DagsterEventType.PIPELINE_START), taker)
    orders = queue(world, "orders", tags=BACKFILL | tags_of("orders-0", "orders-2") | {TAKEN_BY_TAG: taker})

    assert run_one(world, "refunds", BACKFILL | tags_of("refunds-0", "refunds-2")).success

    assert status(world, orders) is dg.DagsterRunStatus.QUEUED
    assert [len(world.records("orders", n)) for n in (0, 2)] == [2, 2]


def event_of(kind: DagsterEventType) -> DagsterEvent:
    return DagsterEvent(kind.value, "__ASSET_JOB", message="")
