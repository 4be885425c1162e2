"""A search for keys and a drop of their records on a real Spark session, and that no key leaves a task."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from keptlog.engine.engine import Engine
from keptlog.errors import StorageUnavailable
from keptlog.home import new_id
from keptlog.log.record import Record
from keptlog.log.search import SearchedFile
from keptlog.passes.drop import Dropper
from keptlog.spark.jobs import spark_engine
from keptlog.storage.key_hash import KeyHasher
from keptlog.storage.throttle import Throttle
from keptlog.table.store import LogStore
from tests.logs import RealTwin, open_store
from tests.searching import Searcher

HASHER = KeyHasher(b"secret")
NOW_MS = 2_000_000_000_000
TOPIC = "t"
WANTED = HASHER.hash(b"key-7")


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Three segments of a log from a source, in each of which every key occurs twice."""
    store = open_store(tmp_path)
    store.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    twin = RealTwin(store, spark_engine(lambda: pytest.fail("nothing is cleaned"), store.files), TOPIC)
    for first in (0, 100, 200):
        records = [Record(first + n, b"key-%d" % (n % 50), b"value", NOW_MS) for n in range(100)]
        twin.ingest(records, first, first + 100)
    return store


@pytest.fixture
def engine(spark: SparkSession, store: LogStore) -> Engine:
    return spark_engine(lambda: spark, store.files)


def test_records_are_dropped_and_found_no_more_once_their_files_are_gone(store: LogStore, engine: Engine) -> None:
    said: list[str] = []
    searcher = Searcher(store, engine, HASHER)
    found = searcher.search(TOPIC, [WANTED], new_id(), progress=said.append)
    hits = [hit for each in found for hit in each.hits]
    assert sorted((hit.records, hit.lowest_offset, hit.highest_offset) for hit in hits) == [
        (2, 7, 57),
        (2, 107, 157),
        (2, 207, 257),
    ]
    assert not [each for each in found if each.problem]
    dropper = Dropper(store, engine, HASHER)
    (dropped,) = dropper.drop(
        store.describe_topic(TOPIC), {0: {WANTED: 200}}, new_id(), now_ms=NOW_MS, progress=said.append
    )
    assert dropped.dropped == 4
    assert [record.offset for _, record in store.read(TOPIC) if record.key == b"key-7"] == [207, 257]
    assert len(list(store.read(TOPIC))) == 296
    store.purge(TOPIC, NOW_MS + 10**10, 0)
    left = [hit for each in searcher.search(TOPIC, [WANTED], new_id()) for hit in each.hits]
    assert [(hit.records, hit.lowest_offset) for hit in left] == [(2, 207)]
    assert not [text for text in said if "key-7" in text]


def test_a_throttled_search_finds_the_same(spark: SparkSession, store: LogStore) -> None:
    engine = spark_engine(lambda: spark, store.files, throttle=Throttle(1e9, time.monotonic, time.sleep))
    found = Searcher(store, engine, HASHER).search(TOPIC, [WANTED], new_id())
    assert sum(hit.records for each in found for hit in each.hits) == 6
    assert not [each for each in found if each.problem]


def test_what_is_found_holds_no_key_and_no_secret(store: LogStore, engine: Engine) -> None:
    found = Searcher(store, engine, HASHER).search(TOPIC, [WANTED], new_id())
    told = pickle.dumps(found) + repr(found).encode()
    assert b"key-7" not in told
    assert b"secret" not in told


def test_a_file_that_is_gone_stops_no_search(store: LogStore, engine: Engine) -> None:
    gone = (SearchedFile(f"{store.data_location(TOPIC)}/gone.parquet", 9),)
    found = Searcher(store, engine, HASHER).search(TOPIC, [WANTED], new_id(), others=gone)
    assert [each.is_gone for each in found].count(True) == 1
    assert sum(bool(each.hits) for each in found) == 3


def test_spark_that_is_not_there_is_an_outage(store: LogStore) -> None:
    def nobody() -> SparkSession:
        raise StorageUnavailable("no Spark is there; start it")

    with pytest.raises(StorageUnavailable):
        Searcher(store, spark_engine(nobody, store.files), HASHER).search(TOPIC, [WANTED], new_id())
