"""``keptlog import kafka-logs``, typed, on Spark: what it prints, its exit codes, and directories that are wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.ingest.directories import some_batch, write_id, write_log

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A directory with two logs of topic users, one of orders, and one of Kafka's own."""
    directory = tmp_path / "there"
    write_log(directory, "users-0", [some_batch(0)])
    write_log(directory, "users-1", [some_batch(0), some_batch(10, 4)])
    write_log(directory, "orders-0", [some_batch(0)])
    write_log(directory, "__consumer_offsets-0", [some_batch(0)])
    return directory


@pytest.mark.usefixtures("spark")
def test_a_directory_is_imported_and_a_second_time_there_is_nothing_new(keptlog: Run, there: Path) -> None:
    first = keptlog("import", "kafka-logs", str(there))
    assert first.code == 0, first.err
    assert "created orders with cleanup.policy=compact" in first.out
    assert [line.split()[:5] for line in first.out.splitlines()[3:]] == [
        ["orders-0", "10", "1", "0", "10"],
        ["users-0", "10", "1", "0", "10"],
        ["users-1", "14", "2", "0", "14"],
    ]
    assert "left out" in first.err
    assert "__consumer_offsets" in first.err
    assert len(keptlog("read", "users").json_lines) == 24
    second = keptlog("import", "kafka-logs", str(there), "--quiet")
    assert (second.code, second.out, second.err) == (0, "nothing new\n", "")


@pytest.mark.usefixtures("spark")
def test_an_older_copy_brings_nothing_in_and_is_not_called_nothing_new(keptlog: Run, there: Path) -> None:
    keptlog("import", "kafka-logs", str(there), "--topic", "users")
    write_log(there, "users-1", [some_batch(0)])
    older = keptlog("import", "kafka-logs", str(there), "--topic", "users", "--quiet")
    assert (older.code, older.out) == (1, "nothing came in\n")
    assert older.err.startswith("keptlog: users-1: it ends at offset 14 here and at 10 at its source")


@pytest.mark.usefixtures("spark")
def test_one_topic_goes_into_another_name_with_its_own_settings_as_json(keptlog: Run, there: Path) -> None:
    write_log(there, "users-1", [some_batch(0), some_batch(10, 4)[:-1]])
    setting = "delete.retention.ms=5"
    done = keptlog(
        "import", "kafka-logs", str(there), "--topic", "users", "--into", "people", "--config", setting, "--json"
    )
    assert done.code == 0, done.err
    assert done.json["created"] == {"people": {"cleanup.policy": "compact", "delete.retention.ms": "5"}}
    [first, second] = done.json["committed"]
    assert first == {
        "topic_partition": "people-0",
        "records": 10,
        "tombstones": 1,
        "reconciled": 0,
        "unkeyed": 0,
        "from_offset": 0,
        "end_offset": 10,
        "segments": 1,
        "bytes": first["bytes"],
        "skipped": [],
    }
    assert second["end_offset"] == 10
    assert done.json["errors"] == []
    [warning] = done.json["warnings"]
    assert warning.startswith("people-1: it ends at 10, its last batch was not written whole")
    assert f"warning: {warning}" in done.err
    assert [each["topic"] for each in keptlog("topic", "list", "--json").json["topics"]] == ["people"]


@pytest.mark.usefixtures("spark")
def test_what_is_corrupt_exits_with_1_names_the_place_and_may_be_skipped(keptlog: Run, there: Path) -> None:
    write_log(there, "users-1", [some_batch(0)[:-1] + b"x", some_batch(10, 4)])
    done = keptlog("import", "kafka-logs", str(there), "--topic", "users", "--quiet")
    assert done.code == 1
    assert done.out.splitlines()[-1].split()[:2] == ["users-0", "10"]
    assert done.err.startswith(f"keptlog: users-1: {there}")
    assert "at position 0, from offset 0 on: its checksum is" in done.err
    skipped = keptlog("import", "kafka-logs", str(there), "--topic", "users", "--skip-corrupt", "--quiet")
    assert skipped.code == 0, skipped.err
    [row] = [line.split() for line in skipped.out.splitlines() if line.startswith("users-1")]
    assert (row[1], row[-1]) == ("4", "1")


@pytest.mark.usefixtures("spark")
def test_a_topic_that_has_records_of_its_own_is_refused(keptlog: Run, there: Path, lines: Callable[..., str]) -> None:
    keptlog("topic", "create", "orders")
    keptlog("append", "orders", "--file", lines({"key": "k", "value": "v"}))
    done = keptlog("import", "kafka-logs", str(there), "--topic", "orders", "--quiet")
    assert done.code == 2
    assert "records of its own" in done.err
    assert keptlog("import", "kafka-logs", str(there), "--quiet").code == 1
    assert len(keptlog("read", "users").json_lines) == 24


def test_bad_input_is_one_line_and_changes_nothing(keptlog: Run, there: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "internal", "__transaction_state-0", [some_batch(0)])
    (tmp_path / "empty").mkdir()
    for arguments, what in (
        ([str(tmp_path / "nowhere")], "is not a directory"),
        ([str(there / "users-0" / f"{0:020d}.log")], "is not a directory"),
        ([str(there / "users-0")], "a log's own folder: name the one above"),
        ([str(tmp_path / "empty")], "holds no folder"),
        ([str(tmp_path / "internal")], "only Kafka's own topics, __transaction_state"),
        ([str(there), "--topic", "user"], "no topic 'user'; it has __consumer_offsets, orders, users"),
        ([str(there), "--into", "people"], "--into people takes one topic, not orders, users"),
        ([str(there), "--topic", "users", "--into", "a/b"], "topic name 'a/b' is not allowed"),
        ([str(there), "--config", "cleanup.policy"], "is not NAME=VALUE"),
        ([str(there), "--config", "delete.retention.ms=soon"], "delete.retention.ms"),
    ):
        done = keptlog("import", "kafka-logs", *arguments)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
        assert what in done.err
    assert not (tmp_path / "home").exists()


def test_partitions_of_two_topics_with_one_name_are_refused(keptlog: Run, there: Path) -> None:
    for partition, topic_id in enumerate(("A" * 22, "B" * 22)):
        write_id(there, f"users-{partition}", topic_id)
    done = keptlog("import", "kafka-logs", str(there), "--topic", "users", "--quiet")
    assert (done.code, done.out) == (2, "")
    assert "are not of one topic" in done.err


def test_a_checkpoint_that_cannot_be_read_is_named(keptlog: Run, tmp_path: Path) -> None:
    shutil.copytree(DATA / "broker_logs", tmp_path / "there")
    (tmp_path / "there" / "log-start-offset-checkpoint").write_text("gibberish")
    done = keptlog("import", "kafka-logs", str(tmp_path / "there"))
    assert done.code == 1
    assert "log-start-offset-checkpoint does not begin with" in done.err


@pytest.mark.usefixtures("spark")
def test_a_note_of_one_log_that_cannot_be_read_stops_that_log_alone(keptlog: Run, there: Path) -> None:
    note = there / "users-0" / "leader-epoch-checkpoint"
    note.write_bytes(bytes(20))
    assert keptlog("import", "kafka-logs", str(there), "--topic", "orders").code == 0
    done = keptlog("import", "kafka-logs", str(there), "--topic", "users", "--quiet")
    assert done.code == 1
    assert [line.split()[:2] for line in done.out.splitlines()[-1:]] == [["users-1", "14"]]
    assert done.err.startswith(f"keptlog: users-0: {note} does not begin with version 0")
    note.unlink()
    assert keptlog("import", "kafka-logs", str(there), "--topic", "users").code == 0
    assert len(keptlog("read", "users").json_lines) == 24
