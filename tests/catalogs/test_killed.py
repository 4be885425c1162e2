"""What a doctor leaves that is killed is taken away by a later one, and by no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keptlog.passes.doctor.catalog_doctor import CatalogDoctor
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.doctor.scratch import LEFT_AFTER_MS, left_over, sweep
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.schema import TABLE_SCHEMA
from tests.table.stores import create, new_id

ROOT = Path(__file__).parents[2]


def kill_after(line: str, home: Path, before: set[Path]) -> None:
    """Kill the command once it has said a line, and its next probe has written a file that was not there ``before``."""
    command = [sys.executable, "-m", "keptlog", "doctor", "--catalog"]
    environment = os.environ | {"KEPTLOG_HOME": str(home), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        said = [process.stderr.readline()]
        while said[-1] and line not in said[-1]:
            said.append(process.stderr.readline())
        while not any(path.is_file() for path in set(home.rglob("*")) - before):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, said


@pytest.mark.parametrize("line", ["tables: kept", "rename: kept", "one commit: kept"])
def test_whatever_a_killed_one_has_left_goes_with_the_next(tmp_path: Path, line: str) -> None:
    create(tmp_path)
    before = set(tmp_path.rglob("*"))
    kill_after(line, tmp_path, before)
    catalog = open_catalog(tmp_path)
    left = left_over(catalog)
    assert sorted(left) == [min(left), f"{min(left)}_away"]
    assert any(path.is_file() for path in set(tmp_path.rglob("*")) - before)
    files = TableFiles(tuple(sorted(catalog.properties.items())))
    made_ms = min(left.values())
    gone, told = sweep(catalog, files, made_ms + LEFT_AFTER_MS - 1)
    assert (gone, len(told)) == ([], 2), "it may be at it still"
    assert all("another doctor's, or was left a moment ago" in each for each in told)
    assert sweep(catalog, files, made_ms + LEFT_AFTER_MS) == (sorted(left), [])
    assert left_over(catalog) == {}
    assert {path for path in set(tmp_path.rglob("*")) - before if path.is_file()} == set()


def test_who_looks_says_what_it_has_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path)
    monkeypatch.setattr("keptlog.passes.doctor.catalog_doctor.PROBES", ())
    catalog = open_catalog(tmp_path)
    for name in ("keptlog_doctor_1000_dead", "keptlog_doctor_9000000_busy", "keptlog_doctor_notes", "other"):
        catalog.create_namespace((name,))
    doctor = CatalogDoctor(lambda: open_catalog(tmp_path), new_id, time.sleep)
    found = doctor.examine(9_000_000)
    assert found.swept == ("keptlog_doctor_1000_dead",)
    assert [line.split()[1] for line in found.left] == ["keptlog_doctor_9000000_busy"]
    names = {namespace[-1] for namespace in catalog.list_namespaces()}
    assert names == {"keptlog", "other", "keptlog_doctor_9000000_busy", "keptlog_doctor_notes"}


@pytest.mark.parametrize("where", ["", "_away"])
def test_files_of_which_the_catalog_has_not_heard_yet_go_too_and_nobody_elses(tmp_path: Path, where: str) -> None:
    create(tmp_path)
    catalog = open_catalog(tmp_path)
    name = "keptlog_doctor_1000_dead"
    for namespace in (name, f"{name}_away", "keptlog_doctor_1000_dead_too"):
        catalog.create_namespace((namespace,))
    before = {path for path in tmp_path.rglob("*.json") if path.is_file()}
    made = [catalog.create_table((namespace, "t"), TABLE_SCHEMA) for namespace in (f"{name}{where}", "keptlog")]
    for table in made:
        catalog.drop_table(table.name())  # its files stay, as before it was created
    renamed = catalog.create_table((name, "renamed"), TABLE_SCHEMA)
    catalog.rename_table((name, "renamed"), (f"{name}_away", "renamed"))
    files = TableFiles(tuple(sorted(catalog.properties.items())))
    assert len(sweep(catalog, files, LEFT_AFTER_MS + 1000)[0]) == 3
    assert {path for path in tmp_path.rglob("*.json") if path.is_file()} - before == {
        Path(made[1].metadata_location.removeprefix("file://"))
    }
    for table in (made[0], renamed):
        assert not Path(table.location().removeprefix("file://")).parent.exists()
