"""Fields that only a newer keptlog knows are read over, wherever JSON is stored; what is no such value is refused."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from keptlog.errors import LogCorrupt
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity, StoredSource
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff, Uncleanable
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, read_watermark_file, write_watermark_file
from keptlog.table.changes.mark import Failure
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    append_each,
    create,
    files_below,
    new_id,
    new_records,
    rewritten,
    staged,
    step_for,
    values,
)

LOG = TopicPartition(TOPIC, 0)
MARK = Uncleanable("no space", NOW_MS, 1, NOW_MS + 1)
LAST_PASS = LastPass(NOW_MS, 5, 100, 50, 2, 1000)
SOURCE = SourceIdentity("users", "id-1", "broker:9092")
BY_TIMESTAMP = Strategy(StrategyKind.TIMESTAMP)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return create(tmp_path)


def with_more(value: Any) -> str:
    """A value as a newer keptlog may store it."""
    return json.dumps(asdict(value) | {"colour": {"name": "blue"}})


def plant(store: LogStore, properties: Mapping[str, str]) -> None:
    store.load_table(TOPIC).transaction().set_properties(dict(properties)).commit_transaction()


def property_of(store: LogStore, name: str) -> Any:
    return json.loads(store.load_table(TOPIC).properties[name])


def test_a_mark_is_read_and_refuses_nothing(store: LogStore) -> None:
    plant(store, {"log.p0.uncleanable": with_more(MARK)})

    append_each(store, [("a", "1")], [("a", "2")])

    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]
    assert store.logs(TOPIC)[0].uncleanable == MARK


def test_a_mark_is_followed_by_the_next(store: LogStore) -> None:
    plant(store, {"log.p0.uncleanable": with_more(MARK)})

    store.mark_uncleanable(TOPIC, [Failure(LOG, "corrupt", None)], NOW_MS + 9, Backoff(10, 100))

    assert store.logs(TOPIC)[0].uncleanable == Uncleanable("corrupt", NOW_MS, 2, NOW_MS + 29, wait_ms=20)


def test_a_last_pass_is_read_and_followed_by_the_next(store: LogStore) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    plant(store, {"log.p0.last-pass": with_more(LAST_PASS)})
    assert observed_last_pass(store) == LAST_PASS

    later = replace(LAST_PASS, ended_ms=NOW_MS + 7)
    store.swap(TOPIC, [rewritten(store, step_for(store.logs(TOPIC)[0]))], new_id(), {LOG: later})

    assert observed_last_pass(store) == later


def observed_last_pass(store: LogStore) -> LastPass:
    return store.observe(TOPIC, store.metadata_locations()[TOPIC]).last_passes[LOG]


def test_a_source_is_read_and_keeps_what_is_not_known_of_it(store: LogStore) -> None:
    plant(store, {"log.source": with_more(replace(SOURCE, topic_id=None)), "log.p0.log-end-offset": "5"})
    assert store.source_of(TOPIC) == StoredSource(replace(SOURCE, topic_id=None), (5,))

    store.ingest(TOPIC, [Arrival(OffsetRange(0, 5, 5, 7), ())], SOURCE, 1, new_id())

    assert store.source_of(TOPIC) == StoredSource(SOURCE, (7,))
    assert property_of(store, "log.source") == json.loads(with_more(SOURCE))


def test_an_ingest_that_brings_nothing_new_leaves_a_source_as_it_was_written(store: LogStore) -> None:
    plant(store, {"log.source": with_more(SOURCE), "log.p0.log-end-offset": "5"})
    before = store.metadata_locations()

    store.ingest(TOPIC, [Arrival(OffsetRange(0, 5, 5, 5), ())], SOURCE, 1, new_id())

    assert store.metadata_locations() == before


def test_what_an_earlier_append_of_the_run_brought_is_told(store: LogStore) -> None:
    first = store.append(TOPIC, new_records(("a", "1"), ("b", "2")), "run-7", NOW_MS)
    told = [asdict(each) | {"colour": "blue"} for each in first.partitions]
    landed_as(store, "run-8", json.dumps(told))

    assert store.append(TOPIC, [], "run-8", NOW_MS) == replace(first, run_id="run-8", is_repeated=True)


def test_what_is_no_result_of_an_append_is_refused_with_its_run(store: LogStore) -> None:
    landed_as(store, "run-8", '[{"partition": 0}]')

    with pytest.raises(LogCorrupt, match=rf"topic {TOPIC}: run run-8: keptlog.appended=.*it has no base_offset"):
        store.append(TOPIC, [], "run-8", NOW_MS)


def landed_as(store: LogStore, run_id: str, appended: str) -> None:
    """Make a snapshot with this summary."""
    transaction = store.load_table(TOPIC).transaction()
    summary = {COMMIT_ID: run_id, "keptlog.appended": appended}
    transaction.update_snapshot(snapshot_properties=summary).fast_append().commit()
    transaction.commit_transaction()


def test_a_purge_finishes_a_journal(store: LogStore, tmp_path: Path) -> None:
    append_each(store, [("a", "1")])
    (orphan,) = staged(store, TOPIC, 0, [record for _, record in store.read(TOPIC)])
    file = {"path": orphan.path, "bytes": 7, "tier": "cold"}
    write_journal(store, {"snapshots": [7], "segments": [file], "metadata": [], "tables": []})

    receipt = store.purge(TOPIC, clock_ms())

    assert [each.path for each in receipt.deleted_files] == [orphan.path]
    assert len(files_below(tmp_path)) == 1
    assert [file.path for file in store.files.list(journals(store))] == []


@pytest.mark.parametrize("journal", [{"snapshots": [7]}, {"snapshots": ["7"], "segments": [], "metadata": []}, []])
def test_a_journal_that_is_none_is_left_where_it_is_and_named(store: LogStore, journal: Any) -> None:
    write_journal(store, journal)
    [what] = store.purge(TOPIC, clock_ms()).unreadable
    assert re.search(r"gc/left\.json=.* is no journal of a purge .*; keptlog purge sets it aside", what)
    assert len(list(store.files.list(journals(store)))) == 1


def journals(store: LogStore) -> str:
    return f"{store.describe_topic(TOPIC).location}/metadata/gc"


def write_journal(store: LogStore, journal: Any) -> None:
    store.files.write_bytes(f"{journals(store)}/left.json", json.dumps(journal).encode())


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


def test_watermarks_are_read_beside_other_columns_and_metadata(store: LogStore) -> None:
    path = f"{store.data_location(TOPIC)}/watermarks.arrow"
    marks = pa.table({"key": [b"a"], "version": [7], "expires_ms": [9]}, schema=WATERMARKS_SCHEMA)
    write_watermark_file(store.files, path, BY_TIMESTAMP, marks)
    with store.files.open_input(path) as source:
        written = pa.ipc.open_file(source).read_all()
    newer = written.add_column(1, "colour", pa.array(["blue"]))
    newer = newer.replace_schema_metadata(written.schema.metadata | {b"colour": b"blue"})
    write_ipc(store, path, newer)

    assert read_watermark_file(store.files, path, BY_TIMESTAMP, TOPIC).equals(marks, check_metadata=True)


@pytest.mark.parametrize("change", ["a column less", "a column of another type"])
def test_watermarks_of_other_columns_are_refused_with_their_file(store: LogStore, change: str) -> None:
    path = f"{store.data_location(TOPIC)}/watermarks.arrow"
    marks = pa.table({"key": ["a"], "version": [7], "expires_ms": [9]})
    other = marks.drop_columns("version") if change == "a column less" else marks
    write_ipc(store, path, other.replace_schema_metadata({b"compaction.strategy": str(BY_TIMESTAMP).encode()}))

    with pytest.raises(LogCorrupt, match=r"watermarks\.arrow has the columns key string, .* put the file back from"):
        read_watermark_file(store.files, path, BY_TIMESTAMP, TOPIC)


def write_ipc(store: LogStore, path: str, table: pa.Table) -> None:
    with store.files.open_output(path) as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.p0.uncleanable", "nonsense", "is no mark of a failed clean .*; remove it, and the log is tried again"),
        ("log.p0.uncleanable", "[]", "is no mark of a failed clean"),
        ("log.p0.uncleanable", "{}", "it has no reason"),
        (
            "log.p0.uncleanable",
            '{"reason": "x", "since_ms": 1, "attempts": 1, "retry_at_ms": "2"}',
            "retry_at_ms: it is '2', not a whole number",
        ),
        ("log.p0.last-pass", "nonsense", "is no record of a clean .*; remove it"),
        ("log.p0.last-pass", '{"ended_ms": 7}', "it has no duration_ms"),
        ("log.source", "{}", "is no source .*; set it back to the value in the table's metadata file before"),
    ],
)
def test_a_property_that_is_no_such_value_is_refused_with_its_name(
    store: LogStore, name: str, text: str, said: str
) -> None:
    plant(store, {name: text})
    with pytest.raises(LogCorrupt, match=rf"topic {TOPIC}: property {name}=.*{said}"):
        read_all(store)


def read_all(store: LogStore) -> None:
    store.source_of(TOPIC)
    store.observe(TOPIC, store.metadata_locations()[TOPIC])
