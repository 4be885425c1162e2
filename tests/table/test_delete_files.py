"""Files by which engines delete may hold keys or rows: G8 tells of those that older snapshots or branches show."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.manifest import DataFileContent, write_manifest
from pyiceberg.table import Table

from keptlog.log.holder import HolderKind
from keptlog.passes.holders import check_gone, look_for_holders
from keptlog.passes.repair import Repairer
from keptlog.table.store import LogStore
from tests.table.delete_files import delete_by_position
from tests.table.foreign import current_id, insert, table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import TOPIC, append_each, create


def as_equality_deletes(table: Table, snapshot_id: int) -> str:
    """Make what a snapshot has added an equality-delete file, in its manifest; gives its path."""
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot
    (manifest,) = [each for each in snapshot.manifests(table.io) if each.added_snapshot_id == snapshot_id]
    (entry,) = manifest.fetch_manifest_entry(table.io)
    file = entry.data_file
    file._data[0] = DataFileContent.EQUALITY_DELETES  # PyIceberg writes none
    Path(manifest.manifest_path.removeprefix("file://")).unlink()
    output = table.io.new_output(manifest.manifest_path)
    with write_manifest(2, table.spec(), table.schema(), output, snapshot_id, "deflate") as writer:
        writer.add_entry(entry)
    return file.file_path


def test_one_that_only_a_branch_shows_is_told_with_the_branch(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    table_of(tmp_path).manage_snapshots().create_branch(current_id(tmp_path), "trial").commit()
    inserted = insert(tmp_path, 1, branch="trial")
    path = as_equality_deletes(table_of(tmp_path), inserted)
    held = [each for each in look_for_holders(store, TOPIC, clock_ms()).held if each.path == path]
    assert [(each.kind, each.name) for each in held] == [(HolderKind.BRANCH, "trial")]
    result = check_gone(store, TOPIC, [0], clock_ms())[0]
    assert "trial" in result.description


def holders_of(store: LogStore, path: str) -> list[tuple[HolderKind, str]]:
    """A week later, when what nothing refers to is an orphan."""
    held = look_for_holders(store, TOPIC, clock_ms() + 7 * DAY_MS).held
    return [(each.kind, each.name) for each in held if each.path == path]


def test_one_by_position_that_a_branch_shows_is_no_orphan_that_the_next_purge_deletes(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    table_of(tmp_path).manage_snapshots().create_branch(current_id(tmp_path), "trial").commit()
    path = delete_by_position(tmp_path, TOPIC, branch="trial")
    assert holders_of(store, path) == [(HolderKind.BRANCH, "trial")]
    now_ms = clock_ms() + 7 * DAY_MS
    assert {each.holder for each in store.purge(TOPIC, now_ms=now_ms).held} == {"branch trial"}
    assert Path(path.removeprefix("file://")).exists()
    table_of(tmp_path).manage_snapshots().remove_branch("trial").commit()
    store.purge(TOPIC, now_ms=now_ms)
    assert not Path(path.removeprefix("file://")).exists()


def test_one_by_position_that_a_repair_has_undone_is_kept_by_an_older_snapshot(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    path = delete_by_position(tmp_path, TOPIC)
    repairer = Repairer(store)
    proposal = repairer.propose(TOPIC, now_ms=clock_ms())
    assert proposal
    repairer.repair(proposal, "mend", now_ms=clock_ms())
    assert holders_of(store, path) == [(HolderKind.RETIRED, "")]
