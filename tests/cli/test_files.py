"""``keptlog files``: where the live segments lie, for engines that read Parquet only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.cli.conftest import Run

Lines = Callable[..., str]


@pytest.fixture
def users(keptlog: Run, lines: Lines) -> str:
    """Partition 1 has three records in two segments; partition 0 none."""
    keptlog("topic", "create", "a.users-v2", "--partitions", "2", "--config", "cleanup.policy=compact")
    here = {"partition": 1, "timestamp": 5}
    keptlog(
        "append", "a.users-v2", "--file", lines({"key": "a", "value": "1"} | here, {"key": "b", "value": ""} | here)
    )
    keptlog("append", "a.users-v2", "--file", lines({"key": "a", "value": None} | here))
    return "a.users-v2"


def _rows(sql: str, topic: str) -> list[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute(sql)
    return connection.table(f'"{topic}"').select("partition", "offset", "key", "value").order("ALL").fetchall()


def test_paths_of_live_segments_come_a_line_each_as_the_system_writes_them(keptlog: Run, users: str) -> None:
    paths = [Path(line) for line in keptlog("files", users).out.splitlines()]
    assert [path.name[:20] for path in paths] == ["0" * 20, f"{2:020d}"]
    assert all(path.is_file() for path in paths)


def test_json_says_what_is_in_each_file_and_where_each_partition_starts(keptlog: Run, users: str) -> None:
    keptlog("delete-records", users, "1", "1")
    shown = keptlog("files", users, "--json").json
    assert shown["log_start_offsets"] == {f"{users}-0": 0, f"{users}-1": 1}
    assert [each["path"] for each in shown["files"]] == keptlog("files", users).out.splitlines()
    assert [
        (each["topic_partition"], each["base_offset"], each["last_offset"], each["records"]) for each in shown["files"]
    ] == [
        (f"{users}-1", 0, 1, 2),
        (f"{users}-1", 2, 2, 1),
    ]


def test_duckdbs_view_has_all_records_from_the_log_start_on(keptlog: Run, users: str) -> None:
    everything = [(1, 0, b"a", b"1"), (1, 1, b"b", b""), (1, 2, b"a", None)]
    assert _rows(keptlog("files", users, "--duckdb").out, users) == everything
    keptlog("delete-records", users, "1", "1")
    assert _rows(keptlog("files", users, "--duckdb").out, users) == everything[1:]


def test_duckdbs_view_has_its_columns_also_when_nothing_is_left(keptlog: Run, users: str) -> None:
    def columns() -> list[tuple[object, ...]]:
        connection = duckdb.connect()
        connection.execute(keptlog("files", users, "--duckdb").out)
        return [row[:2] for row in connection.execute(f'DESCRIBE "{users}"').fetchall()]

    before = columns()
    keptlog("delete-records", users, "1", "--", "-1")
    assert keptlog("files", users).out == ""
    assert _rows(keptlog("files", users, "--duckdb").out, users) == []
    assert columns() == before


def test_a_home_whose_name_has_a_quote_is_quoted(
    keptlog: Run, lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "ada's 50%"))
    keptlog("topic", "create", "t")
    keptlog("append", "t", "--file", lines({"key": "a", "value": "1"}))
    assert _rows(keptlog("files", "t", "--duckdb").out, "t") == [(0, 0, b"a", b"1")]


def test_what_can_not_be_listed_is_said(keptlog: Run, users: str) -> None:
    assert "choose one" in keptlog("files", users, "--duckdb", "--json").err
    unknown = keptlog("files", "nobody")
    assert unknown.code == 2
    assert "no topic 'nobody'" in unknown.err
