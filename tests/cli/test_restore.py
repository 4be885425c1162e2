"""``keptlog restore``: what is given must make sense together, and the output can be piped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

Lines = Callable[..., str]


@pytest.fixture
def users(keptlog: Run, lines: Lines) -> str:
    keptlog("topic", "create", "users", "--partitions", "2", "--config", "cleanup.policy=compact")
    file = lines({"key": "a", "value": "1"}, {"key": "a", "value": "2"}, {"key": "b", "value": None})
    keptlog("append", "users", "--file", file)
    return "users"


def test_standard_output_gets_what_read_prints(keptlog: Run, users: str) -> None:
    assert keptlog("restore", users, "--to", "jsonl", "-").out == keptlog("read", users).out
    assert len(keptlog("restore", users, "--to", "jsonl", "--latest", "-").json_lines) == 1


def test_a_full_disk_is_told_in_one_line(keptlog: Run, users: str, lines: Lines) -> None:
    many = lines(*({"key": str(number), "value": str(3**number)} for number in range(1800)))
    with Path("/dev/full").open("wb") as full:  # always there, always full
        command = [sys.executable, "-m", "keptlog", "restore", users, "--to", "jsonl", "-"]
        restored = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    code = "import resource as r, keptlog.cli as k; r.setrlimit(r.RLIMIT_FSIZE, (60_000, 60_000)); k.main()"
    command = [sys.executable, "-c", code, "append", users, "--file", many]
    appended = subprocess.run(command, capture_output=True, text=True, check=False)
    for outcome, why in ((restored, "No space left on device"), (appended, "takes no file as large as that")):
        assert (outcome.returncode, len(outcome.stderr.splitlines())) == (1, 1), outcome.stderr
        assert why in outcome.stderr
    assert len(keptlog("read", users).json_lines) == 3


@pytest.mark.parametrize("to", ["jsonl", "parquet"])
def test_a_file_is_written_and_said(keptlog: Run, users: str, tmp_path: Path, to: str) -> None:
    file = str(tmp_path / "out")
    said = keptlog("restore", users, "--to", to, file)
    assert said.code == 0
    assert said.out.startswith(f"restored 3 records of users to {file} (")
    refused = keptlog("restore", users, "--to", to, file)
    assert refused.code == 2
    assert "exists" in refused.err
    again = keptlog("restore", users, "--to", to, file, "--overwrite", "--json")
    told = {"topic": "users", "file": file, "records": 3, "bytes": Path(file).stat().st_size}
    assert again.json == {"schema_version": 1, **told, "errors": []}


@pytest.mark.parametrize(
    ("file", "how"), [("users.jsonl", []), ("users.parquet", []), ("users.parquet", ["--column", "offset=offset"])]
)
def test_the_file_can_be_appended(keptlog: Run, users: str, file: str, how: list[str]) -> None:
    keptlog("restore", users, "--to", file.partition(".")[2], file)
    keptlog("topic", "create", "again", "--partitions", "2", "--config", "cleanup.policy=compact")
    assert keptlog("append", "again", "--file", file, *how).code == 0
    assert keptlog("read", "again").out == keptlog("read", users).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "csv", "f"], "'csv' is not one of"),
        (["f"], "--to"),
        (["--to", "jsonl"], "needs a FILE"),
        (["--to", "parquet", "-"], "give a FILE"),
        (["--to", "jsonl", "-", "--json"], "give a FILE"),
        (["--to", "jsonl", "."], "is a folder"),
        (["--to", "jsonl", "no/folder/f"], "there is no folder"),
        (["--to", "jsonl", "f", "--bootstrap", "h:1"], "--bootstrap has no meaning with --to jsonl"),
        (["--to", "parquet", "f", "--skip-lost"], "--skip-lost has no meaning with --to parquet"),
        (["--to", "kafka", "f"], "FILE has no meaning with --to kafka"),
        (["--to", "kafka", "--latest"], "--latest has no meaning with --to kafka"),
        (["--to", "kafka"], "give it as bootstrap (--bootstrap HOST:PORT)"),
        (["--to", "kafka", "--bootstrap", "h:1", "--topic", "a/b"], "'a/b' is not allowed"),
    ],
)
def test_what_makes_no_sense_is_refused(keptlog: Run, users: str, arguments: list[str], message: str) -> None:
    refused = keptlog("restore", users, *arguments)
    assert refused.code == 2
    told = [each["message"] for each in refused.json["errors"]] if "--json" in arguments else refused.out.splitlines()
    assert told == ([refused.err.removeprefix("keptlog: ").strip()] if "--json" in arguments else [])
    assert message in refused.err
    assert len(refused.err.splitlines()) == 1


def test_a_topic_that_does_not_exist_is_bad_input(keptlog: Run, tmp_path: Path) -> None:
    assert keptlog("restore", "missing", "--to", "jsonl", str(tmp_path / "out")).code == 2
    assert keptlog("restore", "missing", "--to", "kafka", "--bootstrap", "127.0.0.1:1").code == 2
    assert not (tmp_path / "out").exists()


def test_a_secret_in_the_settings_is_not_shown(keptlog: Run, users: str, home: Path) -> None:
    (home / "kafka.properties").write_text("bootstrap.servers=127.0.0.1:1\nsasl.password=hunter2\nnonsense=1\n")
    refused = keptlog("restore", users, "--to", "kafka")
    assert refused.code == 2
    assert "hunter2" not in refused.err + json.dumps(refused.out)
