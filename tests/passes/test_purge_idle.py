"""A topic to which nobody has committed since its last purge is left alone, but never past a time when it is due."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import pytest

from keptlog.home import open_home
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.passes.observer import observe
from keptlog.passes.purge import Purger, PurgeResult
from keptlog.table.purging.purge_memory import PurgeMemory
from keptlog.table.purging.quiet import LISTED_AGAIN_MS
from keptlog.table.reading.cache import TopicCache
from keptlog.table.store import LogStore
from tests.table.stores import TOPIC, append_each, clean, create, store_at

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
NOTHING: Mapping[str, str] = {}


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


def purger(home: Path, settings: Mapping[str, str] = NOTHING, at_once: int = 1) -> Purger:
    """As a new process has it."""
    store = store_at(home, settings)
    store.seal = lambda _: None
    return Purger(store, PurgeMemory(home, settings), at_once)


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def purge(home: Path, now_ms: int, grace_ms: int = ORPHAN_GRACE_MS) -> PurgeResult:
    result = purger(home).purge(now_ms=now_ms, orphan_grace_ms=grace_ms)
    assert result.failed == {}
    return result


@pytest.fixture
def purged(tmp_path: Path) -> int:
    """When a topic was purged that was cleaned before."""
    append_each(create(tmp_path), [("a", "1")], [("a", "2")])
    clean(store_at(tmp_path))
    now_ms = clock_ms() + HOUR_MS
    assert len(purge(tmp_path, now_ms).receipts[TOPIC].deleted_files) == 2
    return now_ms


def test_a_topic_that_nobody_touched_is_not_looked_at_again(tmp_path: Path, purged: int) -> None:
    with mock.patch.object(LogStore, "purge", side_effect=AssertionError):
        again = purge(tmp_path, purged + HOUR_MS)
    assert again.idle == (TOPIC,)
    assert (again.receipts[TOPIC].deleted_files, again.deletions) == ((), {})


def test_what_is_remembered_of_topics_that_are_gone_and_what_killed_writers_left_is_forgotten(
    tmp_path: Path, purged: int
) -> None:
    cache = tmp_path / "cache"
    observe(open_home(tmp_path).store, now_ms=purged)
    mine = files_below(cache)
    assert mine == {cache / f"{TOPIC}.json", cache / "purges" / f"{TOPIC}.json"}
    for gone in (cache / "deleted.elsewhere.json", cache / "purges" / "deleted.elsewhere.json"):
        gone.write_text("{}")
    killed = (cache / "tmpabc", cache / "purges" / f"{TOPIC}.json.0011.part")
    for left in killed:
        left.write_text("{")

    purge(tmp_path, purged + MINUTE_MS)
    assert files_below(cache) == {*mine, *killed}, "a writer may be at it still"
    purge(tmp_path, purged + DAY_MS)
    assert files_below(cache) == mine


def test_how_an_idle_topic_stands_is_remembered_past_purges_and_goes_with_the_topic(
    tmp_path: Path, purged: int
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(exist_ok=True)
    standing, gone = cache / f"{TOPIC}.standing", cache / "deleted.elsewhere.standing"
    for path in (standing, gone):
        path.write_text("{}")
    purge(tmp_path, purged + DAY_MS)
    assert standing.exists()
    assert not gone.exists()


def test_a_commit_makes_the_next_purge_look(tmp_path: Path, purged: int) -> None:
    append_each(store_at(tmp_path), [("a", "3")])
    later = purge(tmp_path, purged + MINUTE_MS)
    assert later.idle == ()
    assert len(later.receipts[TOPIC].expired_snapshots) == 1


def test_who_names_a_topic_has_it_looked_at(tmp_path: Path, purged: int) -> None:
    assert purger(tmp_path).purge([TOPIC], now_ms=purged + 1).idle == ()


def test_other_settings_another_grace_and_a_clock_that_went_back_make_a_purge_look(tmp_path: Path, purged: int) -> None:
    assert purge(tmp_path, purged + 1).idle == (TOPIC,)
    assert purger(tmp_path, {"log.cleaner.threads": "2"}).purge(now_ms=purged + 2).idle == ()
    assert purge(tmp_path, purged + 3).idle == ()
    assert purge(tmp_path, purged + 4).idle == (TOPIC,)
    assert purge(tmp_path, purged + 5, HOUR_MS).idle == ()
    assert purge(tmp_path, purged + 6).idle == ()
    assert purge(tmp_path, purged - HOUR_MS).idle == ()


def test_a_snapshot_that_becomes_due_is_expired_at_the_first_purge_after_that(tmp_path: Path) -> None:
    create(tmp_path, config={"file.delete.delay.ms": str(HOUR_MS)})
    append_each(store_at(tmp_path), [("a", "1")], [("a", "2")])
    clean(store_at(tmp_path))
    now_ms = clock_ms()
    assert purge(tmp_path, now_ms).receipts[TOPIC].expired_snapshots == ()
    assert purge(tmp_path, now_ms + HOUR_MS // 2).idle == (TOPIC,)
    due = purge(tmp_path, now_ms + HOUR_MS + 1)
    assert due.idle == ()
    assert len(due.receipts[TOPIC].deleted_files) == 2


def orphan(home: Path, written_ms: int) -> Path:
    """What a writer leaves that is killed: no commit tells of it."""
    path = next((home / "warehouse").rglob("partition=0")) / "left.parquet"
    path.write_bytes(b"left")
    os.utime(path, ns=(written_ms * 1_000_000, written_ms * 1_000_000))
    return path


def test_what_a_killed_writer_leaves_is_swept_as_soon_as_without_all_this(tmp_path: Path, purged: int) -> None:
    written_ms = purged + MINUTE_MS
    left = orphan(tmp_path, written_ms)
    seen = [now_ms for hour in range(1, 26) if not purge(tmp_path, now_ms := purged + hour * HOUR_MS).idle]
    assert not left.exists()
    # Once after a day, when it is found, and then when its grace is over.
    assert seen == [purged + DAY_MS, purged + DAY_MS + HOUR_MS]
    assert seen[-1] - HOUR_MS < written_ms + ORPHAN_GRACE_MS <= seen[-1]


def test_a_young_orphan_that_was_seen_is_swept_when_its_grace_is_over(tmp_path: Path, purged: int) -> None:
    left = orphan(tmp_path, purged)
    purger(tmp_path).purge([TOPIC], now_ms=purged + HOUR_MS)
    assert purge(tmp_path, purged + DAY_MS - 1).idle == (TOPIC,)
    assert purge(tmp_path, purged + DAY_MS).idle == ()
    assert not left.exists()


def test_a_topic_is_listed_again_each_day_although_nobody_touched_it(tmp_path: Path, purged: int) -> None:
    assert purge(tmp_path, purged + LISTED_AGAIN_MS - 1).idle == (TOPIC,)
    # What the first purge remembers of expired snapshots is forgotten a day after it, too.
    assert purge(tmp_path, purged + LISTED_AGAIN_MS + 1).idle == ()
    assert purge(tmp_path, purged + LISTED_AGAIN_MS + HOUR_MS).idle == (TOPIC,)


def test_a_purge_that_ends_in_an_error_makes_the_next_one_look(
    tmp_path: Path, purged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("keptlog.table.purging.purge.hidden_below", mock.Mock(side_effect=OSError("no answer")))
        failed = purger(tmp_path).purge([TOPIC], now_ms=purged + 1)
    assert list(failed.failed) == [TOPIC]
    assert purge(tmp_path, purged + 2).idle == ()


def test_receipts_that_wait_to_be_sealed_make_the_next_purge_look(tmp_path: Path) -> None:
    append_each(create(tmp_path), [("a", "1")], [("a", "2")])
    clean(store_at(tmp_path))
    now_ms = clock_ms() + HOUR_MS
    unsealed = Purger(store_at(tmp_path), PurgeMemory(tmp_path, {})).purge(now_ms=now_ms)
    assert unsealed.receipts[TOPIC].sealing.waiting
    assert purge(tmp_path, now_ms + 1).receipts[TOPIC].sealing.sealed
    assert purge(tmp_path, now_ms + 2).idle == (TOPIC,)


def test_what_is_remembered_may_be_damaged_or_deleted(tmp_path: Path, purged: int) -> None:
    (file,) = (tmp_path / "cache" / "purges").iterdir()
    for damage in (b"", b"{}", b"[1]", b"[" * 100_000, file.read_bytes()[:-5]):
        file.write_bytes(damage)
        assert purge(tmp_path, purged + 1).idle == ()
    shutil.rmtree(tmp_path / "cache")
    assert purge(tmp_path, purged + 1).idle == ()


def test_what_is_remembered_of_purges_is_no_holder_of_records(tmp_path: Path, purged: int) -> None:
    assert purged
    store = store_at(tmp_path)
    assert TopicCache(tmp_path).outdated(store.metadata_locations()) == []


def test_topics_are_purged_side_by_side_and_told_in_order(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    names = [f"topic-{number}" for number in range(12)]
    for name in names:
        store.create_topic(name, 1, {})
    told = purger(tmp_path, at_once=8).purge(now_ms=clock_ms())
    assert (list(told.receipts), told.failed) == (sorted(names), {})
    assert set(purger(tmp_path, at_once=8).purge(now_ms=clock_ms()).idle) == set(names)


def test_topics_purged_side_by_side_seal_all_their_receipts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    home = open_home(tmp_path / "home")
    for number in range(6):
        home.create_topic(f"topic-{number}")
        (tmp_path / "lake" / "keptlog" / f"topic-{number}" / "data").mkdir()
        left = tmp_path / "lake" / "keptlog" / f"topic-{number}" / "data" / "left.parquet"
        left.write_bytes(b"left")
        os.utime(left, (0, 0))
    told = home.purger.purge(now_ms=clock_ms())
    assert told.failed == {}
    assert [len(each.sealing.sealed) for each in told.receipts.values()] == [1] * 6
    assert len(list(home.receipts.list())) == 6
    assert home.purger.purge(now_ms=clock_ms()).idle == tuple(told.receipts)
