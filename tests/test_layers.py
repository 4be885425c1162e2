"""The layers hold, and the contracts that say so would notice if they did not.

The contracts are in ``pyproject.toml``; ``lint-imports`` shows them. Here they are also broken on purpose, in a copy of
the sources, because a contract that can't fail protects nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import import_picture

ROOT = Path(__file__).parents[1]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a copy of the sources, in an interpreter of its own that finds only them."""
    return subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()", "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def sources_in(folder: Path) -> Path:
    """A folder that has got a copy of the sources."""
    shutil.copytree(ROOT / "keptlog", folder / "keptlog", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_picture_of_what_imports_what_is_true() -> None:
    """After a change: python scripts/import_picture.py."""
    assert import_picture.PICTURE.read_text(encoding="utf-8") == import_picture.drawn()


def test_every_layer_imports_only_what_lies_below_it() -> None:
    outcome = lint_imports(ROOT)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


DOWN = "Inside the library, imports only go down"
PURE = "The rules of the log need nothing but Python"
KERNELS = "The kernels take and give Arrow, and know neither table nor Spark"
ENGINE = "The engine is driven through its protocol, and knows neither table nor Spark"
RECEIPTS = "Receipts are checked by whoever has their files, without a home"
CRYPTOGRAPHY = "Only keptlog.receipts imports cryptography"
PASSES = "The passes decide, and leave Spark, Iceberg, Dagster and the command line to others"
LOG = "Inside the rules, imports only go down"
INSIDE_PASSES = "Inside the passes, imports only go down"
TABLE = "Inside the table, imports only go down"
ICEBERG = "Only keptlog.table imports PyIceberg"
SPARK = "Only keptlog.spark imports PySpark"
DAGSTER = "Only keptlog.dagster imports Dagster"
YAML = "Only keptlog.topics_file imports PyYAML"
RESIDENT = "Who hands a command over imports nothing but Python"
ASSETS = "Jobs know assets, assets know resources"

WRONG_IMPORTS = [
    ("keptlog/errors.py", "from keptlog.log import record", DOWN),
    ("keptlog/resident/place.py", "import keptlog.errors", DOWN),
    ("keptlog/resident/handover.py", "import click", RESIDENT),
    ("keptlog/log/verdict.py", "import pyspark", PURE),
    ("keptlog/log/verdict.py", "import pyspark", SPARK),
    ("keptlog/log/plan.py", "import pyarrow", PURE),
    ("keptlog/log/plan.py", "import keptlog.log.told.explain", LOG),
    ("keptlog/log/words/counted.py", "import keptlog.log.segment", LOG),
    ("keptlog/log/plan.py", "from keptlog.storage import schema", DOWN),
    ("keptlog/storage/schema.py", "import pyiceberg", ICEBERG),
    ("keptlog/storage/schema.py", "import keptlog.kernels.judge", DOWN),
    ("keptlog/storage/schema.py", "import keptlog.receipts.receipt", DOWN),
    ("keptlog/storage/schema.py", "import cryptography", CRYPTOGRAPHY),
    ("keptlog/receipts/receipt.py", "import keptlog.storage.files", DOWN),
    ("keptlog/receipts/receipt.py", "import pyarrow", RECEIPTS),
    ("keptlog/receipts/receipt.py", "import pyiceberg", RECEIPTS),
    ("keptlog/kafka_client/settings.py", "import keptlog.engine.tasks", DOWN),
    ("keptlog/topics_file/nodes.py", "import keptlog.table.metadata.state", DOWN),
    ("keptlog/settings.py", "import yaml", YAML),
    ("keptlog/kernels/judge.py", "import pyspark", KERNELS),
    ("keptlog/kernels/judge.py", "import pyiceberg", KERNELS),
    ("keptlog/kernels/judge.py", "import dagster", KERNELS),
    ("keptlog/kernels/judge.py", "import keptlog.table.io.files", KERNELS),
    ("keptlog/kernels/judge.py", "import keptlog.spark", KERNELS),
    ("keptlog/kernels/judge.py", "import keptlog.engine.tasks", KERNELS),
    ("keptlog/engine/engine.py", "import pyspark", ENGINE),
    ("keptlog/engine/engine.py", "import pyiceberg", ENGINE),
    ("keptlog/engine/engine.py", "import dagster", ENGINE),
    ("keptlog/engine/engine.py", "import keptlog.table", DOWN),
    ("keptlog/table/store.py", "import keptlog.spark", DOWN),
    ("keptlog/table/commits/commit.py", "import keptlog.table.store", TABLE),
    ("keptlog/table/metadata/state.py", "import keptlog.table.catalogs.catalog", TABLE),
    ("keptlog/table/store.py", "import pyspark", SPARK),
    ("keptlog/table/store.py", "import keptlog.passes.clean", DOWN),
    ("keptlog/spark/jobs.py", "import keptlog.table.store", DOWN),
    ("keptlog/sources/files.py", "import keptlog.table.store", DOWN),
    ("keptlog/sinks/new_file.py", "import keptlog.sources.files", DOWN),
    ("keptlog/notify/memory.py", "import keptlog.table.store", DOWN),
    ("keptlog/ingest/kafka_logs.py", "import keptlog.passes.clean", DOWN),
    ("keptlog/passes/clean.py", "import keptlog.ingest.ingest_pass", DOWN),
    ("keptlog/passes/clean.py", "import keptlog.passes.doctor.this_machine", INSIDE_PASSES),
    ("keptlog/passes/clean.py", "import pyspark", PASSES),
    ("keptlog/passes/clean.py", "import pyiceberg", PASSES),
    ("keptlog/passes/clean.py", "import dagster", PASSES),
    ("keptlog/passes/clean.py", "import dagster", DAGSTER),
    ("keptlog/passes/clean.py", "import click", PASSES),
    ("keptlog/passes/clean.py", "import keptlog.spark.session", PASSES),
    ("keptlog/home.py", "import keptlog.dagster", DOWN),
    ("keptlog/cli/passes.py", "import keptlog.dagster", DOWN),
    ("keptlog/dagster/resources/__init__.py", "import keptlog.dagster.assets", ASSETS),
    ("keptlog/dagster/assets/__init__.py", "import keptlog.dagster.orchestration", ASSETS),
]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is told of each broken contract, once all wrong imports are there: a look at the sources takes a second."""
    sources = sources_in(tmp_path_factory.mktemp("broken"))
    for module, line in dict.fromkeys((module, line) for module, line, _ in WRONG_IMPORTS):
        with (sources / module).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    outcome = lint_imports(sources)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    told = outcome.stdout.partition("Broken contracts")[2]
    title, *rest = re.split(r"^(.+)\n-{4,}$", told, flags=re.MULTILINE)
    assert not title.strip(" \n-")
    return dict(zip(rest[::2], rest[1::2], strict=True))


@pytest.mark.parametrize(("module", "line", "contract"), WRONG_IMPORTS)
def test_an_import_in_the_wrong_direction_breaks_the_contract(
    broken: dict[str, str], module: str, line: str, contract: str
) -> None:
    importer = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    imported = line.removeprefix("from ").removeprefix("import ").replace(" import ", ".")
    [told] = [told for title, told in broken.items() if title.startswith(contract)]
    assert re.search(rf"^- +{re.escape(f'{importer} -> {imported}')} \(l\.\d+\)$", told, re.MULTILINE), told


def test_every_folder_of_the_library_is_tried() -> None:
    tried = {Path(module).parent for module, _, _ in WRONG_IMPORTS}
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "keptlog").glob("*/__init__.py")}
    assert folders - tried <= {Path("keptlog/dagster")}


def test_a_module_that_has_no_layer_is_noticed(tmp_path: Path) -> None:
    sources = sources_in(tmp_path)
    (sources / "keptlog" / "utilities.py").write_text('"""Anything."""\n', encoding="utf-8")
    outcome = lint_imports(sources)
    assert outcome.returncode == 1
    assert "utilities" in outcome.stdout
