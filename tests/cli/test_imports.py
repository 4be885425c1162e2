"""What a command imports before it answers: that, and not its work, is what most of them take.

Each runs in a process of its own, which tells at its end which of the large libraries it has imported. No time is
named: a test that measures one fails on a busy machine.
"""

from __future__ import annotations

import os
import shutil
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
    large = ("cryptography", "dagster", "numpy", "pandas", "pyarrow", "pydantic", "pyiceberg.table", "pyspark")
    large = (*large, "requests", "sqlalchemy")
    probes = [name for name in sys.modules if name.startswith("keptlog.table.doctor.probe_")]
    print("imported", ended.code, *(name for name in (*large, *probes) if name in sys.modules), file=sys.stderr)
"""
_CATALOG = ["numpy", "pyarrow", "pydantic", "pyiceberg.table", "sqlalchemy"]
"""What is behind the embedded catalog; neither Arrow's datasets, which import pandas, nor a client for HTTP."""


_BAD_INPUT = "2"


def run_in(home: Path, program: str, *words: str, piped: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KEPTLOG_HOME": str(home)}
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, input=piped)


def imported(home: Path, *words: str, exits: str = "0", piped: str = "") -> list[str]:
    done = run_in(home, _RUN, *words, piped=piped)
    assert "imported" in done.stderr, done.stderr
    _, _, told = done.stderr.rpartition("imported ")
    code, *names = told.split()
    assert code == exits, done.stdout + done.stderr
    return names


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that has a topic with ten records, at which nobody has looked since they came, and a receipt."""
    folder = tmp_path_factory.mktemp("imports")
    home, file = folder / "home", folder / "ten.jsonl"
    file.write_text("".join(f'{{"key": "user-{number}", "value": "{number}"}}\n' for number in range(10)))
    assert imported(home, "topic", "create", "users", "--config", "cleanup.policy=compact") == _CATALOG
    assert imported(home, "append", "users", "--file", str(file)) == _CATALOG
    imported(home, "topic", "create", "gone", "--config", "cleanup.policy=compact")
    imported(home, "append", "gone", "--file", str(file))
    imported(home, "topic", "delete", "gone", "--yes")
    return home


_LOOKS = [
    *("status", "topic list", "topic describe users", "plan", "plan users", "explain users-0", "history users"),
    *("files users", "files users-0 --duckdb", "receipt list", "reader list", "erasure list"),
    *("notify --dry-run",),
]
_HELPS = ["topic --help", "clean --help", "metrics write -"]


@pytest.mark.parametrize("words", _LOOKS + _HELPS)
def test_who_only_looks_at_what_is_known_imports_no_large_library(home: Path, words: str) -> None:
    assert imported(home, *words.split()) == []


_READS = [
    *("read users", "read users-0", "read users --latest", "verify", "verify users"),
    *("restore users --to jsonl -", "restore users-0 --to jsonl - --latest"),
]


@pytest.mark.parametrize("words", _READS)
def test_who_reads_records_opens_no_catalog(home: Path, words: str) -> None:
    assert imported(home, *words.split()) == ["numpy", "pyarrow"]


@pytest.mark.parametrize("words", ["status", "plan", "explain users-0", "files users", "topic describe users"])
def test_who_looks_first_after_a_change_imports_no_large_library_either(home: Path, words: str) -> None:
    shutil.rmtree(home / "cache", ignore_errors=True)
    assert imported(home, *words.split()) == []
    assert list((home / "cache").iterdir())


def test_who_shows_a_receipt_imports_what_checks_its_signature_and_nothing_else(home: Path) -> None:
    assert imported(home, "receipt", "show", "1") == ["cryptography"]


def test_a_home_without_receipts_is_told_to_have_none_without_its_catalog(tmp_path: Path) -> None:
    imported(tmp_path / "home", "topic", "create", "users")
    assert imported(tmp_path / "home", "receipt", "list") == []


_UNKNOWN = [
    *("append nosuch", "topic describe nosuch", "topic alter nosuch --config segment.ms=1000", "topic delete nosuch"),
    *("clean nosuch", "clean users-9", "expire nosuch", "retain nosuch", "purge nosuch", "delete-records nosuch-0 1"),
    *("truncate nosuch-0 1", "reader add nosuch copy", "reader commit nosuch copy 0=1", "reader remove nosuch copy"),
    *("erase nosuch --key user-1", "repair nosuch", "read nosuch", "read nosuch --as-reader copy", "verify nosuch"),
    *("restore nosuch --to jsonl out", "restore nosuch --to kafka", "explain nosuch", "files nosuch"),
]
_WRONG = [
    *(
        "topic create users",
        "topic create a/b",
        "topic create new --config segment.ms=x",
        "topic create new --config no=1",
    ),
    *("topic alter users --config segment.ms=x", "topic alter users --config no=1"),
]


@pytest.mark.parametrize("words", _UNKNOWN)
def test_a_name_that_means_nothing_is_told_before_the_catalog_is_opened(home: Path, words: str) -> None:
    found = imported(home, *words.split(), exits=_BAD_INPUT, piped='{"key": "a", "value": "b"}\n')
    assert set(found) <= {"numpy", "pyarrow"}


@pytest.mark.parametrize("words", _WRONG)
def test_what_is_wrong_with_a_topics_name_or_settings_is_told_without_any_large_library(home: Path, words: str) -> None:
    assert imported(home, *words.split(), exits=_BAD_INPUT) == []


def test_a_first_record_that_is_none_is_told_before_the_catalog_is_opened(home: Path) -> None:
    assert imported(home, "append", "users", exits=_BAD_INPUT, piped="no record\n") == []


def test_who_opens_the_catalog_imports_what_that_takes_and_no_pandas(home: Path) -> None:
    assert imported(home, "topic", "alter", "users", "--config", "segment.ms=3600000") == _CATALOG


_FINDS_PANDAS = """
from importlib.util import find_spec

try:
    found = find_spec("pandas")
except ModuleNotFoundError:
    found = None
print("finds" if found else "lacks", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "what"),
    [
        *(("erasure verify", "finds"), ("clean verify", "finds"), ("ingest read", "finds")),
        *(("--log-level info read users", "lacks"), ("verify users", "lacks")),
    ],
)
def test_pandas_is_kept_out_by_what_the_command_is_and_not_by_its_words(home: Path, words: str, what: str) -> None:
    done = run_in(home, _RUN + _FINDS_PANDAS, *words.split())
    assert done.stderr.split()[-1] == what, done.stderr


def test_a_doctor_who_probes_no_catalog_imports_no_probes(home: Path) -> None:
    assert not [name for name in imported(home, "doctor") if "probe" in name]


def test_the_help_of_all_commands_imports_no_engine_and_no_catalog(home: Path) -> None:
    assert set(imported(home, "--help")) <= {"numpy", "pyarrow"}
