"""A link whose disk is not mounted is not deleted: its bytes come back with the disk, and a receipt would be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.table.io.files import local_path
from keptlog.table.store import LogStore
from tests.table.killed import sealing_store
from tests.table.purges import MINUTE_MS, cleaned, clock_ms, files_sealed, live_paths, paths_of_values
from tests.table.stores import TOPIC

AFTER_THE_DELAY_MS = 10 * MINUTE_MS


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    cleaned(tmp_path)
    return sealing_store(tmp_path)


def moved_away(path: str, disk: Path) -> Path:
    """A link in place of a file; the disk that it leads to is not mounted."""
    link, unmounted = Path(local_path(path) or ""), disk.with_name("unmounted")
    disk.mkdir()
    link.rename(disk / link.name)
    link.symlink_to(disk / link.name)
    disk.rename(unmounted)
    return link


def test_a_purge_leaves_it_and_says_that_it_does(store: LogStore, tmp_path: Path) -> None:
    retired = min(paths_of_values(store) - live_paths(store))
    link = moved_away(retired, tmp_path / "disk")
    receipt = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    [left] = receipt.not_deleted
    assert (left.path, "is its disk mounted?" in left.reason) == (retired, True)
    assert link.is_symlink()
    assert retired not in files_sealed(tmp_path / "chain")
    link.unlink()
    assert store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS).not_deleted == ()


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_topic_is_not_forgotten_beside_it(store: LogStore, tmp_path: Path, *, is_folder: bool) -> None:
    live = min(live_paths(store))
    link = moved_away(live.rpartition("/")[0] if is_folder else live, tmp_path / "disk")
    for _ in range(2):
        done = store.delete_topic(TOPIC, clock_ms())
        assert (done.is_over, store.being_deleted()) == (False, [TOPIC])
        assert f"file://{link}" in [each.path for each in done.not_deleted]
    link.unlink()
    assert store.delete_topic(TOPIC, clock_ms()).is_over
    assert store.being_deleted() == []
