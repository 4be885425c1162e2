"""``--run-id``: a command that is repeated under the same name does nothing twice, and says what it did then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitStateUnknownException

from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from tests.cli.conftest import Run

Lines = Callable[..., str]


@pytest.fixture
def users(keptlog: Run) -> str:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    return "users"


def purge(keptlog: Run, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog("append", "users", "--file", lines({"key": "x", "value": "other"}))
    with monkeypatch.context() as later:
        later.setenv("KEPTLOG_NOW_MS", str(2**45))
        assert keptlog("purge", "--orphan-grace-ms", str(2**50), "--json").json["topics"]["users"]["expired_snapshots"]


def test_an_append_is_repeated_under_its_run_id_and_nothing_is_doubled(
    keptlog: Run, users: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = lines({"key": "a", "value": "1"}, {"key": "b", "value": "2"})
    first = keptlog("append", users, "--file", batch, "--run-id", "load-7", "--json").json
    assert (first["run_id"], first["is_repeated"], first["records"]) == ("load-7", False, 2)
    purge(keptlog, lines, monkeypatch)
    again = keptlog("append", users, "--file", batch, "--run-id", "load-7", "--json").json
    assert again == first | {"is_repeated": True}
    said = keptlog("append", users, "--file", batch, "--run-id", "load-7").out.splitlines()
    assert said[0].startswith("run load-7 has appended 2 records (")
    assert said[0].endswith(") to users before; nothing was added now")
    assert said[1] == "  users-0: offsets 0..1"
    assert len(keptlog("read", users).json_lines) == 3


def test_a_deletion_is_repeated_under_its_run_id_and_deletes_no_more(
    keptlog: Run, users: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("append", users, "--file", lines({"key": "a", "value": "1"}))
    first = keptlog("delete-records", users, "0", "--run-id", "drop-7", "--json", "--", "-1").json
    told = [first[name] for name in ("run_id", "is_repeated", "log_start_offset", "segments")]
    assert told == ["drop-7", False, 1, 1]
    purge(keptlog, lines, monkeypatch)
    assert keptlog("delete-records", users, "0", "--run-id", "drop-7", "--json", "--", "-1").json == first | {
        "is_repeated": True
    }
    said = keptlog("delete-records", users, "0", "--run-id", "drop-7", "--", "-1").out
    assert said.startswith("run drop-7 has deleted before offset 1 of users-0 already; then 1 segment")
    assert len(keptlog("read", users).json_lines) == 1


def test_one_run_deletes_records_of_several_logs(keptlog: Run, lines: Lines) -> None:
    keptlog("topic", "create", "users", "--partitions", "2")
    batch = lines({"key": "a", "value": "1", "partition": 0}, {"key": "b", "value": "1", "partition": 1})
    keptlog("append", "users", "--file", batch)

    for partition in ("0", "1"):
        told = keptlog("delete-records", "users", partition, "--run-id", "night", "--json", "--", "-1").json
        assert (told["is_repeated"], told["log_start_offset"]) == (False, 1)

    assert keptlog("read", "users").out == ""


def test_one_run_deletes_records_and_appends(keptlog: Run, users: str, lines: Lines) -> None:
    keptlog("append", users, "--file", lines({"key": "a", "value": "1"}))

    assert keptlog("delete-records", users, "0", "--run-id", "reload", "--", "-1").code == 0
    again = keptlog("append", users, "--file", lines({"key": "a", "value": "2"}), "--run-id", "reload", "--json").json

    assert again["is_repeated"] is False
    assert [each["value"] for each in keptlog("read", users).json_lines] == ["2"]


def test_a_run_id_that_stands_for_another_change_since_before_takes_no_append(
    keptlog: Run, users: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keptlog from before gave a deletion the bare run id, which is an append's commit id."""
    keptlog("append", users, "--file", lines({"key": "a", "value": "1"}))
    with monkeypatch.context() as before:
        before.setattr("keptlog.table.metadata.change.commit_id_for", lambda run_id, _operation, _partition: run_id)
        keptlog("delete-records", users, "0", "--run-id", "reload", "--", "-1")
    batch = lines({"key": "a", "value": "2"})

    refused = keptlog("append", users, "--file", batch, "--run-id", "reload")
    assert refused.code == 2
    assert "run id reload was used for another change of topic users (delete-records): nothing was" in refused.err
    purge(keptlog, lines, monkeypatch)
    refused = keptlog("append", users, "--file", batch, "--run-id", "reload")
    assert (refused.code, "was used for another change of topic users" in refused.err) == (2, True)


def test_an_append_without_an_answer_names_its_run_id_and_the_option_that_takes_it(
    keptlog: Run, users: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, batch = EmbeddedCatalog.commit_table, lines({"key": "a", "value": "1"})

    def unanswered(*commit: object) -> None:
        really(*commit)  # type: ignore[arg-type]
        monkeypatch.setattr(EmbeddedCatalog, "load_table", unreachable)
        raise CommitStateUnknownException("the line was cut")

    def unreachable(*_: object) -> None:
        raise ConnectionRefusedError("connection refused")

    with monkeypatch.context() as away:
        monkeypatch.setattr("keptlog.table.commits.commit.MAX_OUTAGES", 2)
        away.setattr(EmbeddedCatalog, "commit_table", unanswered)
        really_load = EmbeddedCatalog.load_table
        refused = keptlog("--log-level", "error", "append", users, "--file", batch)
        monkeypatch.setattr(EmbeddedCatalog, "load_table", really_load)
    assert refused.code == 1
    [line] = refused.err.splitlines()[-1:]
    assert "run again with the same run id, which finds it if it did: --run-id " in line
    run_id = line.rpartition(" ")[2]
    said = keptlog("append", users, "--file", batch, "--run-id", run_id).out
    assert said.startswith(f"run {run_id} has appended 1 record ")
    assert len(keptlog("read", users).json_lines) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("append", "users", "--file", "records.jsonl"),
        ("clean",),
        ("expire",),
        ("retain",),
        ("delete-records", "users", "0", "1"),
        ("truncate", "users", "0", "1"),
        ("ingest", "kafka"),
        ("import", "kafka-logs", "there"),
    ],
)
def test_every_command_that_commits_takes_a_run_id_and_refuses_a_bad_one(
    keptlog: Run, users: str, lines: Lines, command: tuple[str, ...]
) -> None:
    lines({"key": "a", "value": "1"})
    refused = keptlog(*command, "--run-id", "../../x")
    assert refused.code == 2
    assert "run id '../../x' is not possible: use 1 to 100 letters" in refused.err


def test_a_clean_and_a_retention_commit_under_their_run_id(keptlog: Run, users: str, home: Path) -> None:
    assert keptlog("retain", "--run-id", "weekly-7", "--json").json["run_id"] == "weekly-7"
    assert keptlog("clean", "--run-id", "daily-7", "--json").json["run_id"] == "daily-7"
