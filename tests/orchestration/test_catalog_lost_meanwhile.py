"""The catalog goes away in the middle of a run: what is known is told, and nothing that nobody has looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.orchestration import verify_job
from keptlog.errors import StorageUnavailable
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.orchestration.conftest import World

AWAY = "the catalog is away"
ASKED = ("load_table", "metadata_locations", "topics", "observe", "logs", "describe_topic")
CLEAN = dg.AssetKey(["users", "clean"])


class Catalog:
    """One that answers until it is lost."""

    is_lost = False


@pytest.fixture
def catalog(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    catalog = Catalog()

    def until_lost(name: str) -> None:
        really: Any = getattr(LogStore, name)

        def asked(store: LogStore, *given: object, **named: object) -> object:
            if catalog.is_lost:
                raise StorageUnavailable(AWAY)
            return really(store, *given, **named)

        monkeypatch.setattr(LogStore, name, asked)

    for name in ASKED:
        until_lost(name)
    yield catalog
    catalog.is_lost = False


def lose_after(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    really = getattr(owner, name)

    def called(*given: object, **named: object) -> object:
        result = really(*given, **named)
        catalog.is_lost = True
        return result

    monkeypatch.setattr(owner, name, called)


def told(result: dg.ExecuteInProcessResult, op: str) -> str:
    failure = result.failure_data_for_node(op)
    assert failure
    assert failure.user_failure_data, "Dagster tells an error of its own"
    return failure.user_failure_data.description or ""


def test_materialized_by_hand_what_nobody_could_look_at_after_the_commit_is_not_told_as_whole(
    world: World, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    job = world.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={CLEAN})
    lose_after(catalog, monkeypatch, Cleaner, "commit")
    ends = {"dagster/asset_partition_range_start": "users-0", "dagster/asset_partition_range_end": "users-1"}
    result = job.execute_in_process(instance=world.instance, tags=ends, raise_on_error=False)

    assert not result.success
    assert f"users-1: not looked at since the commit: {AWAY}" in told(result, "users__clean")
    assert world.instance.get_materialized_partitions(CLEAN) == {"users-0"}, "that is what has landed"


def test_the_dirty_ratio_after_a_clean_is_left_out_where_nobody_could_look(
    world: World, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    lose_after(catalog, monkeypatch, Cleaner, "commit")
    (event,) = world.clean().asset_materializations_for_node("commit")
    assert event.metadata["dirty_ratio_before"].value == 1.0
    assert "dirty_ratio_after" not in event.metadata


def test_a_verify_tells_what_it_has_found_although_the_catalog_is_gone_at_its_end(
    world: World, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.break_segment("users")
    lose_after(catalog, monkeypatch, verify_job, "look_at")
    result = world.run_job("verify", dg.RunRequest(run_config={}))

    assert "1 log broken or not looked at: users-0: " in told(result, "verify_logs")
    assert f"this machine: not looked at: {AWAY}" in told(result, "verify_logs")
