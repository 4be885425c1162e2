"""What a purge could not delete, since it lies behind a link, no receipt calls gone, also not when the topic ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import new_id
from keptlog.log.topic_partition import TopicPartition
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


@pytest.fixture
def emptied(store: LogStore) -> LogStore:
    """Of which nothing is live, and all that was can still be seen."""
    store.delete_records(TopicPartition(TOPIC, 0), -1, new_id())
    assert (live_paths(store), len(paths_of_values(store))) == (set(), 4)
    return store


def moved(path: str, disk: Path) -> Path:
    """A link in the place of a file or folder, which is elsewhere now; gives the link."""
    link = Path(local_path(path) or "")
    disk.mkdir()
    link.rename(disk / link.name)
    link.symlink_to(disk / link.name)
    return link


def purge(store: LogStore) -> list[str]:
    """What it could not delete."""
    return [each.path for each in store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS).not_deleted]


def test_a_link_that_a_purge_left_is_not_called_gone_when_its_topic_is_deleted(store: LogStore, tmp_path: Path) -> None:
    retired = min(paths_of_values(store) - live_paths(store))
    moved(retired, tmp_path / "disk")
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    assert purge(store) == [retired]
    for _ in range(2):
        done = store.delete_topic(TOPIC, clock_ms())
        assert (done.is_over, [each.path for each in done.not_deleted]) == (False, [retired])
    assert retired not in files_sealed(tmp_path / "chain")


def test_files_in_a_folder_whose_disk_is_not_mounted_are_not_called_gone_by_a_purge(
    emptied: LogStore, tmp_path: Path
) -> None:
    retired = paths_of_values(emptied)
    moved(min(retired).rpartition("/")[0], tmp_path / "disk")
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    for _ in range(2):
        assert set(purge(emptied)) == retired
    assert retired.isdisjoint(files_sealed(tmp_path / "chain"))


@pytest.mark.parametrize("is_mounted", [True, False])
def test_files_that_a_purge_left_behind_a_link_are_not_called_gone_when_their_topic_is_deleted(
    emptied: LogStore, tmp_path: Path, *, is_mounted: bool
) -> None:
    retired = paths_of_values(emptied)
    link = moved(min(retired).rpartition("/")[0], tmp_path / "disk")
    if not is_mounted:
        (tmp_path / "disk").rename(tmp_path / "unmounted")
    assert set(purge(emptied)) >= retired
    for _ in range(2):
        done = emptied.delete_topic(TOPIC, clock_ms())
        assert (done.is_over, {each.path for each in done.not_deleted}) == (False, {*retired, f"file://{link}"})
    assert retired.isdisjoint(files_sealed(tmp_path / "chain"))
