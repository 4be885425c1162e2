"""What a purge has written down itself, and a locked bucket keeps, is named, and keeps no segment from going."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.storage.object_version import DeleteRefused, refused
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.history import history_of
from keptlog.table.removal.journal import journal_folder
from keptlog.table.store import LogStore
from tests.table.killed import sealing_store
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, files_sealed
from tests.table.stores import TOPIC, append_each, clean

LOCKED = DeleteRefused([refused("x", "v1", 1, "AccessDenied: object is WORM protected")])
OWN = ("/receipts/runs/", "/receipts/history/")


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    cleaned(tmp_path)
    return sealing_store(tmp_path)


def _kept(monkeypatch: pytest.MonkeyPatch, *places: str, error: Exception = LOCKED) -> None:
    """What lies there is not deleted."""
    real = TableFiles.delete

    def delete(files: TableFiles, path: str) -> None:
        if any(place in path for place in places):
            raise error
        real(files, path)

    monkeypatch.setattr(TableFiles, "delete", delete)


def _own(home: Path) -> list[str]:
    paths = [f"file://{path}" for path in (home / "warehouse").rglob("*.json")]
    return sorted(path for path in paths if any(place in path for place in OWN))


def _superseded(store: LogStore) -> None:
    append_each(store, [("a", "x")], [("a", "y")])
    clean(store)


def test_segments_go_day_after_day_and_get_their_receipts(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kept(monkeypatch, *OWN)
    now_ms = clock_ms() + 10 * MINUTE_MS
    named: set[str] = set()
    for at_ms in (now_ms, now_ms + 1, now_ms + 2 * DAY_MS, now_ms + 4 * DAY_MS):
        receipt = store.purge(TOPIC, at_ms)
        assert receipt.expired_snapshots
        assert len(receipt.deleted_files) >= 2
        assert {path.path for path in receipt.not_deleted} <= set(_own(tmp_path))
        assert all("WORM protected" in left.reason for left in receipt.not_deleted)
        named |= {left.path for left in receipt.not_deleted}
        _superseded(store)
    assert [path for path in named if OWN[0] in path]
    assert [path for path in named if OWN[1] in path]
    data = [path for path in files_sealed(tmp_path / "chain") if "/data/" in path]
    assert len(data) == len(set(data)) >= 8


def test_they_go_with_the_next_purge_once_they_can(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = clock_ms() + 10 * MINUTE_MS
    with monkeypatch.context() as patch:
        _kept(patch, *OWN)
        store.purge(TOPIC, now_ms)
        _superseded(store)
        store.purge(TOPIC, now_ms + 2 * DAY_MS)
    runs = [path for path in _own(tmp_path) if OWN[0] in path]
    _superseded(store)
    assert store.purge(TOPIC, now_ms + 4 * DAY_MS).not_deleted == ()
    assert not set(runs) & set(_own(tmp_path))


def test_a_history_that_stays_is_not_written_again_and_again(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kept(monkeypatch, *OWN)
    now_ms = clock_ms() + 10 * MINUTE_MS
    for number in range(5):
        store.purge(TOPIC, now_ms + number)
        _superseded(store)
    sizes = [len(path.read_bytes()) for path in sorted((tmp_path / "warehouse").rglob("history/*"), key=_age)]
    assert len(sizes) == 5
    assert max(sizes[2:]) < sizes[1]
    told = history_of(store.files, store.load_table(TOPIC), now_ms, 90 * DAY_MS)
    assert len({each.snapshot_id for each in told}) == len(told)
    assert [each.operation for each in told if each.moves_records].count("clean") == 6


def test_a_history_that_stayed_once_is_merged_again(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = clock_ms() + 10 * MINUTE_MS
    store.purge(TOPIC, now_ms)
    _superseded(store)
    with monkeypatch.context() as patch:
        _kept(patch, OWN[1])
        store.purge(TOPIC, now_ms + 1)
    counts = []
    for number in range(2, 6):
        _superseded(store)
        store.purge(TOPIC, now_ms + number)
        counts.append(len(list((tmp_path / "warehouse").rglob("history/*"))))
    assert counts == [2, 1, 1, 1]
    told = history_of(store.files, store.load_table(TOPIC), now_ms, 90 * DAY_MS)
    assert len({each.snapshot_id for each in told}) == len(told)
    assert [each.operation for each in told if each.moves_records].count("clean") == 6


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


def test_a_storage_that_does_not_answer_any_more_ends_the_purge(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = clock_ms() + 10 * MINUTE_MS
    store.purge(TOPIC, now_ms)
    _superseded(store)

    def unreachable(*_: object) -> bool:
        raise OSError("the bucket does not answer")

    _kept(monkeypatch, OWN[0], error=OSError("the bucket does not answer"))
    monkeypatch.setattr(TableFiles, "exists", unreachable)
    with pytest.raises(StorageUnavailable, match="does not answer"):
        store.purge(TOPIC, now_ms + 2 * DAY_MS)


def test_a_journal_that_says_nothing_and_stays_is_named_and_copied_once(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = journal_folder(store.describe_topic(TOPIC).location)
    store.files.write_bytes(f"{folder}broken.json", b"{")
    written: list[str] = []
    real = TableFiles.write_bytes

    def write(files: TableFiles, path: str, content: bytes) -> None:
        written.append(path)
        real(files, path, content)

    monkeypatch.setattr(TableFiles, "write_bytes", write)
    _kept(monkeypatch, "/broken.json")
    for number in range(2):
        receipt = store.purge(TOPIC, clock_ms() + (2 + number) * DAY_MS)
        assert [left.path for left in receipt.not_deleted] == [f"{folder}broken.json"]
    assert len(store.purge(TOPIC, clock_ms() + 4 * DAY_MS).deleted_files) == 0
    assert len([path for path in written if path.endswith("unreadable/broken.json")]) == 1


def test_a_journal_that_is_written_anew_for_a_lost_race_may_stay_and_gives_no_file_two_receipts(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = journal_folder(store.describe_topic(TOPIC).location)
    written: list[str] = []
    real = TableFiles.write_bytes

    def write(files: TableFiles, path: str, content: bytes) -> None:
        real(files, path, content)
        if path.startswith(folder):
            written.append(path)
            if len(written) == 1:  # somebody commits before the purge does
                _superseded(store)

    monkeypatch.setattr(TableFiles, "write_bytes", write)
    with monkeypatch.context() as patch:
        _kept(patch, folder)
        receipt = store.purge(TOPIC, clock_ms() + DAY_MS)
        assert written[0] in {left.path for left in receipt.not_deleted}
        assert len(written) == 2
    assert store.purge(TOPIC, clock_ms() + DAY_MS).not_deleted == ()
    data = [path for path in files_sealed(tmp_path / "chain") if "/data/" in path]
    assert len(data) == len(set(data)) >= 3
