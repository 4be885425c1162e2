"""A manifest that is not the one that its manifest list tells of is not read, by whomever, and whoever wrote it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

import keptlog
from keptlog.errors import LogCorrupt
from keptlog.table.io.metadata_checksums import without_checksum
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.live_segments import LiveSegments
from keptlog.table.metadata.metadata_reading import listed_entries
from keptlog.table.metadata.references import all_references
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.reading.bare import as_table, bare_table
from keptlog.table.store import LogStore
from tests.older_checksums import with_unnamed_checksum
from tests.table.stores import TOPIC, append_each, clean, create, store_at

_SAYS = "is not the manifest that its manifest list tells of: it is damaged"

_TOLD = (6, 7, 8)
"""Where a manifest list has the snapshot that wrote a manifest, and how many files came and stayed."""


def bare(table: Table) -> Table:
    found = bare_table((NAMESPACE, TOPIC), table.metadata_location)
    assert found is not None
    return as_table(found)


READERS = [
    pytest.param(lambda table: LiveFiles().of(table), id="who commits"),
    pytest.param(lambda table: LiveSegments().of(table), id="who looks"),
    pytest.param(lambda table: LiveSegments().of(bare(table)), id="who looks without PyIceberg"),
    pytest.param(all_references, id="who purges"),
]


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """A cleaned topic whose files a keptlog has written that put no names under checksums."""
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")], [("b", "1")])
    clean(store)
    append_each(store, [("c", "1")])
    for path in (tmp_path / "warehouse").rglob("*.avro"):
        path.write_bytes(with_unnamed_checksum(path.name, without_checksum(path.name, path.read_bytes())))
    return store_at(tmp_path)


def manifests(store: LogStore) -> list[ManifestFile]:
    table = store.load_table(TOPIC)
    return table.current_snapshot().manifests(table.io)  # type: ignore[union-attr]


def put(source: ManifestFile, target: ManifestFile) -> None:
    copied, over = (Path(each.manifest_path.removeprefix("file://")) for each in (source, target))
    shutil.copyfile(copied, over)


@pytest.mark.parametrize("read", READERS)
def test_that_of_another_snapshot_is_not_read(store: LogStore, read: Callable[[Table], object]) -> None:
    newest, *others = [each for each in manifests(store) if each.added_files_count]
    read(store.load_table(TOPIC))
    put(others[0], newest)
    assert others[0].added_files_count == newest.added_files_count
    with pytest.raises(LogCorrupt, match=_SAYS) as refused:
        read(store.load_table(TOPIC))
    assert newest.manifest_path in str(refused.value)


def test_that_of_removed_files_is_not_read_as_that_of_files_that_came(store: LogStore) -> None:
    table = store.load_table(TOPIC)
    swapped = table.metadata.snapshots[-2].manifests(table.io)
    [came] = [each for each in swapped if each.added_files_count]
    [went, *_] = [each for each in swapped if each.deleted_files_count]
    assert came.added_snapshot_id == went.added_snapshot_id
    put(went, came)
    with pytest.raises(LogCorrupt, match=_SAYS):
        listed_entries(came, table.io)


@pytest.mark.parametrize("unknown", [None, -1])
def test_where_a_list_does_not_know_it_any_manifest_is_read(store: LogStore, unknown: int | None) -> None:
    newest, other, *_ = [each for each in manifests(store) if each.added_files_count]
    put(other, newest)
    for position in _TOLD:
        newest[position] = unknown
    assert len(listed_entries(newest, store.load_table(TOPIC).io)) == 1


def test_nobody_else_asks_a_manifest_for_its_entries() -> None:
    sources = Path(keptlog.__file__).parent.rglob("*.py")
    asking = {path.name for path in sources if ".fetch_manifest_entry(" in path.read_text(encoding="utf-8")}
    # A bare table gives what it can't read to PyIceberg's manifest of the same name.
    assert asking == {"metadata_reading.py", "bare.py"}
