"""A home that is not opened gives the records that an opened one gives, and the same errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, LogCorrupt, UnknownTopic
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.log.told.stored_files import live_paths
from keptlog.passes.readers import Readers, reader_standings
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore

NOW_MS = 1_000


def append(store: LogStore, value: bytes) -> None:
    store.append("users", [NewRecord(b"k", value, NOW_MS)], None, NOW_MS)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Of a home with a topic that was looked at since its last commit."""
    store = open_home(tmp_path).store
    store.create_topic("users", 2, {"cleanup.policy": "compact"})
    append(store, b"1")
    append(store, b"2")
    store.observe("users")
    return store


def never() -> LogStore:
    raise AssertionError("the store was opened")


@pytest.mark.parametrize("latest", [False, True])
@pytest.mark.parametrize("from_offset", [0, 1])
def test_what_is_remembered_is_read_without_opening(
    store: LogStore, tmp_path: Path, from_offset: int, *, latest: bool
) -> None:
    records = list(UnopenedStore(tmp_path, {}, never).read("users", None, from_offset, latest=latest))
    assert records
    assert records == list(store.read("users", None, from_offset, latest=latest))


def test_what_was_committed_since_is_read_from_the_table(store: LogStore, tmp_path: Path) -> None:
    append(store, b"3")
    records = list(UnopenedStore(tmp_path, {}, lambda: store).read("users"))
    assert [record.value for _, record in records] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("content", [None, b"cut short"])
def test_a_live_segment_that_is_missing_or_damaged_is_told_alike(
    store: LogStore, tmp_path: Path, content: bytes | None
) -> None:
    path = Path(next(path for log in store.logs("users") for path in live_paths(log)).removeprefix("file://"))
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(LogCorrupt) as opened:
        list(store.read("users"))
    with pytest.raises(LogCorrupt) as unopened:
        list(UnopenedStore(tmp_path, {}, lambda: store).read("users"))
    assert str(unopened.value) == str(opened.value)


def test_a_partition_or_a_topic_that_does_not_exist_is_refused_alike(store: LogStore, tmp_path: Path) -> None:
    for topic, partition in (("users", 2), ("nobody", None)):
        with pytest.raises((UnknownTopic, ValueError)) as opened:
            list(store.read(topic, partition))
        with pytest.raises(type(opened.value)) as unopened:
            list(UnopenedStore(tmp_path, {}, lambda: store).read(topic, partition))
        assert str(unopened.value) == str(opened.value)


def test_where_another_catalog_may_be_configured_all_is_asked_of_the_store(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__ELSEWHERE__URI", "http://127.0.0.1:1")
    unopened = UnopenedStore(tmp_path, {}, lambda: store)
    assert unopened.files == store.files
    assert type(unopened.load_table("users")) is Table
    assert unopened.readable_logs("users", 0) == store.reader("users", 0).logs
    assert unopened.observe("users").logs == store.observe("users").logs


def test_nothing_is_changed_through_the_files_of_a_home_that_is_not_opened(store: LogStore, tmp_path: Path) -> None:
    unopened = UnopenedStore(tmp_path, {}, never)
    location = unopened.load_table("users").location()
    with pytest.raises(InvalidConfig, match="to look alone"):
        unopened.files.write_bytes(f"{location}/metadata/new", b"")
    assert store.load_table("users").location() == location


def test_readers_of_a_topic_are_looked_at_each_time_though_no_commit_moves_them(
    store: LogStore, tmp_path: Path
) -> None:
    readers = Readers(store, lambda: "search")
    readers.add("users", "search", now_ms=NOW_MS)
    store.observe("users")
    for offset in (1, 2):
        readers.commit("users", "search", {0: offset})
        (first, _) = reader_standings(UnopenedStore(tmp_path, {}, never), ["users"], now_ms=NOW_MS)
        assert (first.position, first.lag) == (offset, 2 - offset)
        assert reader_standings(store, ["users"], now_ms=NOW_MS)[0] == first


def test_a_look_at_one_topic_does_not_list_the_others(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who goes over a thousand topics would list them a thousand times."""
    unopened = UnopenedStore(tmp_path, {}, never)
    monkeypatch.setattr("keptlog.table.unopened.embedded_locations", lambda *_: pytest.fail("all topics are listed"))
    assert unopened.observe("users").logs == store.observe("users").logs
    assert list(unopened.read("users")) == list(store.read("users"))
    assert unopened.describe_topic("users").config == store.describe_topic("users").config
