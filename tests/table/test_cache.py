"""What was observed of a topic is put aside: right whenever it is found, and never missed when it is not."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import open_home
from keptlog.log.told.metrics import LastPass
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.metadata.logs import ObservedTopic, StoredTopic
from keptlog.table.reading.cache import FOLDER, TopicCache
from keptlog.table.store import LogStore
from tests.table.stores import (
    COMPACTED,
    NOW_MS,
    TOPIC,
    append_each,
    counted_loads,
    new_id,
    new_records,
    rewritten,
    step_for,
    store_at,
)


def open_store(home: Path, broker: dict[str, str] | None = None) -> LogStore:
    """As each new process does."""
    return LogStore(open_catalog(home), broker or {}, time.sleep, new_id, TopicCache(home))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two partitions, one of them cleaned, with a tombstone."""
    home = tmp_path / "home"
    store = open_store(home)
    store.create_topic(TOPIC, 2, COMPACTED)
    append_each(store, [("a", "1"), ("b", "2")], [("a", None)])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    last_pass = LastPass(NOW_MS, 5, 100, 50, 2, 1000)
    store.swap(TOPIC, [outcome], new_id(), {outcome.step.topic_partition: last_pass})
    store.append(TOPIC, new_records(("c", "3"), partition=1), new_id(), NOW_MS)
    return home


@pytest.fixture
def loads() -> Iterator[list[str]]:
    """The tables that were read since."""
    with counted_loads() as read:
        yield read


def observed(store: LogStore) -> ObservedTopic:
    return store.observe(TOPIC, store.metadata_locations()[TOPIC])


def entry_of(home: Path) -> Path:
    return home / FOLDER / f"{TOPIC}.json"


def test_what_is_remembered_is_what_the_table_says(home: Path, loads: list[str]) -> None:
    first = observed(open_store(home))
    assert loads == [TOPIC]
    second = observed(open_store(home))
    assert loads == [TOPIC]

    store = open_store(home)
    assert first == second
    assert list(second.logs) == store.logs(TOPIC)
    assert store_at(home).observe(TOPIC) == second
    assert second.last_passes


def test_a_commit_makes_what_is_remembered_worthless(home: Path, loads: list[str]) -> None:
    observed(open_store(home))
    append_each(open_store(home), [("d", "4")])
    loads.clear()

    assert observed(open_store(home)).logs[0].log_end_offset == 4
    assert loads == [TOPIC]


def test_broker_settings_count_as_they_are_now(home: Path) -> None:
    observed(open_store(home))
    logs = observed(open_store(home, {"log.cleaner.min.cleanable.ratio": "0.25"})).logs
    assert logs[0].config.min_cleanable_dirty_ratio == 0.25
    with pytest.raises(InvalidConfig, match=r"topic shop\.users-v2"):
        observed(open_store(home, {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "5"}))


def _rewrite(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Alter an entry and make its checksum right again."""
    entry = json.loads(path.read_bytes().partition(b"\n")[2])
    change(entry)
    text = json.dumps(entry).encode()
    path.write_bytes(b"%08x\n" % zlib.crc32(text) + text)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: shutil.rmtree(path.parent),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(
            path.read_bytes().replace(b'"log.p0.log-end-offset":"3"', b'"log.p0.log-end-offset":"9"')
        ),
        lambda path: path.write_bytes(b"not ours"),
        lambda path: path.write_bytes(b"\xff\xfe\n{}"),
        lambda path: _rewrite(path, lambda entry: entry.update(columns=["path", "another"])),
        lambda path: _rewrite(path, lambda entry: entry.update(location="elsewhere")),
        lambda path: _rewrite(path, lambda entry: entry.pop("partitioned")),
        lambda path: _rewrite(path, lambda entry: entry.pop("counts")),
        lambda path: _rewrite(path, lambda entry: entry.update(paths=[])),
        lambda path: _rewrite(path, lambda entry: entry.update(counts=[[0, 99]])),
        lambda path: _rewrite(path, lambda entry: entry.update(counts=[])),
        lambda path: _rewrite(path, lambda entry: entry.update(numbers=7)),
    ],
)
def test_an_entry_that_is_gone_damaged_or_of_another_version_counts_as_none(
    home: Path, loads: list[str], damage: Callable[[Path], object]
) -> None:
    right = observed(open_store(home))
    damage(entry_of(home))
    loads.clear()

    assert observed(open_store(home)) == right
    assert loads == [TOPIC]
    assert observed(open_store(home)) == right
    assert loads == [TOPIC]


def test_where_there_is_no_home_nothing_is_made(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "no-home"
    store = LogStore(open_catalog(home), {}, time.sleep, new_id, TopicCache(elsewhere))
    assert observed(store) == observed(open_store(home))
    assert not elsewhere.exists()


def test_where_nothing_can_be_written_nothing_is_remembered(home: Path) -> None:
    (home / FOLDER).write_text("in the way")
    assert list(observed(open_store(home)).logs) == open_store(home).logs(TOPIC)


def test_a_topic_that_is_deleted_leaves_no_entry(home: Path) -> None:
    observed(open_store(home))
    assert entry_of(home).exists()
    open_store(home).delete_topic(TOPIC, NOW_MS)
    assert not entry_of(home).exists()


def test_two_processes_that_write_at_once_leave_a_whole_entry(home: Path) -> None:
    observed(open_store(home))
    cache = TopicCache(home)
    known = cache.get(TOPIC, open_store(home).metadata_locations()[TOPIC])
    assert known
    versions = [replace(known, location=f"location-{number}") for number in range(2)]
    writers = [threading.Thread(target=_write_often, args=(cache, version)) for version in versions]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    found = [cache.get(TOPIC, version.location) for version in versions]
    assert sum(each is not None for each in found) == 1
    assert [each for each, version in zip(found, versions, strict=True) if each and each != version] == []
    assert [path.name for path in (home / FOLDER).iterdir()] == [f"{TOPIC}.json"]


def _write_often(cache: TopicCache, stored: StoredTopic) -> None:
    for _ in range(50):
        cache.put(stored)


@pytest.mark.parametrize(("umask", "mode"), [(0o002, 0o664), (0o077, 0o600)])
def test_what_is_remembered_can_be_read_by_whom_the_umask_allows(home: Path, umask: int, mode: int) -> None:
    """Users of a group share a home, and one that can't read it reads each table anew, and writes over it."""
    before = os.umask(umask)
    try:
        observed(open_store(home))
    finally:
        os.umask(before)
    assert stat.S_IMODE(entry_of(home).stat().st_mode) == mode


def test_entries_that_nobody_needs_any_more_are_told_until_a_look_or_somebody_removes_them(home: Path) -> None:
    store, cache = open_store(home), TopicCache(home)
    observed(store)
    assert cache.outdated(store.metadata_locations()) == []
    append_each(store, [("d", "4")])
    left = home / FOLDER / "tmp-of-a-process-that-died"
    left.write_bytes(b"{}")
    kept = {each.path: each.kind for each in cache.outdated(store.metadata_locations())}
    assert kept == {str(home / FOLDER / f"{TOPIC}.json"): "cache", str(left): "cache"}
    observed(store)
    left.unlink()
    assert cache.outdated(store.metadata_locations()) == []


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")


@pytest.mark.usefixtures("configured")
def test_beside_a_configured_catalog_topics_are_remembered_without_a_home(tmp_path: Path, loads: list[str]) -> None:
    first = open_home(tmp_path / "a" / "home")
    first.create_topic(TOPIC)
    assert not (tmp_path / "a").exists()
    first.store.observe(TOPIC)
    loads.clear()
    again = open_home(tmp_path / "a" / "home").store
    observed(again)
    assert loads == []


@pytest.mark.usefixtures("configured")
def test_where_topics_can_not_be_remembered_one_line_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    home = open_home(tmp_path / "file" / "home")
    home.create_topic(TOPIC)
    for _ in range(3):
        home.store.observe(TOPIC)
    told = [each.getMessage() for each in caplog.records if "nothing is remembered" in each.getMessage()]
    assert len(told) == 1
    assert f"{tmp_path / 'file' / 'home' / FOLDER} can't be written (Not a directory)" in told[0]
