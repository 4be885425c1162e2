"""Records are printed as UTF-8 whatever the locale; a home that a process can't name is refused in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord

_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
_LOCALES = {"latin-1": {"PYTHONIOENCODING": "latin-1"}, "ascii": _ASCII, "utf-8": {"PYTHONUTF8": "1"}}
_VALUE = "ü 😀"


def _keptlog(folder: Path, home: str, line: str, variables: dict[str, str]) -> tuple[int, bytes, bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONIO", "LC_"))}
    done = subprocess.run(
        [sys.executable, "-m", "keptlog", *line.split()],
        env={**environment, "KEPTLOG_HOME": home, **variables},
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def _with_a_record(home: Path) -> None:
    store = open_home(home).store
    store.create_topic("t", 1, {"cleanup.policy": "compact"})
    store.append("t", [NewRecord(b"k", _VALUE.encode(), 1_700_000_000_000, 0)], "run", 1_700_000_000_000)


@pytest.mark.parametrize("line", ["read t", "restore t --to jsonl -"])
@pytest.mark.parametrize("variables", _LOCALES.values(), ids=_LOCALES)
def test_records_are_utf_8_in_every_locale(tmp_path: Path, line: str, variables: dict[str, str]) -> None:
    _with_a_record(tmp_path / "home")
    code, out, err = _keptlog(tmp_path, "home", line, variables)

    assert (code, err) == (0, b"")
    assert json.loads(out.decode("utf-8"))["value"] == _VALUE


@pytest.mark.parametrize("home", ["ünï", "ünï/../ünï", "."])
@pytest.mark.parametrize("line", ["status", "files t", "read t", "topic create others", "doctor"])
def test_a_home_that_the_locale_can_not_name_is_refused_in_one_line(tmp_path: Path, home: str, line: str) -> None:
    folder = tmp_path
    if home == ".":
        folder = tmp_path / "ünï"
        folder.mkdir()
    _with_a_record(folder / home)
    before = sorted(folder.rglob("*"))
    code, out, err = _keptlog(folder, home, line, _ASCII)

    assert (code, out, err.count(b"\n")) == (2, b"", 1), err.decode(errors="replace")
    assert b"set PYTHONUTF8=1" in err
    assert sorted(folder.rglob("*")) == before
    code, out, err = _keptlog(folder, home, "files t", {"PYTHONUTF8": "1"})
    assert (code, err) == (0, b"")
    assert "ünï" in out.decode("utf-8")


def test_a_file_whose_name_is_no_utf_8_is_written_and_told_by_its_bytes(tmp_path: Path) -> None:
    _with_a_record(tmp_path / "home")
    file = os.fsdecode(b"caf\xe9.jsonl")
    for variables in ({"PYTHONUTF8": "1"}, _ASCII):
        code, out, err = _keptlog(tmp_path, "home", f"restore t --to jsonl --overwrite {file}", variables)
        assert (code, err) == (0, b"")
        assert out.startswith(b"restored 1 record of t to caf\xe9.jsonl (")


def test_a_document_is_utf_8_also_where_it_names_a_file_whose_name_is_not(tmp_path: Path) -> None:
    _with_a_record(tmp_path / "home")
    file = os.fsdecode(b"caf\xe9.jsonl")
    (tmp_path / file).write_text("no JSON")
    for variables in ({"PYTHONUTF8": "1"}, _ASCII):
        code, out, _ = _keptlog(tmp_path, "home", f"append t --file {file} --json", variables)
        assert code == 2
        assert file in json.loads(out.decode("utf-8"))["errors"][0]["message"]
