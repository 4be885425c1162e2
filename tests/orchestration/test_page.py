"""docs/dagster.md: the projects and the component that it shows load as they stand there, and do what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing.utils import create_defs_folder_sandbox
from pyspark.sql import SparkSession

from keptlog.dagster import build_defs
from tests.orchestration.conftest import World
from tests.orchestration.test_mounts import spec_of

PAGE = (Path(__file__).parents[2] / "docs" / "dagster.md").read_text(encoding="utf-8")


def shown(kind: str) -> str:
    blocks = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert blocks
    return "\n".join(blocks)


def test_the_project_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for home in ("crm-home", "sales-home"):
        World(tmp_path / home, dg.DagsterInstance.ephemeral()).topic("orders")
    made: dict[str, Any] = {}

    exec(shown("python project"), made)  # noqa: S102  # it is what the page tells its readers to run

    dg.Definitions.validate_loadable(made["defs"])
    assert spec_of(made["defs"], "crm", "orders", "clean")
    assert spec_of(made["defs"], "sales", "orders", "clean")
    translated = build_defs("crm-home", translator=made["OurTranslator"]())
    assert spec_of(translated, "orders", "clean").tags["policy"] == "compact"


def test_what_is_downstream_reads_the_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path / "crm-home", dg.DagsterInstance.ephemeral())
    world.topic("users", 2)
    world.append("users", ("ada", "a@old.org"), ("ada", "a@new.org"), ("bob", "b@new.org"), ("eve", None))
    made: dict[str, Any] = {}

    exec(shown("python downstream"), made)  # noqa: S102  # it is what the page tells its readers to run

    assets = dg.AssetSelection.assets("domains", "contacts", "longest", "for_spark")
    job = (
        made["defs"]
        .resolve_implicit_global_asset_job_def()
        .get_subset(asset_selection=assets.resolve(made["defs"].resolve_asset_graph()))
    )
    assert job.execute_in_process(instance=world.instance).success
    printed = capfd.readouterr().out
    assert "old.org" not in printed
    for told in ("new.org", "┆ 2 ", "2\n", "9 │", "|a@new.org|"):
        assert told in printed, told


def test_the_component_loads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topic("crm.users")
    monkeypatch.setenv("CRM_HOME", str(world.path))
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / "crm"
        folder.mkdir()
        (folder / "defs.yaml").write_text(shown("yaml component"))

        with sandbox.load_component_and_build_defs(folder) as (_, defs):
            clean = spec_of(defs, "crm", "crm.users", "clean")

    assert (list(clean.owners), clean.tags["topic"], clean.group_name) == (["team:crm"], "crm.users", "crm/crm")
