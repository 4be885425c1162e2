"""A run of a home that is away, its disk not mounted, says that: nothing is done, nothing gone and nothing deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from tests.orchestration.conftest import DAY_MS
from tests.orchestration.erasing import KEY, SETTINGS, ask
from tests.orchestration.ingesting import IngestWorld, ingest_world
from tests.orchestration.shipped import DEADLINE_CHECK

HASH = f"{'0' * 16}:{'0' * 64}"
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "a clean of what is due": ("clean_logs", {}),
    "a clean by name": ("clean_logs", {"plan": {"logs": ["users-0"]}}),
    "a retention": ("retention", {}),
    "a retention by name": ("retention", {"remove_old_segments": {"logs": ["users-0"]}}),
    "a purge by name": ("purge", {"delete_retired_files": {"topics": ["users"]}}),
    "a verify by name": ("verify", {"verify_logs": {"logs": ["users-0"]}}),
    "an ingest": ("ingest_kafka", {}),
    "an ingest by name": ("ingest_kafka", {"ingest": {"topic_partitions": ["users-0"]}}),
    "a new erasure": ("erase", {"ask_for_erasure": {"topics": ["users"], "key_hashes": [HASH]}}),
    "a verification of erasures": ("verify_erasures", {}),
}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    """Its topic is ingested and has an open erasure; ``away`` takes the home from under the graph that Dagster has."""
    with ingest_world(tmp_path / "home") as made:
        world = made.world
        made.produce("profiles", ("a", "1"))
        made.knows("profiles", 0, 0, 0, 0)
        world.topic("users", 1, **SETTINGS)
        world.append("users", (KEY, "1"))
        ask(world, by_ms=DAY_MS)
        yield made


def away(here: IngestWorld) -> dg.Definitions:
    """The graph as it was, over a home that a process which is started now does not find."""
    defs = here.world.defs
    here.world.path.rename(here.world.path.with_name("elsewhere"))
    here.world.reopen()
    return defs


def says(here: IngestWorld, result: dg.ExecuteInProcessResult) -> str:
    assert result.get_asset_check_evaluations() == []
    assert not result.get_asset_materialization_events()
    assert not here.world.path.exists(), "something was made in its place"
    return here.failure(result)


@pytest.mark.parametrize("what", JOBS)
def test_a_job_fails_and_says_that_the_home_is_not_there(here: IngestWorld, what: str) -> None:
    name, ops = JOBS[what]
    job = away(here).get_job_def(name)
    config = {"ops": {op: {"config": given} for op, given in ops.items()}}

    result = job.execute_in_process(run_config=config, instance=here.world.instance, raise_on_error=False)

    assert f"there is no home at {here.world.path}" in says(here, result)


@pytest.mark.parametrize("path", [("users", "clean"), ("profiles", "dirty"), ("erasures",)])
def test_an_asset_fails_and_says_that_the_home_is_not_there(here: IngestWorld, path: tuple[str, ...]) -> None:
    graph = away(here).resolve_implicit_global_asset_job_def()
    job = graph.get_subset(asset_selection={dg.AssetKey(path)})
    tags = {"dagster/partition": f"{path[0]}-0"} if path[1:] else {}

    result = job.execute_in_process(tags=tags, instance=here.world.instance, raise_on_error=False)

    told = says(here, result)
    assert f"there is no home at {here.world.path}" in told
    assert "deleted" not in told


def test_the_check_of_deadlines_is_not_passed_for_a_home_that_nobody_has_seen(here: IngestWorld) -> None:
    graph = away(here).resolve_implicit_global_asset_job_def()
    job = graph.get_subset(asset_selection={DEADLINE_CHECK.asset_key})

    job.execute_in_process(instance=here.world.instance, raise_on_error=False)

    storage = here.world.instance.event_log_storage
    results = storage.get_asset_check_execution_history(DEADLINE_CHECK, limit=5)
    assert "SUCCEEDED" not in [record.status.value for record in results]


def test_an_asset_downstream_fails_and_says_that_the_home_is_not_there(here: IngestWorld) -> None:
    @dg.asset(ins={"users": dg.AssetIn(["users", "clean"])})
    def downstream(users: pa.Table) -> None:
        raise AssertionError(users)

    defs = dg.Definitions.merge(away(here), dg.Definitions([downstream]))
    job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={dg.AssetKey("downstream")})

    result = job.execute_in_process(instance=here.world.instance, raise_on_error=False)

    assert f"there is no home at {here.world.path}" in says(here, result)
