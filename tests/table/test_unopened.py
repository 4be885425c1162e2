"""A home that is not opened gives the records that an opened one gives, and the same errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, UnknownTopic
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.log.stored_files import live_paths
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
