"""Files by which another engine deletes hold keys: G8 tells of those that only older snapshots or branches show."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.manifest import DataFileContent, write_manifest
from pyiceberg.table import Table

from keptlog.log.holder import HolderKind
from keptlog.passes.holders import check_gone, look_for_holders
from tests.table.foreign import current_id, insert, table_of
from tests.table.purges import clock_ms
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
