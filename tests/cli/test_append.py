"""``keptlog append`` takes files of all formats: all of them, or none and the first bad record is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.sources import files
from tests.cli.conftest import Run


@pytest.fixture
def users(keptlog: Run) -> str:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    return "users"


def parquet(path: Path, **columns: object) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_files_of_all_formats_go_in_together_in_their_order(keptlog: Run, users: str, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"key": "a", "value": "1"}\n')
    second = parquet(tmp_path / "2.parquet", id=[7, 8], document=["2", None])
    done = keptlog(
        "append", users, "--file", str(tmp_path / "1.jsonl"), "--file", second, "--column", "key=id", "--column",
        "value=document", "--json",
    )  # fmt: skip
    assert done.json["records"] == 3
    assert [(each["key"], each["value"]) for each in keptlog("read", users).json_lines] == [
        ("a", "1"),
        ("7", "2"),
        ("8", None),
    ]


def test_change_events_leave_the_state_of_their_table(keptlog: Run, users: str, tmp_path: Path) -> None:
    def event(op: str, number: int, name: str | None) -> str:
        before, after = ({"id": number}, None) if op == "d" else (None, {"id": number, "name": name})
        return json.dumps({"before": before, "after": after, "op": op, "source": {"ts_ms": 1000 + number}})

    lines = [event("r", 1, "Ada"), event("c", 2, "Bob"), event("u", 1, "Ada L."), event("d", 2, None), "null"]
    folder = tmp_path / "changes"
    folder.mkdir()
    (folder / "0.jsonl").write_text("\n".join(lines))
    said = keptlog(
        "append", users, "--file", str(folder), "--format", "debezium", "--key-field", "id", "--partition", "0"
    )
    assert said.out.splitlines()[0].startswith("appended 5 records")
    assert [
        (each["key"], each["value"], each["timestamp"]) for each in keptlog("read", users, "--latest").json_lines
    ] == [('{"id":1}', '{"id":1,"name":"Ada L."}', 1001)]


def test_events_of_a_chosen_table_are_appended_and_what_was_left_out_is_counted(
    keptlog: Run, users: str, tmp_path: Path
) -> None:
    source = {"db": "shop", "table": "users", "ts_ms": 5}
    event = {"key": {"id": 1}, "value": {"op": "c", "after": {"id": 1, "paid": 0}, "source": source}}
    other = {"key": {"id": 1}, "value": {"op": "c", "after": {"id": 1}, "source": source | {"table": "orders"}}}
    path = tmp_path / "changes.jsonl"
    path.write_text("\n".join(map(json.dumps, (event, other, {"ts_ms": 7}, other))))
    change = ("append", users, "--file", str(path), "--format", "debezium")
    assert "line 2: the event is of table shop.orders" in keptlog(*change, "--rows-only").err
    assert "line 3: a heartbeat is no change of a row" in keptlog(*change, "--table", "users").err
    assert keptlog("read", users).out == ""
    told = keptlog(*change, "--table", "users", "--rows-only").out.splitlines()
    assert told[-2:] == ["  left out: a heartbeat, 1 x", "  left out: an event of shop.orders, 2 x"]
    assert keptlog(*change, "--table", "users", "--rows-only", "--json").json["left_out"] == {
        "a heartbeat": 1,
        "an event of shop.orders": 2,
    }


def test_rows_that_lack_a_value_are_taken_only_if_that_is_accepted(keptlog: Run, users: str, tmp_path: Path) -> None:
    row = {"id": 1, "document": "__debezium_unavailable_value"}
    path = tmp_path / "changes.jsonl"
    path.write_text(json.dumps({"key": {"id": 1}, "value": {"op": "u", "after": row}}))
    change = ("append", users, "--file", str(path), "--format", "debezium")
    refused = keptlog(*change)
    assert (refused.code, refused.out) == (2, "")
    assert "changes.jsonl: line 1: the event does not have the value of 'document'" in refused.err
    accepted = keptlog(*change, "--accept-unavailable")
    assert accepted.out.startswith("appended 1 record")
    assert "values that did not change are not there, and a clean removes the rows before: document in 1 row" in (
        accepted.err
    )


def test_a_connectors_own_placeholder_is_refused_once_it_is_named(keptlog: Run, users: str, tmp_path: Path) -> None:
    path = tmp_path / "changes.jsonl"
    path.write_text(json.dumps({"key": {"id": 1}, "value": {"op": "u", "after": {"id": 1, "document": "gone"}}}))
    change = ("append", users, "--file", str(path), "--format", "debezium", "--unavailable-value-placeholder")
    assert "does not have the value of 'document', which did not change (gone)" in keptlog(*change, "gone").err
    assert keptlog("read", users).out == ""
    empty = keptlog(*change, "")
    assert (empty.code, "--unavailable-value-placeholder '' is empty: give what" in empty.err) == (2, True)
    assert keptlog(*change, "lost").out.startswith("appended 1 record")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {"key": ["a", "b", None], "value": ["1"] * 3},
            "3.parquet: row 3: topic users: record 21 can't be appended: it has no key, but the topic is compacted",
        ),
        ({"key": ["a", "b"], "value": ["1"] * 2, "timestamp": [1, -7]}, "3.parquet: row 2: timestamp -7 is no time"),
        ({"key": ["a"], "other": ["1"]}, "3.parquet: it has no column 'value' for value"),
    ],
)
def test_a_bad_record_in_the_third_file_leaves_nothing_appended_and_is_named(
    keptlog: Run, users: str, tmp_path: Path, bad: dict[str, object], message: str
) -> None:
    good = [parquet(tmp_path / f"{number}.parquet", key=["a"] * 9, value=["1"] * 9) for number in (1, 2)]
    third = parquet(tmp_path / "3.parquet", **bad)
    refused = keptlog("append", users, *(word for path in (*good, third) for word in ("--file", path)))
    assert refused.code == 2
    assert message in refused.err
    assert refused.err.rstrip().endswith("nothing was appended")
    assert refused.err.count("nothing was appended") == 1
    assert keptlog("read", users).out == ""


def test_offsets_are_kept_where_their_column_is_named(keptlog: Run, users: str, tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", key=["a", "b"], value=["1", "2"], kafka_offset=[40, 42])
    how = ("append", users, "--file", path, "--column", "offset=kafka_offset", "--partition", "0")
    said = keptlog(*how, "--source-topic", "app.users")
    assert said.out.splitlines()[1] == "  users-0: offsets 40..42"
    assert [each["offset"] for each in keptlog("read", users).json_lines] == [40, 42]
    again = keptlog(*how, "--source-topic", "app.users")
    assert (again.code, "row 1: offset 40 of partition 0 is there already" in again.err) == (2, True)
    skipped = keptlog(*how, "--source-topic", "app.users", "--skip-existing", "--json").json
    assert (skipped["records"], skipped["skipped"]) == (0, 2)
    (tmp_path / "b.jsonl").write_text('{"key": "a", "value": "1"}\n')
    assert "is ingested from app.users" in keptlog("append", users, "--file", str(tmp_path / "b.jsonl")).err


def test_progress_goes_to_stderr_unless_quiet(
    keptlog: Run, users: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "REPORT_EVERY", 2)
    path = parquet(tmp_path / "a.parquet", key=["a"] * 4, value=["1"] * 4)
    assert keptlog("append", users, "--file", path).err.splitlines() == [
        "read 2 records, 50% of the bytes",
        "read 4 records, 100% of the bytes",
    ]
    assert keptlog("append", users, "--file", path, "--quiet").err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--column", "key"], "--column key: write FIELD=NAME, with one of key, value, timestamp"),
        (["--column", "topic=x"], "--column topic=x: write FIELD=NAME"),
        (["--column", "key=a", "--column", "key=b"], "key is 'a' already"),
        (["--column", "key=a"], "--column is about Parquet files, and there is none"),
        (["--table", "users"], "--table is about Debezium's events"),
        (["--rows-only"], "--rows-only is about Debezium's events"),
        (["--accept-unavailable"], "--accept-unavailable is about Debezium's events"),
        (["--unavailable-value-placeholder", "gone"], "--unavailable-value-placeholder is about Debezium's events"),
        (["--key-field", "id"], "--key-field is about Debezium's events"),
        (["--skip-existing"], "are about offsets: name their column"),
        (["--source-topic", "x"], "are about offsets: name their column"),
        (["--format", "csv"], "'csv' is not one of"),
        (["--file", "a.jsonl"], "is given 2 times"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    keptlog: Run, users: str, tmp_path: Path, options: list[str], message: str
) -> None:
    (tmp_path / "a.jsonl").write_text('{"key": "a", "value": "1"}\n')
    refused = keptlog("append", users, "--file", "a.jsonl", *options)
    assert refused.code == 2
    assert message in refused.err
    assert keptlog("read", users).out == ""


def test_what_is_piped_is_appended_without_a_file(keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog("topic", "create", "users")
    reading, writing = os.pipe()
    os.write(writing, b'{"key": "a", "value": "1"}\n')
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert keptlog("append", "users").out.startswith("appended 1 record (")
    assert [record["value"] for record in keptlog("read", "users").json_lines] == ["1"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_dash_is_standard_input_whatever_lies_there_under_that_name(
    keptlog: Run, users: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_folder: bool
) -> None:
    """A file of that name was taken for how much is piped, and a folder in place of what is piped."""
    monkeypatch.setattr(files, "REPORT_EVERY", 1)
    lies_there = tmp_path / "-" / "a.jsonl" if is_folder else tmp_path / "-"
    lies_there.parent.mkdir(exist_ok=True)
    lies_there.write_text('{"key": "lies there", "value": "1"}\n')
    reading, writing = os.pipe()
    os.write(writing, b'{"key": "piped", "value": "1"}\n')
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        appended = keptlog("append", users)
    assert appended.code == 0, appended.err
    assert [record["key"] for record in keptlog("read", users).json_lines] == ["piped"]
