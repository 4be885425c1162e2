"""Rows of files keep their offsets: in one commit, rising, never twice, and a broker can go on behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.ingest.offset_files import FileIngest, FileIntake
from keptlog.log.record import NewRecord, Record
from keptlog.log.source import SourceIdentity, SourceLog, SourceTopic, plan_ingest
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.files import FileSet, Reading
from keptlog.table.changes import partition_writers
from keptlog.table.changes.truncate import Truncation
from keptlog.table.store import LogStore
from tests.table.stores import NOW_MS, TOPIC, create, files_below, new_id, values

COLUMNS = {"offset": "at", "partition": "p"}


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return create(tmp_path, partitions=2)


def write(path: Path, *rows: tuple[int | None, int | None], key: Sequence[str | None] | None = None) -> str:
    """A file with rows of partition and offset."""
    columns = {
        "p": pa.array([partition for partition, _ in rows], pa.int32()),
        "at": pa.array([offset for _, offset in rows], pa.int64()),
        "key": pa.array(key or [f"k{offset}" for _, offset in rows], pa.string()),
        "value": [f"{partition}/{offset}" for partition, offset in rows],
        "timestamp": [NOW_MS] * len(rows),
    }
    pq.write_table(pa.table(columns), path, row_group_size=3)
    return str(path)


def files(*paths: str) -> FileSet:
    return FileSet(paths, Reading(NOW_MS, columns=COLUMNS))


def ingest(store: LogStore, what: FileSet, *, skip_existing: bool = False, source: str = "there") -> list[FileIntake]:
    return FileIngest(store, TOPIC, SourceIdentity(source), new_id(), new_id, skip_existing).ingest(what)


def test_rows_keep_offsets_with_their_gaps_and_new_partitions_come_up(store: LogStore, tmp_path: Path) -> None:
    first = write(tmp_path / "1.parquet", (0, 5), (3, 0), (0, 6), (3, 1))
    second = write(tmp_path / "2.parquet", (0, 10), (0, 12))
    ingested = ingest(store, files(first, second))
    assert values(store) == [
        *((0, offset, f"0/{offset}".encode()) for offset in (5, 6, 10, 12)),
        *((3, offset, f"3/{offset}".encode()) for offset in (0, 1)),
    ]
    assert [(log.log_start_offset, log.log_end_offset) for log in store.logs(TOPIC)] == [
        (5, 13),
        (0, 0),
        (0, 0),
        (0, 2),
    ]
    assert [(each.partition, each.first_offset, each.last_offset, each.records) for each in ingested] == [
        (0, 5, 12, 4),
        (3, 0, 1, 2),
    ]
    stored = store.source_of(TOPIC)
    assert stored.source == SourceIdentity("there")
    assert stored.positions[0] == 13


def test_a_broker_goes_on_behind_what_files_have_brought(store: LogStore, tmp_path: Path) -> None:
    ingest(store, files(write(tmp_path / "1.parquet", (0, 5), (0, 12))))
    there = SourceTopic(SourceIdentity("there", "its id", "broker:9092"), (SourceLog(0, 9, 20), SourceLog(1, 3, 4)))
    stored = store.source_of(TOPIC)
    plan = plan_ingest(TOPIC, stored, there)
    assert [(each.partition, each.from_offset, each.end_offset) for each in plan.ranges] == [(0, 13, 20), (1, 3, 4)]
    assert not plan.stopped


def test_every_field_comes_along(store: LogStore, tmp_path: Path) -> None:
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None], pairs)
    rows = {"key": [b"\xff", b""], "value": [None, b""], "timestamp": [7, -1], "headers": headers, "at": [3, 4]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    ingest(
        store, FileSet([str(tmp_path / "a.parquet")], Reading(NOW_MS, columns=COLUMNS | {"partition": ""}, partition=1))
    )
    assert [record for _, record in store.read(TOPIC)] == [
        Record(3, b"\xff", None, 7, headers=(("h", b"1"), ("h", None))),
        Record(4, b"", b"", -1),
    ]


def test_rows_that_are_there_are_refused_and_left_out_where_that_is_asked_for(store: LogStore, tmp_path: Path) -> None:
    ingest(store, files(write(tmp_path / "1.parquet", (0, 0), (0, 1), (1, 7))))
    more = write(tmp_path / "2.parquet", (0, 2), (0, 3), (1, 7), (1, 8))
    what = files(more)
    with pytest.raises(
        InvalidRecord, match=r"offset 7 of partition 1 is there already, the log ends at 8: .*--skip-ex"
    ):
        ingest(store, what)
    assert what.place.number == 3
    assert len(values(store)) == 3
    assert [(each.records, each.skipped) for each in ingest(store, files(more), skip_existing=True)] == [(2, 0), (1, 1)]
    assert [(partition, offset) for partition, offset, _ in values(store)] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 7),
        (1, 8),
    ]
    before = store.metadata_locations()
    assert [each.skipped for each in ingest(store, files(more), skip_existing=True)] == [2, 2]
    assert store.metadata_locations() == before


@pytest.mark.parametrize(
    ("rows", "number", "message"),
    [
        ([(0, 7), (1, 3), (0, 7)], 3, "offset 7 of partition 0 does not rise, 7 came before it"),
        ([(0, 7), (0, 9), (0, 8), (1, 1), (1, 1)], 3, "offset 8 of partition 0 does not rise, 9 came before it"),
        ([(0, 4)], 1, "offset 4 of partition 0 does not rise, 5 came before it: give the files in the order"),
        ([(0, 7), (0, 8), (0, 9), (0, 10), (0, 10)], 5, "offset 10 of partition 0 does not rise"),
        ([(0, 7), (None, 8), (0, 7)], 2, r"it has no partition: name its column \(--column partition=NAME\), or say"),
        ([(0, 7), (10_000, 8)], 2, "its partition does not exist: use 0 to 9999"),
        ([(0, 7), (0, None)], 2, "offset is null"),
        ([(0, 7), (0, -1)], 2, "offset -1: it must be 0 or more"),
    ],
)
def test_a_bad_row_of_the_second_file_is_named_and_nothing_is_left_of_the_first(
    store: LogStore, tmp_path: Path, rows: list[tuple[int | None, int | None]], number: int, message: str
) -> None:
    what = files(write(tmp_path / "1.parquet", (0, 4), (0, 5)), write(tmp_path / "2.parquet", *rows))
    before = store.metadata_locations()
    with pytest.raises(InvalidRecord, match=message):
        ingest(store, what)
    assert str(what.place) == f"{tmp_path}/2.parquet: row {number}"
    assert store.metadata_locations() == before
    assert files_below(tmp_path) == set()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (None, "it has no partition, its folder is partition=1: append each such folder by itself, this one with "),
        (0, "it is not of partition 0, its folder is partition=1: append each such folder by itself, this one with "),
    ],
)
def test_rows_whose_folder_is_their_partition_land_in_no_other(
    store: LogStore, tmp_path: Path, said: int | None, message: str
) -> None:
    """Where the column was missing, --partition was advised: with that the rows of all folders landed in one log."""
    paths = []
    for number, rows in enumerate([[(None, 4), (None, 5)], [(None, 7)]]):
        folder = tmp_path / f"topic=t/partition={number}"
        folder.mkdir(parents=True)
        paths.append(write(folder / "part-0.parquet", *rows))
    with pytest.raises(InvalidRecord, match=f"{message}--partition 1; .* rename the folder"):
        ingest(store, FileSet(paths if said == 0 else paths[1:], replace(files().reading, partition=said)))
    for number, path in enumerate(paths):
        (intake,) = ingest(store, FileSet([path], replace(files().reading, partition=number)))
        assert (intake.partition, intake.records) == (number, 2 - number)


def test_a_folder_whose_number_no_partition_has_means_something_else(store: LogStore, tmp_path: Path) -> None:
    """partition=20240101 of a day was refused, and --partition 20240101 advised, which is refused too."""
    folder = tmp_path / "partition=20240101"
    folder.mkdir()
    path = write(folder / "part-0.parquet", (None, 4))
    with pytest.raises(InvalidRecord, match="it has no partition: name its column"):
        ingest(store, files(path))
    (intake,) = ingest(store, FileSet([path], replace(files().reading, partition=0)))
    assert (intake.partition, intake.records) == (0, 1)


def test_what_was_written_already_is_deleted_if_a_later_row_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_writers, "HELD_BYTES", 1)
    store = create(tmp_path, partitions=2, config={"internal.segment.bytes": "1"})
    good = write(tmp_path / "1.parquet", *((number % 2, number) for number in range(50)))
    with pytest.raises(InvalidRecord, match="does not rise"):
        ingest(store, files(good, write(tmp_path / "2.parquet", (0, 1))))
    assert files_below(tmp_path) == set()
    assert [each.records for each in ingest(store, files(good))] == [25, 25]


def test_a_compacted_topic_takes_no_row_without_a_key(store: LogStore, tmp_path: Path) -> None:
    what = files(write(tmp_path / "1.parquet", (0, 4), (0, 5), key=["k", None]))
    with pytest.raises(InvalidRecord, match="it has no key, but the topic is compacted"):
        ingest(store, what)
    assert what.place.number == 2


def test_a_topic_with_records_of_its_own_or_of_elsewhere_takes_no_others(store: LogStore, tmp_path: Path) -> None:
    path = write(tmp_path / "1.parquet", (0, 4))
    store.append(TOPIC, [NewRecord(b"k", b"v", NOW_MS)], new_id(), NOW_MS)
    with pytest.raises(InvalidConfig, match="has records of its own"):
        ingest(store, files(path))
    other = create(tmp_path / "other")
    ingest(other, files(path))
    with pytest.raises(InvalidConfig, match=r"comes from there, not from elsewhere: .*--source-topic there"):
        ingest(other, files(write(tmp_path / "2.parquet", (0, 5))), source="elsewhere")


def test_lines_keep_no_offsets(store: LogStore, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(InvalidConfig, match="only rows of Parquet files keep offsets"):
        ingest(store, files(str(tmp_path / "a.jsonl")))


def test_files_that_come_again_under_their_run_id_after_a_truncation_come_in_again(
    store: LogStore, tmp_path: Path
) -> None:
    name = write(tmp_path / "1.parquet", (0, 5), (0, 6))
    for _ in range(3):
        FileIngest(store, TOPIC, SourceIdentity("there"), "day-1", new_id).ingest(files(name))
        assert [offset for _, offset, _ in values(store)] == [5, 6]
        Truncation(TopicPartition(TOPIC, 0), 5, new_id(), new_id).commit(store.committer, store.files)
        assert values(store) == []
