"""A section that is materialized without a partition, as a job of somebody's own may, says so and touches nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.orchestration.ingesting import IngestWorld, ingest_world


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


@pytest.mark.parametrize("section", ["dirty", "clean"])
def test_a_run_without_a_partition_is_refused_and_told_how_to_name_one(here: IngestWorld, section: str) -> None:
    here.produce("users", ("a", "1"), ("a", "2"))
    here.knows("users", 0, 0, 0, 0)
    graph = here.world.defs.resolve_implicit_global_asset_job_def()
    job = graph.get_subset(asset_selection={dg.AssetKey(["users", section])})
    before = here.world.store.metadata_locations()

    result = job.execute_in_process(instance=here.world.instance, raise_on_error=False)

    told = "no topic-partition is selected: this run has no partition."
    assert told in here.failure(result)
    assert "dagster/partition=users-0" in here.failure(result)
    assert here.world.store.metadata_locations() == before
