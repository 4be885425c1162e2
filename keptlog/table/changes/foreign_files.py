"""The files of a topic's current snapshot, which another program may have written, as a repair tells of them.

A repair puts others in their place. So it needs none of their manifests, and what can't be read of them stops nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import LogCorrupt
from keptlog.table.metadata.file_metrics import LiveFile
from keptlog.table.metadata.metadata_reading import entries_of, manifests_of


def difference(
    table: Table, current: Snapshot | None, wanted: Sequence[LiveFile]
) -> tuple[list[DataFile], list[DataFile], list[str]]:
    """The files that are wanted and not in the current snapshot, those in it that are not wanted, and what is unread.

    The repair needs none of the current one's manifests: what can't be read of them is named, and counts as nothing.
    """
    manifests, unread = _manifests_now(table, current)
    now: dict[str, DataFile] = {}
    for each in of_kind(ManifestContent.DATA, manifests):
        try:
            entries = entries_of(table.name()[-1], each, table.io)
        except LogCorrupt:
            unread.append(each.manifest_path)
        else:
            now |= {entry.data_file.file_path: entry.data_file for entry in entries}
    paths = {file.segment.path for file in wanted}
    came = [file.entry.data_file for file in wanted if file.segment.path not in now]
    return came, [data_file for path, data_file in now.items() if path not in paths], unread


def delete_files(table: Table, current: Snapshot | None) -> tuple[str, ...]:
    """Delete files of the current snapshot, which are only told; what was acknowledged never has one.

    Where their manifest can't be read it stands for them: the repair needs none of it.
    """
    found: set[str] = set()  # several deletion vectors may lie in one file
    for each in of_kind(ManifestContent.DELETES, _manifests_now(table, current)[0]):
        try:
            found.update(entry.data_file.file_path for entry in entries_of(table.name()[-1], each, table.io))
        except LogCorrupt:
            found.add(each.manifest_path)
    return tuple(sorted(found))


def _manifests_now(table: Table, current: Snapshot | None) -> tuple[list[ManifestFile], list[str]]:
    """The current snapshot's manifests; where their list can't be read there are none, and it is named."""
    try:
        return (manifests_of(table.name()[-1], current, table.io) if current else []), []
    except LogCorrupt:
        return [], [current.manifest_list] if current else []


def of_kind(kind: ManifestContent, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
    """Those of data, or those of delete files."""
    return [each for each in manifests if each.content == kind]
