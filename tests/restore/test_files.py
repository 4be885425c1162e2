"""A topic's records in a file: all of one snapshot, in order, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EACCES, EINVAL, EIO, ENOSPC
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.errors import Action, InvalidConfig, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.passes.restore_to_file import restore_to_json_lines, restore_to_parquet
from keptlog.sinks import new_file as new_file_module
from keptlog.sinks.new_file import new_file
from keptlog.sources.json_lines import from_json
from keptlog.table.store import LogStore
from tests.logs import open_store

NOW_MS = 1_700_000_000_000
HEADERS = (("a", b"\xff"), ("a", None), ("é", b""))
RECORDS = [
    NewRecord(b"a", b"1", NOW_MS, 1),
    NewRecord(b"b", None, NOW_MS + 1, 0),
    NewRecord(b"\xff\x00", b"", -1, 1, HEADERS),
    NewRecord(b"a", b"2", 0, 1),
    NewRecord(b"", b"empty key", NOW_MS, 0),
    NewRecord(b"b", b"3", NOW_MS, 0),
    NewRecord(b"b", None, NOW_MS, 0),
]
WRITERS = [restore_to_json_lines, restore_to_parquet]


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = open_store(tmp_path / "home")
    store.create_topic("t", 3, {"cleanup.policy": "compact"})
    for start in (0, 3):
        store.append("t", RECORDS[start : start + 3 if start == 0 else None], new_id(), NOW_MS)
    return store


def told(_line: str) -> None:
    pass


def test_json_lines_give_the_same_log_when_they_are_appended(store: LogStore, tmp_path: Path) -> None:
    with (tmp_path / "t.jsonl").open("wb") as sink:
        assert restore_to_json_lines(store.reader("t"), sink, told) == len(RECORDS)
    store.create_topic("again", 3, {"cleanup.policy": "compact"})
    with (tmp_path / "t.jsonl").open("rb") as lines:
        store.append("again", [from_json(line, now_ms=NOW_MS) for line in lines], new_id(), NOW_MS)
    assert list(store.read("again")) == list(store.read("t"))


def test_parquet_has_every_record_where_it_stood(store: LogStore, tmp_path: Path) -> None:
    with (tmp_path / "t.parquet").open("wb") as sink:
        assert restore_to_parquet(store.reader("t"), sink, told) == len(RECORDS)
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column_names == ["key", "value", "timestamp", "headers", "partition", "offset"]
    times = [time_us // 1000 for time_us in table["timestamp"].cast(pa.int64()).to_pylist()]
    headers = [tuple((each["key"], each["value"]) for each in some) for some in table["headers"].to_pylist()]
    rest = (table[name].to_pylist() for name in ("partition", "offset", "key", "value"))
    assert list(zip(*rest, times, headers, strict=True)) == [
        (partition, record.offset, record.key, record.value, record.timestamp_ms, record.headers)
        for partition, record in store.read("t")
    ]


def test_of_a_topic_without_records_parquet_has_the_columns(store: LogStore, tmp_path: Path) -> None:
    store.create_topic("empty", 1, {})
    with (tmp_path / "t.parquet").open("wb") as sink:
        assert restore_to_parquet(store.reader("empty"), sink, told) == 0
    with (tmp_path / "full.parquet").open("wb") as sink:
        restore_to_parquet(store.reader("t"), sink, told)
    assert pq.read_schema(tmp_path / "t.parquet") == pq.read_schema(tmp_path / "full.parquet")


@pytest.mark.parametrize("write", WRITERS)
def test_latest_leaves_out_what_is_superseded_or_deleted(
    store: LogStore, tmp_path: Path, write: Callable[..., int]
) -> None:
    with (tmp_path / "t").open("wb") as sink:
        assert write(store.reader("t"), sink, told, latest=True) == len(list(store.read("t", latest=True))) == 3


@pytest.mark.parametrize("write", WRITERS)
def test_what_is_appended_meanwhile_does_not_get_in(store: LogStore, tmp_path: Path, write: Callable[..., int]) -> None:
    reader = store.reader("t")
    store.append("t", [NewRecord(b"late", b"", NOW_MS, 0)], new_id(), NOW_MS)
    with (tmp_path / "t").open("wb") as sink:
        assert write(reader, sink, told) == len(RECORDS)


def test_a_file_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    with new_file(tmp_path / "f", "run", overwrite=False) as sink:
        sink.write(b"half")
        assert not (tmp_path / "f").exists()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"half"}


def test_a_file_and_its_name_are_durable(tmp_path: Path, synced: set[int]) -> None:
    """Its folder was not: a loss of power could take the name from a file of which it was said that it is there."""
    with new_file(tmp_path / "f", "run", overwrite=False) as sink:
        sink.write(b"whole")
    assert synced == {(tmp_path / "f").stat().st_ino, tmp_path.stat().st_ino}


@pytest.mark.parametrize("number", [EACCES, EINVAL])
def test_a_folder_that_can_t_be_synced_for_this_user_or_at_all_gets_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(new_file_module, "sync", refuse)
    with new_file(tmp_path / "f", "run", overwrite=False) as sink:
        sink.write(b"whole")
    assert (tmp_path / "f").read_bytes() == b"whole"


def test_a_name_that_may_be_lost_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise OSError(EIO, os.strerror(EIO))

    monkeypatch.setattr(new_file_module, "sync", fail)
    refused = pytest.raises(StorageUnavailable, match="it has its name, which a loss of power may take from it")
    with refused, new_file(tmp_path / "f", "run", overwrite=False) as sink:
        sink.write(b"whole")
    assert (tmp_path / "f").read_bytes() == b"whole"


def test_what_fails_leaves_nothing_and_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"before")

    def stop_halfway() -> None:
        with new_file(tmp_path / "f", "run", overwrite=True) as sink:
            sink.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_halfway()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"before"}


def test_a_file_is_overwritten_only_if_told(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"before")
    with pytest.raises(InvalidConfig, match="--overwrite"), new_file(tmp_path / "f", "run", overwrite=False):
        pytest.fail("it was opened")
    with new_file(tmp_path / "f", "run", overwrite=True) as sink:
        sink.write(b"after")
    assert (tmp_path / "f").read_bytes() == b"after"


def test_a_disk_that_is_full_is_one_clear_error(tmp_path: Path) -> None:
    def write_to_full_disk() -> None:
        with new_file(tmp_path / "f", "run", overwrite=False), Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"x")

    with pytest.raises(StorageUnavailable, match="No space left on device; nothing is there"):
        write_to_full_disk()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_leaves_the_file_that_was_to_be_replaced_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(b"before")
    refused = pytest.raises(StorageUnavailable, match="No space left on device; the file of before is as it was")
    with refused, new_file(path, "run-1", overwrite=True):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize(
    ("number", "action", "todo"),
    [
        (ENOSPC, Action.FIX_STORAGE, ": make room, then run it again"),
        (EACCES, Action.FIX_STORAGE, ": let this user write there, then run it again"),
        (EIO, Action.RETRY, ""),
    ],
)
def test_what_stays_so_is_not_to_be_tried_again_before_somebody_mends_it(
    tmp_path: Path, number: int, action: Action, todo: str
) -> None:
    """A program was told to retry on a disk that is full."""
    with pytest.raises(StorageUnavailable) as refused, new_file(tmp_path / "f", "run", overwrite=False):
        raise OSError(number, os.strerror(number))
    assert refused.value.action is action
    assert str(refused.value).endswith(f"nothing is there{todo}")


@pytest.mark.parametrize("write", WRITERS)
def test_progress_is_told_by_the_record_and_not_by_the_segment(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., int]
) -> None:
    monkeypatch.setattr("keptlog.passes.restore_to_file._PROGRESS_EVERY", 6)
    lines: list[str] = []
    with (tmp_path / "file").open("wb") as sink:
        write(store.reader("t"), sink, lines.append)
    assert len(store.logs("t")[0].segments) + len(store.logs("t")[1].segments) > 1
    assert len(lines) == 1
