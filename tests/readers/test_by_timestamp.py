"""``compaction.strategy=timestamp``: the page's query is ``keptlog read --latest``, with the one exception it names."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest
from pyspark.sql import SparkSession

from keptlog.log.record import NewRecord
from keptlog.log.steps import Expire
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import carry_out, open_store
from tests.readers.conftest import Rows, rows_of
from tests.readers.page import blocks, run
from tests.readers.prepared import DAY_MS, NOW_MS, TOPIC

CONFIG = {
    "cleanup.policy": "compact",
    "compaction.strategy": "timestamp",
    "delete.retention.ms": str(DAY_MS),
    "keptlog.watermark.retention.ms": str(30 * DAY_MS),
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """A late record of ``a``, a deleted ``b`` with a late record, and two records of ``c`` with one timestamp."""
    monkeypatch.chdir(tmp_path)
    store = open_store(tmp_path / ".keptlog")
    store.create_topic(TOPIC, 1, CONFIG)
    entries = [("a", "new", 9), ("a", "late", 5), ("b", "1", 9), ("b", None, 20), ("b", "late", 15)]
    _append(store, *entries, ("c", "first", 7), ("c", "last", 7))
    return store


def _append(store: LogStore, *entries: tuple[str, str | None, int]) -> None:
    records = [
        NewRecord(key.encode(), None if value is None else value.encode(), NOW_MS + time_ms)
        for key, value, time_ms in entries
    ]
    store.append(TOPIC, records, None, NOW_MS)


def _clean(store: LogStore, now_ms: int) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files))
    assert carry_out(cleaner, cleaner.plan(now_ms=now_ms, requested=True), f"clean-{now_ms}").committed


def _answers(spark: SparkSession) -> list[Rows]:
    """What the query gives in each engine."""
    query = blocks()["sql", "latest-by-timestamp"]
    in_arrow = run("catalog", "table", "pyiceberg")["users"]
    run("catalog", "table", "spark-files")
    in_polars = pl.SQLContext(users=run("catalog", "table", "polars")["users"]).execute(query, eager=True)
    in_duckdb = duckdb.connect().register("users", in_arrow).sql(query)
    return [rows_of(table) for table in (in_polars.to_arrow(), in_duckdb.to_arrow_table(), spark.sql(query).toArrow())]


def test_before_and_after_a_clean_the_query_is_right(store: LogStore, spark: SparkSession) -> None:
    before = list(store.read(TOPIC, latest=True))
    assert [record.value for _, record in before] == [b"new", b"last"]
    assert _answers(spark) == [before] * 3
    _clean(store, NOW_MS + 10 * DAY_MS)
    assert _answers(spark) == [before] * 3


def test_a_record_later_than_its_deletion_shows_until_the_next_clean(store: LogStore, spark: SparkSession) -> None:
    _clean(store, NOW_MS + 10 * DAY_MS)
    cleaner = Cleaner(store, in_process_engine(store.files))
    assert carry_out(cleaner, cleaner.plan(now_ms=NOW_MS + 12 * DAY_MS), "expire", [Expire]).committed
    right = list(store.read(TOPIC, latest=True))
    _append(store, ("b", "later still", 19))

    assert list(store.read(TOPIC, latest=True)) == right
    assert [[record.value for _, record in answer] for answer in _answers(spark)] == [
        [b"new", b"last", b"later still"]
    ] * 3
    _clean(store, NOW_MS + 13 * DAY_MS)
    assert _answers(spark) == [right] * 3
