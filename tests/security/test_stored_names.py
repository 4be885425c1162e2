"""What a table or a file in it names outside of the topic's folder is never deleted, whoever has written the name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.removal.journal import DELETION, EXPIRY, SWEEP, DeletedFile, Journal, journal_folder, write_journal
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import TOPIC, append_each, create, store_at

LATER_MS = 2 * DAY_MS
SPELLINGS: dict[str, Callable[[Path, str], str]] = {
    "absolute": lambda path, _: str(path),
    "as a URL": lambda path, _: f"file://{path}",
    "as Java's URL": lambda path, _: f"file:{path}",
    "by two dots": lambda path, location: f"{location}/data/../../../../../{path.name}",
    "below the folder of another topic": lambda path, location: f"{location}-2/../../../../{path.name}",
}


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of somebody else's."""
    path = tmp_path / "precious.parquet"
    path.write_text("of somebody else")
    return path


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path / "home")
    append_each(store, [("a", "1")], [("a", "2")])
    return store


def plant(store: LogStore, kind: str, *paths: str, whose: str | None = None) -> None:
    """A journal in the topic's folder, as whoever may write there can leave one."""
    files = tuple(DeletedFile(path, 16) for path in paths)
    folder = journal_folder(store.describe_topic(TOPIC).location)
    write_journal(store.files, f"{folder}planted.json", Journal((), (), files, kind, table_uuid=whose))


@pytest.mark.parametrize("kind", [EXPIRY, SWEEP, DELETION])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_journal_that_names_a_file_elsewhere_deletes_it_not_and_it_is_told(
    store: LogStore, precious: Path, kind: str, spelling: str
) -> None:
    location = store.describe_topic(TOPIC).location
    named = SPELLINGS[spelling](precious, location)
    own = f"{location}/data/own.parquet"
    store.files.write_bytes(own, b"an orphan")
    (Path(location.removeprefix("file://") + "-2")).mkdir()
    # A purge only sets aside the journal of a deletion of the topic itself.
    plant(store, kind, named, own, whose="an earlier topic" if kind == DELETION else None)

    receipt = store.purge(TOPIC, clock_ms() + LATER_MS)

    assert precious.exists()
    assert not store.files.exists(own)
    [left] = receipt.not_deleted
    assert left.path == named
    assert "outside of the topic's folder" in left.reason
    precious.unlink()
    assert store.purge(TOPIC, clock_ms() + LATER_MS).not_deleted == ()


def test_a_topic_is_deleted_but_for_what_a_journal_of_its_names_elsewhere(store: LogStore, precious: Path) -> None:
    plant(store, DELETION, str(precious))

    done = store.delete_topic(TOPIC, clock_ms())

    assert precious.exists()
    assert [left.path for left in done.not_deleted] == [str(precious)]
    assert str(done.unfinished).startswith(f"topic {TOPIC}: 1 file could not be deleted: {precious} (it lies outside")


def test_a_link_in_the_folder_of_a_topic_leads_nobody_out_of_it(store: LogStore, precious: Path) -> None:
    folder = Path(store.describe_topic(TOPIC).location.removeprefix("file://"), "data")
    (folder / "link").symlink_to(precious.parent)
    plant(store, SWEEP, str(folder / "link" / precious.name))

    store.purge(TOPIC, clock_ms() + LATER_MS)

    assert precious.exists()


@pytest.mark.parametrize("named", ["", "a\0b"])
def test_a_journal_that_names_what_is_no_path_is_set_aside(store: LogStore, named: str) -> None:
    plant(store, SWEEP, named)

    [told] = store.purge(TOPIC, clock_ms() + LATER_MS).unreadable

    assert "names a file that no storage can have" in told
    assert store.purge(TOPIC, clock_ms() + LATER_MS).unreadable == ()


def test_a_segment_elsewhere_that_another_program_has_put_into_the_table_is_not_deleted_when_it_is_replaced(
    store: LogStore, precious: Path, tmp_path: Path
) -> None:
    table = table_of(tmp_path / "home")
    live = LiveFiles().of(table)
    first = live[0][0]
    precious.write_bytes(store.files.read_bytes(first.segment.path))
    elsewhere = data_file_of(0, replace(first.segment, path=str(precious)))
    FileChange({}, {}, [elsewhere], [first], live).land(table)
    home = tmp_path / "home"
    moved = table_of(home)
    live = LiveFiles().of(moved)
    FileChange({}, {}, [], [next(each for each in live[0] if each.segment.path == str(precious))], live).land(moved)

    receipts = [store_at(home).purge(TOPIC, clock_ms() + days * DAY_MS + 60_000) for days in (1, 2, 3)]

    assert precious.exists()
    assert str(precious) in {left.path for receipt in receipts for left in receipt.not_deleted}
