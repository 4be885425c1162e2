"""What docs/readers.md warns of really goes wrong, and what it says instead goes right."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from keptlog.errors import LogCorrupt
from keptlog.log.record import Record
from tests.readers.conftest import rows_of
from tests.readers.page import run
from tests.readers.prepared import TOPIC, prepare

MAX_BY = "SELECT r.partition, r.key, {}(r.value, r.offset) AS value FROM users r WHERE r.key IS NOT NULL GROUP BY ALL"
KEY_VALUES = set[tuple[int, bytes, bytes]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".keptlog"


def _key_values(rows: list[tuple[int, Record]]) -> KEY_VALUES:
    return {(partition, record.key or b"", record.value or b"") for partition, record in rows}


def test_below_the_log_start_segments_hold_deleted_records_even_after_a_clean(home: Path) -> None:
    read = list(prepare(home, "cleaned").read(TOPIC))
    raw = rows_of(run("catalog", "table")["table"].scan().to_arrow())
    assert [row for row in raw if row not in read]
    assert [row for row in read if row not in raw] == []


def test_max_by_brings_deleted_keys_back_in_duckdb_and_arg_max_null_does_not(home: Path) -> None:
    store = prepare(home, "deleted up to the middle of a clean segment")
    connection = duckdb.connect().register("users", run("catalog", "table", "pyiceberg")["users"])
    right = _key_values(list(store.read(TOPIC, latest=True)))

    def answers(function: str) -> KEY_VALUES:
        return {row for row in connection.sql(MAX_BY.format(function)).fetchall() if row[2] is not None}

    assert answers("arg_max_null") == right
    assert answers("max_by") == answers("arg_max") > right


def test_max_by_takes_a_null_for_a_value_in_spark(home: Path, spark: SparkSession) -> None:
    store = prepare(home, "deleted up to the middle of a clean segment")
    run("catalog", "table", "spark-files")
    rows = spark.sql(MAX_BY.format("max_by")).collect()
    answers = {(row.partition, bytes(row.key), bytes(row.value)) for row in rows if row.value is not None}
    assert answers == _key_values(list(store.read(TOPIC, latest=True)))


def test_a_topic_that_another_engine_appended_to_is_refused_with_the_way_back(home: Path) -> None:
    store = prepare(home, "as appended")
    table = run("catalog", "table")["table"]
    rows = table.scan(row_filter="partition = 0 and offset < 5").to_arrow()
    table.append(rows)
    with pytest.raises(LogCorrupt, match="another program wrote it; keptlog repair"):
        store.read(TOPIC)


def test_a_topic_that_another_engine_appended_new_offsets_to_is_refused_too(home: Path) -> None:
    store = prepare(home, "as appended")
    table = run("catalog", "table")["table"]
    rows = table.scan(row_filter="partition = 0").to_arrow()
    later = rows.set_column(1, rows.schema.field(1), [[offset + 100 for offset in rows["offset"].to_pylist()]])
    table.append(later)
    with pytest.raises(LogCorrupt, match="another program wrote it; keptlog repair"):
        store.read(TOPIC)
