"""How many requests of an object store an append and a clean cost, counted where they arrive."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.engine.tasks import Sizes
from keptlog.log.result import RewriteResult
from keptlog.passes.observer import observe
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.table.buckets import ABucket, new_bucket
from tests.table.counted_s3 import CountedS3, counted_s3
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, new_id, new_records, step_for


@pytest.fixture(scope="module")
def server() -> Iterator[CountedS3]:
    with counted_s3() as counted:
        yield counted


@pytest.fixture
def s3(server: CountedS3) -> Iterator[CountedS3]:
    server.forget()
    yield server
    server.refuse = lambda _: None


@pytest.fixture
def bucket(s3: CountedS3) -> ABucket:
    return new_bucket(s3.endpoint, None)


@pytest.fixture
def store(bucket: ABucket, tmp_path: Path) -> LogStore:
    """A lake: its catalog is a database elsewhere, all else is in the bucket."""
    return store_in(bucket, tmp_path)


def store_in(bucket: ABucket, folder: Path) -> LogStore:
    warehouse = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"s3://{bucket.name}/warehouse"}
    file_io = {"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"}
    catalog = SqlCatalog("keptlog", **warehouse, **file_io, **dict(bucket.properties))
    return LogStore(catalog, {}, time.sleep, new_id)


def append(store: LogStore, partitions: int) -> None:
    records = [
        record
        for partition in range(partitions)
        for number in range(20)
        for record in new_records((f"key-{number % 7}", "value" * 10), partition=partition)
    ]
    store.append(TOPIC, records, new_id(), NOW_MS)


def filled(store: LogStore, partitions: int, batches: int) -> None:
    store.create_topic(TOPIC, partitions, COMPACTED)
    for _ in range(batches):
        append(store, partitions)


def rewrite(store: LogStore) -> list[RewriteResult]:
    steps = [step_for(log) for log in store.logs(TOPIC)]
    return in_process_engine(store.files, Sizes()).rewrite(steps, {TOPIC: store.data_location(TOPIC)}, new_id())


@pytest.mark.parametrize(("partitions", "requests"), [(1, 7), (10, 25)])
def test_an_append_reads_once_and_writes_each_file_with_one_request(
    store: LogStore, s3: CountedS3, partitions: int, requests: int
) -> None:
    """Metadata and manifest list are read, each staged file is looked for; manifest, list and metadata are written."""
    filled(store, partitions, 1)
    s3.forget()
    append(store, partitions)
    assert s3.kinds() == {"GET": 2 + partitions, "PUT": partitions + 3}
    assert len(s3.requests) == requests


@pytest.mark.parametrize(("partitions", "rewriting", "committing"), [(1, 4, 7), (10, 40, 16)])
def test_a_clean_reads_each_segment_once_and_writes_each_file_with_one_request(
    store: LogStore, s3: CountedS3, partitions: int, rewriting: int, committing: int
) -> None:
    filled(store, partitions, 3)
    steps = [step_for(log) for log in store.logs(TOPIC)]
    location = store.data_location(TOPIC)
    s3.forget()
    outcomes = in_process_engine(store.files, Sizes()).rewrite(steps, {TOPIC: location}, new_id())
    assert [len(outcome.removed) for outcome in outcomes] == [3] * partitions
    assert s3.kinds() == {"GET": 3 * partitions, "PUT": partitions}
    assert len(s3.requests) == rewriting
    s3.forget()
    store.swap(TOPIC, outcomes, new_id())
    assert len(s3.requests) == committing
    assert len(list(store.read(TOPIC))) == 7 * partitions


def test_a_log_is_planned_with_a_request_for_each_file_of_its_metadata(store: LogStore, s3: CountedS3) -> None:
    filled(store, 1, 3)
    again = LogStore(store.committer.catalog, {}, time.sleep, new_id)
    s3.forget()
    assert len(again.logs(TOPIC)[0].segments) == 3
    assert s3.kinds() == {"GET": 5}


@pytest.mark.parametrize(("names", "more"), [([], 1), ([TOPIC], 0), ([f"{TOPIC}-0"], 0)])
def test_who_only_looks_at_logs_asks_for_each_file_of_their_metadata_once(
    store: LogStore, s3: CountedS3, names: list[str], more: int
) -> None:
    """As ``keptlog plan`` and ``keptlog status`` do. Who looks at all asks each store once whether it answers."""
    filled(store, 1, 3)
    again = LogStore(store.committer.catalog, {}, time.sleep, new_id)
    s3.forget()
    assert len(observe(again, names, now_ms=NOW_MS).assessments) == 1
    assert s3.kinds() == {"GET": 5 + more}


def test_a_topic_is_read_with_a_request_for_each_of_its_files(store: LogStore, s3: CountedS3) -> None:
    filled(store, 1, 3)
    s3.forget()
    assert len(list(store.read(TOPIC))) == 60
    assert s3.kinds() == {"GET": 5 + 3}


def test_segments_of_one_task_are_asked_for_side_by_side(store: LogStore, s3: CountedS3) -> None:
    filled(store, 4, 3)
    s3.delay_seconds = 0.3
    try:
        rewrite(store)
    finally:
        s3.delay_seconds = 0.0
    assert s3.most_at_once > 2


def test_a_large_file_is_read_in_parts_and_written_in_parts(bucket: ABucket, s3: CountedS3) -> None:
    path, content = f"s3://{bucket.name}/large", bytes(12 * 2**20)
    bucket.files.write_bytes(path, content)
    s3.forget()
    with bucket.files.open_input(path, len(content)) as source:
        assert source.read_at(10, 5) == bytes(10)
    assert s3.kinds() == {"HEAD": 1, "GET": 1}
    assert bucket.files.read_bytes(path) == content


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 100_000])
def test_a_small_file_is_read_with_one_request_whether_its_size_is_known_or_not(
    bucket: ABucket, s3: CountedS3, content: bytes
) -> None:
    path = f"s3://{bucket.name}/small"
    bucket.files.write_bytes(path, content)
    s3.forget()
    assert bucket.files.read_bytes(path) == content
    with bucket.files.open_input(path, len(content)) as source:
        assert source.read() == content
    assert bucket.files.exists(path)
    assert s3.kinds() == {"GET": 3}
