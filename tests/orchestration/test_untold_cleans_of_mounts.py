"""What a run over the assets of two mounts had cleaned is told by the sensor of each, whichever ticks first."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.partitions.definition import StaticPartitionsDefinition

from keptlog.dagster import build_defs
from keptlog.dagster.assets.outage import FAILED_TAG, tell_in_tags
from keptlog.dagster.resources.clock import ClockResource
from tests.erasure.world import World as Cleaning
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.instance import fresh_instance
from tests.orchestration.test_mounts import HOMES, Project
from tests.orchestration.test_siblings import HERE

KEYS = {home: dg.AssetKey([home, "users", "clean"]) for home in HOMES}


class OneAsShipped(Project):
    """The home of sales has no prefix: all keys of the other one begin like its own."""

    @property
    def defs(self) -> dg.Definitions:
        crm, sales = (self.worlds[name] for name in ("crm", "sales"))
        spark = InProcessSpark(spark_config={})
        of_crm = build_defs(
            crm.path, {"spark": spark, "clock": ClockResource(now_ms=crm.now_ms)}, name_prefix="crm", key_prefix="crm"
        )
        of_sales = build_defs(sales.path, {"spark": spark, "clock": ClockResource(now_ms=sales.now_ms)})
        return dg.Definitions.merge(of_crm, of_sales)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Of a topic of the same name in two homes there is something to clean."""
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    with fresh_instance() as instance:
        made = Project({name: World(tmp_path / name, instance) for name in HOMES})
        for world in made.worlds.values():
            # Dagster dates the run.
            world.now_ms = time.time_ns() // 1_000_000
            world.topic("users")
            world.append("users", ("a", "1"), ("a", "2"))
        yield made


def begun(project: Project, instance: dg.DagsterInstance, keys: Mapping[str, dg.AssetKey] = KEYS) -> dg.DagsterRun:
    """A run that somebody has begun for these sections."""
    everything = project.defs.resolve_implicit_global_asset_job_def()
    return instance.create_run_for_job(
        everything.get_subset(asset_selection={*keys.values()}),
        tags={"dagster/partition": "users-0"},
        asset_selection=frozenset(keys.values()),
        status=dg.DagsterRunStatus.STARTED,
        remote_job_origin=HERE,
    )


def cleaned_and_died(
    project: Project, instance: dg.DagsterInstance, keys: Mapping[str, dg.AssetKey] = KEYS
) -> dg.DagsterRun:
    """One that dies once all of them were cleaned."""
    run = begun(project, instance, keys)
    for world in project.worlds.values():
        world.now_ms += 20_000
        Cleaning(world.path, world.now_ms).clean()
        world.reopen()
        world.now_ms += 30_000
    instance.report_run_failed(run)
    return run


def tab(instance: dg.DagsterInstance) -> dict[str, str]:
    """How Dagster shows the log of each home."""
    logs = StaticPartitionsDefinition(["users-0"])
    found = {home: instance.get_status_by_partition(key, ["users-0"], logs) or {} for home, key in KEYS.items()}
    return {home: status.value for home, by_name in found.items() if (status := by_name["users-0"])}


@pytest.mark.parametrize("first", HOMES)
def test_each_mount_tells_its_own(project: Project, first: str) -> None:
    """The tag of the one that ticked first was taken for all: the other's log stayed red, and what is downstream."""
    instance = project.worlds["crm"].instance
    run = cleaned_and_died(project, instance)
    homes = sorted(HOMES, key=lambda home: home != first)

    told = [str(project.tick(f"{home}_failed_run_sensor").skip_reason) for home in homes]

    assert ["told now as cleaned: users-0" in each for each in told] == [True, True]
    assert tab(instance) == dict.fromkeys(HOMES, "MATERIALIZED")
    told = [str(project.tick(f"{home}_failed_run_sensor").skip_reason) for home in homes]
    assert [run.run_id in each for each in told] == [False, False]


def test_so_it_does_where_the_step_of_the_other_mount_has_named_what_failed(project: Project) -> None:
    instance = project.worlds["crm"].instance
    run = cleaned_and_died(project, instance)
    tell_in_tags(instance, run.run_id, {FAILED_TAG: "orders-0"})

    assert "told now as cleaned: users-0" in str(project.tick("sales_failed_run_sensor").skip_reason)

    assert tab(instance)["sales"] == "MATERIALIZED"


@pytest.mark.parametrize("failed", [None, "orders-0"])
def test_so_does_a_home_as_shipped_beside_one_with_a_prefix(project: Project, failed: str | None) -> None:
    both, instance = OneAsShipped(project.worlds), project.worlds["crm"].instance
    keys = {"crm": KEYS["crm"], "sales": dg.AssetKey(["users", "clean"])}
    run = cleaned_and_died(both, instance, keys)
    tell_in_tags(instance, run.run_id, {FAILED_TAG: failed} if failed else {})

    assert "told now as cleaned: users-0" in str(both.tick("failed_run_sensor").skip_reason)

    assert run.run_id not in str(both.tick("failed_run_sensor").skip_reason)


def test_who_has_named_what_failed_of_this_mount_alone_is_not_looked_at(project: Project) -> None:
    instance = project.worlds["crm"].instance
    run = cleaned_and_died(project, instance, {"crm": KEYS["crm"]})
    tell_in_tags(instance, run.run_id, {FAILED_TAG: "users-0"})

    assert run.run_id not in str(project.tick("crm_failed_run_sensor").skip_reason)

    (record,) = instance.get_run_records(dg.RunsFilter(run_ids=[run.run_id]))
    assert not [name for name in record.dagster_run.tags if "marked" in name]


def test_what_the_other_mount_has_named_hides_no_clean_of_this_one_from_while_the_run_went_on(project: Project) -> None:
    instance = project.worlds["crm"].instance
    run = begun(project, instance)
    time.sleep(0.1)  # Dagster dates the run's begin, and its end.
    sales = project.worlds["sales"]
    Cleaning(sales.path, time.time_ns() // 1_000_000).clean()
    sales.reopen()
    time.sleep(0.1)
    instance.report_run_failed(run)
    tell_in_tags(instance, run.run_id, {FAILED_TAG: "users-0"})
    sales.now_ms = time.time_ns() // 1_000_000 + 1_000

    assert "told now as cleaned: users-0" in str(project.tick("sales_failed_run_sensor").skip_reason)

    assert tab(instance) == {"crm": "FAILED", "sales": "MATERIALIZED"}
