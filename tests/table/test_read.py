"""Reads: one snapshot, in order, from an offset, the latest only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable, UnknownTopic
from keptlog.log.record import NewRecord
from keptlog.log.reference import ReferenceConfig, latest_values
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.storage import versions
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, write_watermark_file
from keptlog.table.catalogs.catalog import open_catalog
from tests.profiles import examples
from tests.strategies import STRATEGIES_WITH_VERSIONS, settings_of
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    append_each,
    clean,
    create,
    new_id,
    new_records,
    store_at,
    values,
)


def test_records_come_by_partition_and_offset(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=2)
    for number in (1, 0, 1):
        store.append(TOPIC, new_records(("a", "x"), ("b", "y"), partition=number), new_id(), NOW_MS)
    assert [(p, offset) for p, offset, _ in values(store)] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert [(p, offset) for p, offset, _ in values(store, partition=1, from_offset=3)] == [(1, 3)]


def test_an_offset_that_was_cleaned_away_is_still_a_place_to_begin(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "2"), ("a", "3")])
    clean(store)
    assert values(store, from_offset=0) == [(0, 1, b"2"), (0, 2, b"3")]
    assert values(store, from_offset=2) == [(0, 2, b"3")]
    assert values(store, from_offset=99) == []


def test_latest_gives_the_last_record_of_each_key_and_no_deleted_key(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "2"), ("c", "3")], [("b", None), ("a", "4"), ("d", "")])
    assert values(store, latest=True) == [(0, 2, b"3"), (0, 4, b"4"), (0, 5, b"")]
    assert values(store, latest=True, from_offset=4) == [(0, 4, b"4"), (0, 5, b"")]


def test_columns_that_are_asked_for_come_in_their_order_whatever_else_is_needed_to_judge(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "2"), ("a", "3"), ("b", None)])
    reader = store.reader(TOPIC)
    (log,) = reader.logs
    (latest,) = reader.tables(log, latest=True, columns=["timestamp_type", "key"])
    assert (latest.column_names, latest["key"].to_pylist()) == (["timestamp_type", "key"], [b"a"])
    snapshot = store.load_table(TOPIC).current_snapshot()
    assert snapshot
    assert reader.snapshot_id == snapshot.snapshot_id


_BATCH = st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.text(max_size=2))), max_size=6)


@given(batches=st.lists(_BATCH, max_size=4))
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_latest_is_what_the_specification_says(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, str | None]]]
) -> None:
    store = create(tmp_path_factory.mktemp("home"))
    append_each(store, *batches)
    everything = [record for _, record in store.read(TOPIC)]
    assert {record.key: record.value for _, record in store.read(TOPIC, latest=True)} == latest_values(everything)


def _long(version: int) -> bytes:
    return version.to_bytes(8, "big", signed=True)


_HEADERS = st.lists(st.sampled_from([("v", _long(1)), ("v", _long(-2)), ("v", b"3"), ("v", None), ("x", _long(9))]))
_RECORD = st.builds(
    NewRecord,
    key=st.sampled_from([b"a", b"b"]),
    value=st.sampled_from([None, b"1", b"2"]),
    timestamp_ms=st.integers(NOW_MS - 2, NOW_MS + 2),
    partition=st.just(0),
    headers=_HEADERS.map(tuple),
)
STRATEGIES = [settings_of(strategy) for strategy in STRATEGIES_WITH_VERSIONS]


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(batches=st.lists(st.lists(_RECORD, min_size=1, max_size=5), max_size=3), start=st.integers(0, 9))
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_latest_follows_the_strategy_wherever_it_is_read_from(
    tmp_path_factory: pytest.TempPathFactory, strategy: dict[str, str], batches: list[list[NewRecord]], start: int
) -> None:
    store = create(tmp_path_factory.mktemp("home"), config=strategy)
    for batch in batches:
        store.append(TOPIC, batch, new_id(), NOW_MS)
    everything = [record for _, record in store.read(TOPIC)]
    config = ReferenceConfig(strategy=strategy["compaction.strategy"], header="v")
    latest = latest_values(everything, config)
    assert {record.key: record.value for _, record in store.read(TOPIC, latest=True)} == latest
    from_start = {record.key: record for _, record in store.read(TOPIC, from_offset=start, latest=True)}
    assert {key: record.value for key, record in from_start.items() if key} == {
        key: latest[key] for key in latest if key in from_start
    }
    assert all(record.offset >= start for record in from_start.values())


@pytest.mark.parametrize("strategy", ["offset", "timestamp"])
def test_latest_looks_at_each_record_once_however_many_segments_there_are(
    tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    with_key = versions._with_key

    def recorded(records: pa.Table) -> pa.Table:
        looked_at.append(records.num_rows)
        return with_key(records)

    store = create(tmp_path, config={"compaction.strategy": strategy})
    append_each(store, *([(f"{number}", "v")] for number in range(12)))
    monkeypatch.setattr(versions, "_with_key", recorded)
    assert values(store, latest=True) == [(0, offset, b"v") for offset in range(12)]
    assert sum(looked_at) == 12


def test_a_deleted_keys_watermark_hides_a_late_record_of_a_lower_version(tmp_path: Path) -> None:
    store = create(tmp_path, config={"compaction.strategy": "timestamp"})
    append_each(store, [("a", "late"), ("b", "1")])
    path = f"{store.data_location(TOPIC)}/partition=0/watermarks"
    mark = {"key": [b"a"], "version": [NOW_MS + 1], "expires_ms": [2 * NOW_MS]}
    write_watermark_file(store.files, path, Strategy(StrategyKind.TIMESTAMP), pa.table(mark, schema=WATERMARKS_SCHEMA))
    store.load_table(TOPIC).transaction().set_properties({"log.p0.watermarks": path}).commit_transaction()
    assert values(store, latest=True) == [(0, 1, b"1")]
    assert values(store) == [(0, 0, b"late"), (0, 1, b"1")]
    store.alter_topic(TOPIC, {"compaction.strategy": "offset"})
    assert values(store, latest=True) == [(0, 0, b"late"), (0, 1, b"1")]


def test_a_read_that_began_before_a_clean_ends_before_it(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")], [("a", "3")])
    reading = store.read(TOPIC)
    first = next(reading)
    append_each(store, [("a", "4")])
    clean(store)
    assert [record.value for _, record in [first, *reading]] == [b"1", b"2", b"3"]


def test_an_older_snapshot_reads_as_it_was(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    before = store.describe_topic(TOPIC).snapshot_id
    clean(store)
    assert values(store, snapshot_id=before) == [(0, 0, b"1"), (0, 1, b"2")]
    assert values(store) == [(0, 1, b"2")]


def test_a_snapshot_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    with pytest.raises(InvalidConfig, match="no snapshot 42"):
        store.read(TOPIC, snapshot_id=42)


def test_a_partition_that_does_not_exist_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UnknownTopic, match="partition 1"):
        create(tmp_path).read(TOPIC, partition=1)


def test_a_segment_that_was_purged_under_the_reader_ends_the_read_with_an_error(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    reading = store.read(TOPIC)
    next(reading)
    replaced = store.logs(TOPIC)[0].segments[1].path
    clean(store)
    append_each(store, [("a", "3")])
    clean(store)
    store.files.delete(replaced)
    with pytest.raises(StorageUnavailable, match="read again"):
        next(reading)


@pytest.mark.parametrize("latest", [False, True])
def test_a_live_segment_that_is_missing_is_corruption_and_named(tmp_path: Path, *, latest: bool) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    path = store.logs(TOPIC)[0].segments[1].path
    store.files.delete(path)
    with pytest.raises(
        LogCorrupt, match=rf"^{TOPIC}-0: segment {path} .* is missing from storage .* put the file back"
    ):
        list(store.read(TOPIC, latest=latest))


@pytest.mark.parametrize("latest", [False, True])
def test_a_segment_that_was_cut_short_is_corruption_and_named(tmp_path: Path, *, latest: bool) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    path = store.logs(TOPIC)[0].segments[0].path
    local = Path(path.removeprefix("file://"))
    local.write_bytes(local.read_bytes()[:300])
    with pytest.raises(LogCorrupt, match=f"^{path} has 300 bytes"):
        list(store.read(TOPIC, latest=latest))


def test_live_watermarks_that_are_missing_are_corruption_and_named(tmp_path: Path) -> None:
    store = create(tmp_path, config={"compaction.strategy": "timestamp"})
    append_each(store, [("a", "late")])
    path = f"{store.data_location(TOPIC)}/watermarks/gone.arrow"
    store.load_table(TOPIC).transaction().set_properties({"log.p0.watermarks": path}).commit_transaction()
    with pytest.raises(LogCorrupt, match=rf"^{TOPIC}-0: file {path} with its watermarks is missing from storage"):
        values(store, latest=True)


def test_what_lies_before_the_log_start_is_not_read(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "2"), ("a", "3")])
    with open_catalog(tmp_path).load_table(("keptlog", TOPIC)).transaction() as transaction:
        transaction.set_properties({"log.p0.log-start-offset": "1"})
    assert values(store) == [(0, 1, b"2"), (0, 2, b"3")]
    assert store.logs(TOPIC)[0].log_start_offset == 1


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"log.p0.log-end-offset": "1"}, "ends at 1"),
        ({"log.p0.log-end-offset": "many"}, "is no offset"),
        ({"log.p0.log-end-offset": "9" * 40}, "is no offset"),
        ({"log.p0.log-end-offset": "9" * 5000}, "is no offset"),
        ({"log.p0.log-start-offset": "99"}, "log-start-offset=99 lies behind the end of the log, 2; set it back"),
        ({"log.partitions": "1"}, "log.partitions=1 is too low, for there is log.p1.log-end-offset; set it back"),
    ],
)
def test_a_log_that_contradicts_itself_is_corrupt(tmp_path: Path, properties: dict[str, str], said: str) -> None:
    store = create(tmp_path, partitions=2)
    for number in range(2):
        store.append(TOPIC, new_records(("a", "1"), ("a", "2"), partition=number), new_id(), NOW_MS)
    with open_catalog(tmp_path).load_table(("keptlog", TOPIC)).transaction() as transaction:
        transaction.set_properties(properties)
    with pytest.raises(LogCorrupt, match=said):
        store_at(tmp_path).logs(TOPIC)
