"""The layers hold, and the contracts that say so would notice if they did not.

The contracts are in ``pyproject.toml``; ``lint-imports`` shows them. Here they are also broken on purpose, in a copy of
the sources, because a contract that can't fail protects nothing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "keptlog", tmp_path / "keptlog", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_layer_imports_only_what_lies_below_it() -> None:
    outcome = lint_imports(ROOT)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("keptlog/log/verdict.py", "import pyspark", "The rules of the log need nothing but Python"),
        ("keptlog/log/verdict.py", "import pyspark", "Only keptlog.spark imports PySpark"),
        ("keptlog/log/plan.py", "import pyarrow", "The rules of the log need nothing but Python"),
        ("keptlog/log/plan.py", "from keptlog.storage import schema", "Inside the library, imports only go down"),
        ("keptlog/errors.py", "from keptlog.log import record", "Inside the library, imports only go down"),
        ("keptlog/storage/schema.py", "import pyiceberg", "Only keptlog.table imports PyIceberg"),
        ("keptlog/engine/engine.py", "import keptlog.table", "Inside the library, imports only go down"),
        ("keptlog/engine/engine.py", "import pyiceberg", "Only keptlog.table imports PyIceberg"),
        ("keptlog/table/store.py", "import keptlog.spark", "Inside the library, imports only go down"),
        ("keptlog/table/store.py", "import pyspark", "Only keptlog.spark imports PySpark"),
        ("keptlog/table/store.py", "import keptlog.passes.clean", "Inside the library, imports only go down"),
        ("keptlog/passes/clean.py", "import dagster", "Only keptlog.dagster imports Dagster"),
        ("keptlog/home.py", "import keptlog.dagster", "Inside the library, imports only go down"),
        (
            "keptlog/dagster/resources/__init__.py",
            "import keptlog.dagster.assets",
            "Jobs know assets, assets know resources",
        ),
        (
            "keptlog/dagster/assets/__init__.py",
            "import keptlog.dagster.orchestration",
            "Jobs know assets, assets know resources",
        ),
    ],
)
def test_an_import_in_the_wrong_direction_breaks_the_contract(
    sources: Path, module: str, line: str, contract: str
) -> None:
    changed = sources / module
    changed.write_text(changed.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    outcome = lint_imports(sources)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert contract in outcome.stdout.partition("Broken contracts")[2]


def test_a_module_that_has_no_layer_is_noticed(sources: Path) -> None:
    (sources / "keptlog" / "utilities.py").write_text('"""Anything."""\n', encoding="utf-8")
    outcome = lint_imports(sources)
    assert outcome.returncode == 1
    assert "utilities" in outcome.stdout
