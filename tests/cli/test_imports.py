"""What a command imports before it answers: that, and not its work, is what most of them take.

Each runs in a process of its own, which tells at its end which of the large libraries it has imported. No time is
named: a test that measures one fails on a busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_RUN = """
import sys
from keptlog.cli import run
sys.argv = ["keptlog", *sys.argv[1:]]
try:
    run()
except SystemExit as ended:
    large = ("dagster", "pandas", "pyarrow", "pyiceberg.table", "pyspark", "requests", "sqlalchemy")
    probes = [name for name in sys.modules if name.startswith("keptlog.table.probe_")]
    print("imported", ended.code, *(name for name in (*large, *probes) if name in sys.modules), file=sys.stderr)
"""
_CATALOG = ["pyarrow", "pyiceberg.table", "sqlalchemy"]
"""What is behind the embedded catalog; neither Arrow's datasets, which import pandas, nor a client for HTTP."""


def imported(home: Path, *words: str) -> list[str]:
    environment = {**os.environ, "KEPTLOG_HOME": str(home)}
    command = [sys.executable, "-c", _RUN, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert "imported" in done.stderr, done.stderr
    _, _, told = done.stderr.rpartition("imported ")
    code, *names = told.split()
    assert code == "0", done.stdout + done.stderr
    return names


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that has a topic with ten records, at which somebody has looked before."""
    folder = tmp_path_factory.mktemp("imports")
    home, file = folder / "home", folder / "ten.jsonl"
    file.write_text("".join(f'{{"key": "user-{number}", "value": "{number}"}}\n' for number in range(10)))
    assert imported(home, "topic", "create", "users", "--config", "cleanup.policy=compact") == _CATALOG
    assert imported(home, "append", "users", "--file", str(file)) == _CATALOG
    assert imported(home, "status") == _CATALOG
    return home


_LOOKS = ["status", "topic list", "topic describe users", "plan", "plan users"]
_HELPS = ["topic --help", "clean --help", "metrics write -"]


@pytest.mark.parametrize("words", _LOOKS + _HELPS)
def test_who_only_looks_at_what_is_known_imports_no_large_library(home: Path, words: str) -> None:
    assert imported(home, *words.split()) == []


@pytest.mark.parametrize("words", ["read users", "read users-0", "read users --latest"])
def test_who_reads_what_is_remembered_opens_no_catalog(home: Path, words: str) -> None:
    assert imported(home, *words.split()) == ["pyarrow"]


def test_who_looks_at_the_table_imports_what_that_takes_and_no_pandas(home: Path) -> None:
    assert imported(home, "verify", "users") == _CATALOG


def test_a_doctor_who_probes_no_catalog_imports_no_probes(home: Path) -> None:
    assert not [name for name in imported(home, "doctor") if "probe" in name]


def test_the_help_of_all_commands_imports_no_engine_and_no_catalog(home: Path) -> None:
    assert set(imported(home, "--help")) <= {"pyarrow"}
