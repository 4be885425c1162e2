"""keptlog's code as one file: the same each time, and enough for a worker that has nothing else of it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from keptlog.cli import cli
from keptlog.spark.packed import archive_name, fingerprint, write_archive
from keptlog.spark.readiness import MODULES
from tests.spark.clusters import python_with

_IN_TASKS = (
    "keptlog.engine.tasks keptlog.engine.ingest_tasks keptlog.engine.search_tasks keptlog.engine.drop_tasks "
    "keptlog.engine.map_tasks keptlog.engine.latest_jobs keptlog.engine.watermark_tasks keptlog.engine.shuffle "
    "keptlog.kernels.key_shuffle keptlog.spark.worker keptlog.table.io.files keptlog.table.io.durable_at_end "
    "keptlog.storage.throttle"
)
_LIMITED = "import resource as r, keptlog.cli as k; r.setrlimit(r.RLIMIT_FSIZE, (4096, 4096)); k.main()"
_IMPORT_ALL = """
import importlib, sys
# As Spark does: the path is not made absolute.
sys.path.insert(0, sys.argv[2])
for name in sys.argv[1].split():
    importlib.import_module(name)
from keptlog.spark.packed import fingerprint
print(fingerprint(), sys.modules["keptlog"].__file__)
print(*{name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
"""


def test_the_same_code_gives_the_same_archive_to_the_byte() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    for sink in (first, second):
        write_archive(sink)
    assert first.getvalue() == second.getvalue()
    assert fingerprint() in archive_name()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_disk_without_room_for_it_leaves_what_was_there_and_is_named(tmp_path: Path, is_there: bool) -> None:
    """Half of one took the place of the archive that a cluster's workers import from."""
    archive = tmp_path / "keptlog.zip"
    if is_there:
        archive.write_bytes(b"before")
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, "spark-pack", "-o", archive, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    [error] = json.loads(done.stdout)["errors"]
    assert (done.returncode, error["kind"], error["action"]) == (1, "StorageUnavailable", "fix_storage")
    assert error["message"].startswith(f"{archive} can't be written: ")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"] * is_there


def test_a_python_with_little_else_imports_all_that_tasks_need_from_the_archive_and_knows_it_again(
    tmp_path: Path,
) -> None:
    archive = tmp_path / "keptlog.zip"
    with archive.open("wb") as sink:
        write_archive(sink)
    python = python_with(tmp_path / "python", MODULES)
    command = [python, "-c", _IMPORT_ALL, _IN_TASKS, archive.name]
    told = subprocess.run(command, env={}, cwd=tmp_path, capture_output=True, text=True, check=True)
    mark, place, *imported = told.stdout.split()
    assert mark == fingerprint()
    assert place.startswith(archive.name)
    assert "pyspark" not in imported


def test_the_command_writes_it_and_says_what_the_workers_need_besides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["spark-pack", "--json"])
    told = json.loads(done.output)
    assert told["archive"] == archive_name()
    assert [each.partition("==")[0] for each in told["always"]] == list(MODULES)
    with zipfile.ZipFile(tmp_path / told["archive"]) as archive:
        names = archive.namelist()
    assert "keptlog/engine/tasks.py" in names
    assert not [name for name in names if "dagster" in name or "__pycache__" in name]
    shown = CliRunner().invoke(cli, ["spark-pack", "-o", "here.zip"])
    assert shown.output.startswith("here.zip: keptlog's code for Spark's workers")
    assert (tmp_path / "here.zip").read_bytes() == (tmp_path / archive_name()).read_bytes()
