"""With the ``dagster.yaml`` that lies here, what the library logs stands in the log of the run that it happened in."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.orchestration.conftest import World

SETTINGS = Path(__file__).parents[2] / "dagster.yaml"
ORPHAN = b"staged by a run that died"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    logger = logging.getLogger("keptlog")
    level_before = logger.level
    dagster_home = tmp_path / "dagster"
    dagster_home.mkdir()
    shutil.copy(SETTINGS, dagster_home)
    with dg.DagsterInstance.from_config(str(dagster_home)) as instance:
        yield World(tmp_path / "home", instance)
    logger.setLevel(level_before)


def test_a_run_tells_what_the_library_logs_and_nothing_twice(world: World) -> None:
    world.topic("users")
    location = world.store.describe_topic("users").location.removeprefix("file://")
    Path(location, "data").mkdir(exist_ok=True)
    Path(location, "data", "orphan.parquet").write_bytes(ORPHAN)
    journal = Path(location, "metadata", "gc", "of-a-killed-purge.json")
    journal.parent.mkdir()
    journal.write_text('{"snapshots": [], "segments": [], "metadata": []}')
    config = {"ops": {"delete_retired_files": {"config": {"orphan_grace_ms": 0}}}}
    done = world.run_job("purge", dg.RunRequest(run_config=config))
    assert done.success
    carried_out = [text for level, text in world.told(done) if "is carried out" in text and level == "INFO"]
    assert len(carried_out) == 1
    gone = [text for _, text in world.told(done) if text.startswith(("users: ", "topic users: 1 orphan"))]
    assert len(gone) == 1
    assert gone[0].startswith(f"users: 1 file deleted ({len(ORPHAN)} B)")
