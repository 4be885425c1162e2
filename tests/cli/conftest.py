"""Runs the real command in this process: its own argument parsing, its exit code, its two outputs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from keptlog.cli import main
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.as_of import apart
from tests.cli.answer_forms import check_answer, command_of
from tests.cli.own_threads import stderr_of_own_threads


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str
    """Without the line that says which time stands for now."""
    as_of: str = ""
    """That line, if there is one."""

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Outcome]
_NO_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Root as any other user: it may read and write only what the files' modes allow."""
_PYTHON = (sys.executable, "-m", "keptlog")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for each test, and a working directory that nothing must be written to."""
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEPTLOG_SPARK_MASTER", "local[2]")
    monkeypatch.delenv("KEPTLOG_NOW_MS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def keptlog(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``keptlog("topic", "list")`` as if typed."""
    del home

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr("sys.argv", ["keptlog", *arguments])
        with stderr_of_own_threads(), pytest.raises(SystemExit) as exit_info:
            main()
        printed = capsys.readouterr()
        if "--json" in arguments and printed.out and command_of(arguments):
            check_answer(arguments, printed.out, json.loads(printed.out))
        code = exit_info.value.code
        as_of, err = apart(printed.err)
        return Outcome(code if isinstance(code, int) else 0, printed.out, err, as_of)

    return run


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``at(now_ms)``: the commands that follow take that for now."""
    return lambda now_ms: monkeypatch.setenv("KEPTLOG_NOW_MS", str(now_ms))


@pytest.fixture
def topics(home: Path) -> Path:
    """Two topics, one of them with a hyphen and a number in its name, and three logs."""
    store = open_home().store
    for name, partitions in (("users", 2), ("events-7", 1)):
        store.create_topic(name, partitions, {"cleanup.policy": "compact"})
    store.append("users", [NewRecord(b"a", b"%d" % p, 1_700_000_000_000, p) for p in (0, 1)], "r", 1_700_000_000_000)
    return home


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., str]:
    """Writes records as a file of JSON lines; text is taken as it is."""

    def write(*records: dict[str, Any] | str) -> str:
        path = tmp_path / "records.jsonl"
        path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records))
        return str(path)

    return write


@pytest.fixture
def user(home: Path, keptlog: Run, lines: Callable[..., str], tmp_path: Path) -> Iterator[Run]:
    """Runs commands as somebody to whom the modes of files apply, on a home with the topics odd and users."""
    if os.geteuid() == 0 and not shutil.which(_NO_RIGHTS[0]):
        pytest.skip("root may do all: needs setpriv, of util-linux")
    for topic in ("odd", "users"):
        assert keptlog("topic", "create", topic, "--config", "cleanup.policy=compact").code == 0
        assert keptlog("append", topic, "--file", lines({"key": "a", "value": "1"})).code == 0
    as_user = _NO_RIGHTS if os.geteuid() == 0 else ()
    spark = {"SPARK_LOCAL_DIRS": str(tmp_path / "spark")}

    def run(*arguments: str) -> Outcome:
        done = subprocess.run(
            [*as_user, *_PYTHON, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **spark}
        )
        assert "Traceback" not in done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)

    yield run
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def checks_of(told: Outcome) -> dict[str, Any]:
    """The checks of a doctor with ``--json``, by their names."""
    return {check["name"]: check for check in told.json["checks"]}


def configure(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{database}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{database.parent / 'lake'}")
