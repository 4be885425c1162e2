"""What a journal names outside of the topic's folder is told as what somebody must delete: no purge does."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.holder import HolderKind
from keptlog.log.told.examination import holder_problem
from keptlog.passes.holders import check_gone, look_for_holders
from keptlog.table.io.files import TableFiles
from keptlog.table.purge_preview import preview_purge
from keptlog.table.removal.journal import DeletedFile, Journal, journal_folder, write_journal
from keptlog.table.store import LogStore
from tests.table.foreign import insert, set_properties, table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, create, new_id, new_records

BY_HAND = "no purge deletes anything there: delete by hand what nobody needs"
FINISHES = "keptlog purge t finishes them"


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path / "home")
    append_each(store, [("a", "1")])
    return store


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A file that another program once had in the table."""
    path = tmp_path / "beside.parquet"
    path.write_bytes(b"a value")
    return path


def journal_of(store: LogStore, *paths: str) -> None:
    location = store.describe_topic(TOPIC).location
    journal = Journal((), tuple(DeletedFile(path, 7, 0) for path in paths), ())
    write_journal(TableFiles(), f"{journal_folder(location)}0.json", journal)


def told(store: LogStore) -> str:
    """What G8 says once that is late."""
    result = check_gone(store, TOPIC, [0], clock_ms() + 2 * DAY_MS)[0]
    return "" if result.passed else result.description.replace(f"purge {TOPIC} ", "purge t ")


def test_it_is_told_as_not_deleted_until_somebody_has_and_then_a_purge_finishes(store: LogStore, beside: Path) -> None:
    journal_of(store, f"file://{beside}")
    assert BY_HAND in told(store)
    assert FINISHES not in told(store)
    left = store.purge(TOPIC, clock_ms()).not_deleted
    assert [each.path for each in left] == [f"file://{beside}"]
    assert BY_HAND in told(store)

    beside.unlink()
    assert FINISHES in told(store)
    store.purge(TOPIC, clock_ms())
    assert told(store) == ""


@pytest.mark.parametrize("is_linked", [False, True], ids=["beside", "on another disk"])
def test_nobody_is_told_to_delete_by_hand_what_another_topic_has(
    store: LogStore, tmp_path: Path, is_linked: bool
) -> None:
    """As after ``add_files`` of another topic's folder, and a repair: its live segments are replaced files here."""
    store.create_topic("carts", 1, COMPACTED)
    folder = Path(store.describe_topic("carts").location.removeprefix("file://"))
    if is_linked:
        folder.symlink_to(folder.rename(tmp_path / "another disk"))
    store.append("carts", new_records(("a", "1")), new_id(), NOW_MS)
    [live] = (file.path for file in TableFiles().list(f"file://{folder}/data"))
    journal_of(store, live.replace("file:///", "file:/"))
    assert "but nothing in a folder of another topic, which deletes it itself" in told(store)
    preview = str(preview_purge(store, TOPIC, clock_ms(), DAY_MS))
    assert "1 replaced file outside of its folder would be left, and the purge says what to do about each" in preview
    [left] = store.purge(TOPIC, clock_ms()).not_deleted
    assert "if it lies in the folder of another topic, leave it" in left.reason
    assert Path(live.removeprefix("file://")).exists()


def test_a_preview_says_that_it_would_be_left(store: LogStore, beside: Path) -> None:
    journal_of(store, f"file://{beside}")
    text = "1 replaced file outside of its folder would be left"
    assert text in str(preview_purge(store, TOPIC, clock_ms(), DAY_MS))
    beside.unlink()
    assert text not in str(preview_purge(store, TOPIC, clock_ms(), DAY_MS))


def test_doctor_names_no_purge_as_what_mends_it(store: LogStore, beside: Path) -> None:
    journal_of(store, f"file://{beside}")
    now_ms = clock_ms() + 2 * DAY_MS
    [holder] = look_for_holders(store, TOPIC, now_ms).late(now_ms)
    problem = holder_problem(holder)
    assert (holder.kind, problem.command) == (HolderKind.ELSEWHERE, None)
    assert problem.cause.startswith("another program has put it there")


def test_what_else_the_journal_names_is_told_beside_it(store: LogStore, beside: Path) -> None:
    below = Path(store.describe_topic(TOPIC).location.removeprefix("file://")) / "data" / "doomed.parquet"
    below.write_bytes(b"a value")
    journal_of(store, f"file://{beside}", f"file://{below}")
    assert BY_HAND in told(store)
    assert FINISHES in told(store)


def test_what_a_snapshot_shows_nobody_is_told_to_delete(tmp_path: Path, store: LogStore) -> None:
    """The purge that wrote the journal was killed before its commit."""
    table = table_of(tmp_path / "home")
    table.manage_snapshots().create_branch(table.metadata.snapshots[0].snapshot_id, "trial").commit()
    set_properties(tmp_path / "home", {"write.data.path": f"file://{tmp_path}/theirs"})
    insert(tmp_path / "home", 1, branch="trial")
    [live] = (tmp_path / "theirs").rglob("*.parquet")
    journal_of(store, f"file://{live}")
    assert BY_HAND not in told(store)
    assert FINISHES in told(store)
