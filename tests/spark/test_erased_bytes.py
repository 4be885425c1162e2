"""After ``verified`` no byte of key or value is where Spark and Dagster work: not on disks, not in run storage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from tests.erasure.byte_search import files_with
from tests.erasure.test_bytes import FORMS, NEEDLES
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, SECOND_MS, SETTINGS, VALUE
from tests.orchestration.conftest import World as DagsterWorld
from tests.orchestration.instance import fresh_instance


@pytest.fixture
def with_dagster(tmp_path: Path) -> Iterator[DagsterWorld]:
    """Its storage lies on the disk, below ``instance.root_directory``."""
    with fresh_instance() as instance:
        yield DagsterWorld(tmp_path / "home", instance)


def spark_folders() -> list[Path]:
    return [Path(name) for name in os.environ["SPARK_LOCAL_DIRS"].split(",")]


def run(world: DagsterWorld, job: str, op: str, config: dict[str, Any]) -> None:
    """Run a job of one op, whose run and events Dagster keeps."""
    asked = dg.RunRequest(run_config={"ops": {op: {"config": config}}})
    assert world.run_job(job, asked).success


@pytest.mark.usefixtures("spark")
def test_after_verified_nothing_is_where_spark_and_dagster_work(with_dagster: DagsterWorld, tmp_path: Path) -> None:
    """The jobs of Dagster ask, clean on Spark, purge, and look the files through on Spark."""
    world = with_dagster
    roots = [tmp_path, Path(world.instance.root_directory), *spark_folders()]
    home = open_home(world.path)
    world.store.create_topic("users", 1, SETTINGS)
    records = [NewRecord(OTHER, b"%d" % number, world.now_ms) for number in range(100)]
    world.store.append("users", [NewRecord(KEY, VALUE, world.now_ms), *records], new_id(), world.now_ms)
    assert files_with(roots, [KEY])
    key_hash = home.eraser.hash_of(KEY)
    config = {"topics": ["users"], "key_hashes": [key_hash], "reason": "ticket 5", "id": "r1"}
    run(world, "erase", "ask_for_erasure", config)
    for _ in range(3):
        world.now_ms += 2 * HOUR_MS
        assert world.clean("users-0", requested=True).success
        world.now_ms += SECOND_MS
        run(world, "purge", "delete_retired_files", {"orphan_grace_ms": 0})
    world.now_ms += DAY_MS
    run(world, "verify_erasures", "verify_deleted", {})
    found = home.eraser.list(now_ms=world.now_ms)
    assert [(row.erasure.state, row.blocked) for row in found.rows] == [("verified", ())]
    assert files_with(roots, [key_hash.partition(":")[2].encode()])
    assert files_with(roots, NEEDLES) == []
    assert files_with(roots, [OTHER])
    for root in roots:
        planted = root / "planted.log"
        planted.write_bytes(FORMS["base64"](KEY))
        assert files_with(roots, NEEDLES) == [planted]
        planted.unlink()
