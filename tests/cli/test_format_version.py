"""A topic that a newer keptlog has written: every command says to upgrade, leaves it as it is, and does the others."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.home import open_home
from keptlog.table.reading.cache import FOLDER
from tests.as_of import apart
from tests.cli.conftest import Outcome, Run

VERSION = "keptlog.format-version"
LINE = "topic users was written by a newer keptlog (format 2.0; this one reads 1.x): upgrade keptlog"
NOW_MS = 1_800_000_000_000
UNKNOWN = {
    VERSION: "1.7",
    "log.p0.colour": "blue",
    "kafka.keptlog.colour.ms": "7",
    "log.p0.uncleanable": '{"reason": "x", "since_ms": 1, "attempts": 1, "retry_at_ms": 2, "colour": "blue"}',
}

OF_ONE_TOPIC = [
    "topic describe users",
    "topic alter users --config segment.ms=7",
    "topic delete users --yes",
    "append users --file RECORDS",
    "append users --file ROWS --column offset=at --column partition=in --source-topic people",
    "read users",
    "read users --latest",
    "restore users --to jsonl -",
    "restore users --to kafka --bootstrap localhost:1",
    "files users",
    "plan users",
    "explain users 0",
    "status users",
    "verify users",
    "clean users --quiet",
    "expire users --quiet",
    "retain users",
    "delete-records users 0 1",
    "purge users",
]
OF_ALL_TOPICS = [
    "topic list",
    "plan",
    "status",
    "verify",
    "clean --quiet",
    "expire --quiet",
    "retain",
    "purge",
    "ingest kafka --quiet",
]


@pytest.fixture
def typed(keptlog: Run, lines: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A home with ``orders``, which is empty, and ``users``; ``typed("read users")`` as if typed."""
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    records = lines({"key": "a", "value": "1", "timestamp": NOW_MS}, {"key": "a", "value": "2", "timestamp": NOW_MS})
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"at": [7], "in": [0], "key": ["a"], "value": ["3"], "timestamp": [NOW_MS]}), rows)
    for topic in ("orders", "users"):
        keptlog("topic", "create", topic, "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", records)

    def run(command: str, *more: str) -> Outcome:
        words = [{"RECORDS": records, "ROWS": str(rows)}.get(word, word) for word in command.split()]
        return keptlog(*words, *more)

    return run


def become(topic: str, **properties: str) -> None:
    open_home().store.load_table(topic).transaction().set_properties(properties).commit_transaction()


def content(home: Path) -> dict[Path, bytes]:
    files = (path for path in home.rglob("*") if path.is_file() and FOLDER not in path.parts)
    return {path: path.read_bytes() for path in files}


def test_every_command_refuses_a_newer_major_version_in_one_line_and_changes_nothing(typed: Run, home: Path) -> None:
    become("users", **{VERSION: "2.0"})
    before = content(home)

    for command in OF_ONE_TOPIC:
        done = typed(command)
        assert done.code == 1, command
        assert LINE in done.err, command
        assert len(done.err.splitlines()) == 1, command

    assert content(home) == before


def test_commands_over_all_topics_name_it_and_do_the_others(typed: Run, home: Path) -> None:
    become("users", **{VERSION: "2.0"})
    before = content(home)

    for command in OF_ALL_TOPICS:
        done = typed(command)
        assert (done.code, done.err) == (1, f"keptlog: users: {LINE}\n"), command
        assert "no topics in" not in done.out, command

    assert content(home) == before
    assert [row["topic"] for row in typed("topic list", "--json").json["topics"]] == ["orders"]
    assert [row["topic_partition"] for row in typed("status", "--json").json["logs"]] == ["orders-0"]
    assert [each["message"] for each in typed("status", "--json").json["errors"]] == [LINE]


def test_where_it_is_the_only_topic_nobody_is_told_that_there_is_none(typed: Run) -> None:
    typed("topic delete orders --yes")
    become("users", **{VERSION: "2.0"})
    for command in ("topic list", "plan", "status", "verify"):
        assert typed(command).out == "no topic can be looked at\n"


def test_a_status_from_memory_refuses_it_too_and_imports_no_catalog(typed: Run, home: Path) -> None:
    typed("status")
    entry = home / FOLDER / "users.json"
    text = (
        entry.read_bytes()
        .partition(b"\n")[2]
        .replace(b'"keptlog.format-version":"1.4"', b'"keptlog.format-version":"2.0"')
    )
    entry.write_bytes(b"%08x\n" % zlib.crc32(text) + text)
    code = (
        "import sys\nfrom keptlog.cli import main\n"
        "try:\n    main()\nfinally:\n    print([name for name in ('pyarrow', 'pyiceberg') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code, "status"], capture_output=True, text=True, check=False)

    assert (done.returncode, apart(done.stderr)[1]) == (1, f"keptlog: users: {LINE}\n")
    assert done.stdout.endswith("\n[]\n")
    assert "orders-0" in done.stdout


def test_every_command_takes_a_newer_minor_version_like_any_other(typed: Run) -> None:
    become("users", **UNKNOWN)

    for command in OF_ONE_TOPIC:
        if "delete users" in command or "kafka" in command or "people" in command:
            continue
        done = typed(command)
        assert (done.code, done.err) == (0, ""), command

    stored = open_home().store.load_table("users").properties
    assert {name: stored[name] for name in UNKNOWN} == UNKNOWN
    assert json.loads(typed("read users --latest").out)["value"] == "2"
