"""What was done to a topic is told of every commit once: by its snapshot, and after a purge by what that wrote down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.told.history import HistoryEntry
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.history import COST, history_of
from keptlog.table.metadata.lineage import summary_of
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import TOPIC, append_each, clean, create

LATER_MS = 4_000_000_000_000
"""A purge at this time expires all snapshots but the current one; it is a fixed day."""
RETENTION_MS = 90 * DAY_MS


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return create(tmp_path, config={"cleanup.policy": "compact", "segment.ms": "1"})


def told(store: LogStore, now_ms: int = LATER_MS, retention_ms: int = RETENTION_MS) -> list[HistoryEntry]:
    return history_of(store.files, store.load_table(TOPIC), now_ms, retention_ms)


def operations(store: LogStore, now_ms: int = LATER_MS) -> list[str]:
    return [each.operation for each in told(store, now_ms) if each.moves_records]


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "warehouse").rglob("metadata/receipts/history/*"))


def purge(store: LogStore, now_ms: int = LATER_MS) -> None:
    """Expire what was done up to now: an append comes behind it, and then a purge."""
    append_each(store, [("other", "x")])
    assert store.purge(TOPIC, now_ms).expired_snapshots


def test_a_clean_says_what_it_read_and_removed_and_why(store: LogStore) -> None:
    append_each(store, [("a", "1")], [("a", "2")], [("b", "1")])
    clean(store)
    *appended, cleaned = [each for each in told(store) if each.moves_records]
    assert [(each.operation, each.records_added, each.cost) for each in appended] == [("append", 1, None)] * 3
    assert (cleaned.operation, cleaned.records_removed - cleaned.records_added) == ("clean", 1)
    assert cleaned.cost
    [log] = cleaned.cost.logs
    assert (log.partition, log.superseded, log.bytes_written) == (0, 1, cleaned.bytes_added)
    assert log.trigger in {"dirty_ratio", "requested"}


def test_what_a_purge_expires_is_told_as_before(store: LogStore, tmp_path: Path) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    clean(store)
    before = told(store)
    for _ in range(3):
        purge(store)
    after = told(store)
    assert after[: len(before)] == before
    assert operations(store) == ["append"] * 2 + ["clean"] + ["append"] * 3
    assert len(files(tmp_path)) == 1
    assert len({each.snapshot_id for each in after}) == len(after)


def test_a_purge_that_merges_a_file_between_the_list_and_the_reading_hides_nothing(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    purge(store)
    before = operations(store)
    table, read_bytes = store.load_table(TOPIC), TableFiles.read_bytes
    waiting = [lambda: purge(store)]

    def read_later(files: TableFiles, path: str) -> bytes:
        while waiting and "/history/" in path:
            waiting.pop()()
        return read_bytes(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", read_later)
    seen = history_of(store.files, table, LATER_MS, RETENTION_MS)
    assert not waiting
    assert [each.operation for each in seen if each.moves_records][: len(before)] == before


def test_another_day_has_another_file_and_goes_after_its_time(store: LogStore, tmp_path: Path) -> None:
    purge_ms = LATER_MS
    append_each(store, [("a", "1")])
    for number in range(3):
        purge(store, purge_ms + number * DAY_MS)
    assert len(files(tmp_path)) == 3
    everything = operations(store, purge_ms + 3 * DAY_MS)
    purge(store, purge_ms + RETENTION_MS + 3 * DAY_MS)
    assert len(files(tmp_path)) == 2
    told_now = operations(store, purge_ms + RETENTION_MS + 3 * DAY_MS)
    assert len(told_now) < len(everything) + 1
    # Also where no purge has come by.
    assert len(operations(store, purge_ms + 10 * RETENTION_MS)) == 1


def test_the_files_of_a_topic_to_which_nobody_commits_any_more_go_after_their_time(
    store: LogStore, tmp_path: Path
) -> None:
    append_each(store, [("a", "1")])
    for number in range(3):
        purge(store, LATER_MS + number * DAY_MS)
    store.purge(TOPIC, LATER_MS + 3 * DAY_MS)
    quiet = store.purge(TOPIC, LATER_MS + RETENTION_MS).quiet
    assert len(files(tmp_path)) == 3
    assert quiet
    assert quiet.until_ms <= LATER_MS + RETENTION_MS + 2 * DAY_MS
    left = []
    for number in range(5):
        store.purge(TOPIC, LATER_MS + RETENTION_MS + number * DAY_MS)
        left.append(len(files(tmp_path)))
    assert left == [3, 3, 2, 1, 0]


def test_a_damaged_file_costs_what_it_told_and_stays(
    store: LogStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append_each(store, [("a", "1"), ("b", "1")])
    purge(store)
    [file] = files(tmp_path)
    for damage in (b"", b"\xff\xfe", b'{"topic_id": 7}', file.read_bytes()[:-9]):
        file.write_bytes(damage)
        caplog.clear()
        assert operations(store) == ["append"]
        assert f"{file.name} tells of the history is not known" in caplog.text
        assert len(caplog.records) == 1
    purge(store)
    assert file in files(tmp_path)
    assert operations(store) == ["append"] * 2


def test_a_pipe_in_its_place_costs_what_it_told_and_keeps_no_purge_away(store: LogStore, tmp_path: Path) -> None:
    append_each(store, [("a", "1"), ("b", "1")])
    purge(store)
    [file] = files(tmp_path)
    file.unlink()
    os.mkfifo(file)
    assert operations(store) == ["append"]
    append_each(store, [("c", "1")])
    purge(store)
    assert operations(store) == ["append"] * 3


def test_a_topic_that_was_created_again_does_not_tell_of_the_one_before(store: LogStore, tmp_path: Path) -> None:
    append_each(store, [("a", "1")])
    purge(store)
    [file] = files(tmp_path)
    content = file.read_bytes()
    store.delete_topic(TOPIC, clock_ms())
    again = create(tmp_path, config={"cleanup.policy": "compact"})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    append_each(again, [("z", "1")])
    assert operations(again) == ["append"]


def test_a_purge_that_is_killed_before_its_commit_leaves_nothing_told_twice(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(store, [("a", "1")], [("b", "1")])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("keptlog.table.purging.purge.Purge._land", killed)
        with pytest.raises(KeyboardInterrupt):
            store.purge(TOPIC, LATER_MS)
    assert len(files(tmp_path)) == 1
    assert operations(store) == ["append"] * 2
    purge(store)
    assert operations(store) == ["append"] * 3


def test_no_summary_and_no_file_names_a_key(store: LogStore, tmp_path: Path) -> None:
    append_each(store, [("key-of-a-person", "1"), ("key-of-a-person", "2")])
    clean(store)
    cost = [summary_of(each).get(COST) for each in store.load_table(TOPIC).metadata.snapshots][-1]
    purge(store)
    assert cost
    assert "key-of-a-person" not in cost + files(tmp_path)[0].read_text()


def test_the_setting_says_for_how_long(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "server.properties").write_text("keptlog.history.retention.ms=5\n")
    assert open_home(home).broker.keptlog_history_retention_ms == 5
