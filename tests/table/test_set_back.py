"""A topic whose table another program had moved, and that was set back: its purges go on, as its message says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.table.store import LogStore
from tests.table.foreign import expire, set_location, set_properties, table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create, new_id, new_records, values

LATER_MS = 7 * DAY_MS


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")], [("b", "1")])
    return store


def own(home: Path) -> Path:
    return home / "warehouse/keptlog" / TOPIC


def other(home: Path) -> Path:
    return home / "warehouse/keptlog" / f"{TOPIC}-x"


def there_and_back(store: LogStore, home: Path, *records: tuple[str, str], to: Path | None = None) -> None:
    set_location(home, to or other(home))
    for record in records:
        append_each(store, [record])
    set_location(home, own(home))


def left_behind(home: Path, folder: Path | None = None) -> Path:
    """What a run has staged there that died."""
    data = (folder or other(home)) / "data/partition=0"
    data.mkdir(parents=True, exist_ok=True)
    segment = next((own(home) / "data").rglob("*.parquet"))
    return Path(shutil.copy(segment, data / "0-left.parquet"))


@pytest.mark.parametrize("commits", [0, 1, 30])
def test_a_purge_goes_on_and_names_what_is_to_be_deleted_by_hand_where_the_table_lay_meanwhile(
    store: LogStore, tmp_path: Path, commits: int
) -> None:
    there_and_back(store, tmp_path, *[("a", str(number)) for number in range(commits)])
    assert store.purge(TOPIC, clock_ms() + LATER_MS).expired_snapshots
    append_each(store, [("a", "new")])
    clean(store)
    receipt = store.purge(TOPIC, clock_ms() + LATER_MS)
    assert len(table_of(tmp_path).metadata.snapshots) == 1
    segments = {file.path for file in receipt.not_deleted if file.path.endswith(".parquet")}
    assert len(segments) == commits
    assert all(str(other(tmp_path)) in path for path in segments)
    assert [value for _, _, value in values(store)][-1] == b"new"


def test_so_it_does_for_good_and_where_it_lay_meanwhile_is_never_taken_for_its_own(
    store: LogStore, tmp_path: Path
) -> None:
    """The first purge takes the last that told, but for what it notes."""
    there_and_back(store, tmp_path, ("a", "2"))
    store.purge(TOPIC, clock_ms() + LATER_MS)
    append_each(store, *[[("a", str(number))] for number in range(30)])
    store.purge(TOPIC, clock_ms() + LATER_MS)
    there_and_back(store, tmp_path, ("a", "3"))
    set_location(tmp_path, other(tmp_path))
    with pytest.raises(LogCorrupt, match=rf"set the location of its table back to file://{own(tmp_path)}$"):
        store.purge(TOPIC, clock_ms() + LATER_MS)
    set_location(tmp_path, own(tmp_path))
    store.purge(TOPIC, clock_ms() + LATER_MS)


def test_the_topic_can_be_deleted(store: LogStore, tmp_path: Path) -> None:
    there_and_back(store, tmp_path, ("a", "2"))
    store.delete_topic(TOPIC, NOW_MS)
    assert store.topics() == []


def test_what_a_run_has_left_there_is_named_and_nothing_is_deleted_until_it_is_gone(
    store: LogStore, tmp_path: Path
) -> None:
    there_and_back(store, tmp_path, ("a", "2"))
    left = left_behind(tmp_path)
    for delete in (store.purge, store.delete_topic):
        with pytest.raises(
            LogCorrupt, match=rf"lies 1 file that it does not refer to: file://{left}, and nothing .*: delete what"
        ):
            delete(TOPIC, clock_ms() + LATER_MS)
    left.unlink()
    store.purge(TOPIC, clock_ms() + LATER_MS)


def test_what_lies_beside_in_the_folder_of_another_program_hinders_nobody_and_stays(
    store: LogStore, tmp_path: Path
) -> None:
    photo = tmp_path / "photos/cat.jpg"
    photo.parent.mkdir()
    photo.write_bytes(b"cat")
    there_and_back(store, tmp_path, ("a", "2"), to=photo.parent)
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert photo.read_bytes() == b"cat"


def test_files_of_a_topic_that_lies_there_are_its_own_matter(store: LogStore, tmp_path: Path) -> None:
    store.create_topic("others", 1, {})
    store.append("others", new_records(("a", "1"), partition=0), new_id(), NOW_MS)
    folder = own(tmp_path).parent / "others"
    there_and_back(store, tmp_path, to=folder)
    left = left_behind(tmp_path, folder)
    with pytest.raises(LogCorrupt, match=r"0-left.*purge the topic that lies there"):
        store.purge(TOPIC, clock_ms() + LATER_MS)
    store.purge("others", clock_ms() + LATER_MS)
    assert not left.exists()
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert len(values(store, "others")) == 1


def test_a_folder_of_another_name_is_not_taken_for_the_one_where_it_lay(store: LogStore, tmp_path: Path) -> None:
    """Another program may have expired the snapshots that told where it lay before."""
    set_properties(tmp_path, {"write.metadata.previous-versions-max": "2"})
    there_and_back(store, tmp_path, ("a", "2"), to=tmp_path / "photos")
    append_each(store, [("a", "3")], [("a", "4")])
    expire(tmp_path, *[each.snapshot_id for each in table_of(tmp_path).metadata.snapshots[:2]])
    set_location(tmp_path, tmp_path / "photos")
    append_each(store, [("a", "5")], [("a", "6")], [("a", "7")])
    with pytest.raises(LogCorrupt, match=rf"is not where the topic lay before \(file://{own(tmp_path)}"):
        store.purge(TOPIC, clock_ms() + LATER_MS)
