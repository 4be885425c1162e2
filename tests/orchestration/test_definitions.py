"""Loading the code location: whatever state the home is in, and in an interpreter that knows nothing yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.resources.log_store import LogStoreResource
from tests.orchestration.conftest import World

ROOT = Path(__file__).parents[2]


OF_A_HOME = {"erasures", "keptlog/health"}


def keys(defs: dg.Definitions) -> set[str]:
    return {spec.key.to_user_string() for spec in defs.resolve_all_asset_specs()}


def run_python(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KEPTLOG_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=600)


def test_every_topic_has_a_dirty_and_a_clean_section_with_a_partition_for_each_log(world: World) -> None:
    world.topic("users", 2)
    world.topic("db.s.orders")

    defs = world.defs

    dg.Definitions.validate_loadable(defs)
    assert keys(defs) == {"users/dirty", "users/clean", "db.s.orders/dirty", "db.s.orders/clean", *OF_A_HOME}
    spec = next(spec for spec in defs.resolve_all_asset_specs() if spec.key == dg.AssetKey(["users", "clean"]))
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey(["users", "dirty"])]
    assert spec.partitions_def
    assert list(spec.partitions_def.get_partition_keys()) == ["users-0", "users-1"]


def test_sensors_run_from_the_start_and_every_clean_is_in_the_pool(world: World) -> None:
    world.topic("users")
    repository = world.defs.get_repository_def()

    names = {"max_compaction_lag_sensor", "dirty_ratio_sensor", "tombstone_expiry_sensor", "erasure_sensor"}
    assert {each.name for each in repository.sensor_defs} >= names
    assert all(repository.get_sensor_def(name).default_status is dg.DefaultSensorStatus.RUNNING for name in names)
    clean = repository.assets_defs_by_key[dg.AssetKey(["users", "clean"])]
    assert clean.op.pool == "log_cleaner"
    assert repository.get_job("clean_logs").get_node_named("compact").definition.pool == "log_cleaner"  # type: ignore[attr-defined]


def test_an_empty_home_loads_says_how_to_begin_and_is_left_empty(tmp_path: Path) -> None:
    home = tmp_path / "home"

    defs = build_defs(LogStoreResource(home=str(home)))

    dg.Definitions.validate_loadable(defs)
    (notice,) = defs.resolve_all_asset_specs()
    assert notice.key == dg.AssetKey(["no_topics_yet"])
    assert "keptlog topic create" in (notice.description or "")
    assert not home.exists()


@pytest.mark.parametrize("breakage", ["the home is a file", "the catalog is garbage", "a broker setting is wrong"])
def test_an_unusable_home_loads_and_says_why(tmp_path: Path, breakage: str) -> None:
    home = tmp_path / "home"
    if breakage == "the home is a file":
        home.write_text("not a folder")
    elif breakage == "the catalog is garbage":
        LogStoreResource(home=str(home / ".." / "home")).store.create_topic("t", 1, {})
        for path in home.glob("*.db"):
            path.write_bytes(b"garbage" * 1000)
    else:
        home.mkdir()
        (home / "server.properties").write_text("log.cleaner.min.cleanable.ratio=much\n")

    result = run_python(
        "import dagster as dg; from keptlog.dagster.orchestration.definitions import defs; loaded = defs()\n"
        "dg.Definitions.validate_loadable(loaded)\n"
        "print(*[(spec.key.to_user_string(), spec.description) for spec in loaded.resolve_all_asset_specs()])",
        home,
    )

    assert result.returncode == 0, result.stderr
    assert "home_unreachable" in result.stdout
    assert str(home) in result.stdout


def test_importing_the_definitions_opens_no_home_and_starts_no_session(tmp_path: Path) -> None:
    result = run_python(
        "import keptlog.dagster.orchestration.definitions, pyspark.sql\n"
        "from keptlog.dagster.resources.log_store import _opened\n"
        "print(len(_opened), pyspark.sql.SparkSession.getActiveSession())",
        tmp_path / "home",
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["0", "None"]
    assert not (tmp_path / "home").exists()


def test_the_shipped_workspace_loads_in_a_fresh_interpreter(world: World) -> None:
    world.topic("users")
    environment = {**os.environ, "KEPTLOG_HOME": str(world.path), "DAGSTER_HOME": str(world.path.parent)}
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]

    result = subprocess.run(
        command, check=False, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600
    )

    assert result.returncode == 0, result.stderr
    assert "keptlog" in result.stderr + result.stdout
