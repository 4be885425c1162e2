"""Which files a table needs: what a purge must never delete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.table.files import local_path
from keptlog.table.state import watermarks_paths


@dataclass
class References:
    """Paths to sizes in bytes; those of manifest lists and of table metadata stand nowhere, and are 0."""

    data_bytes: dict[str, int] = field(default_factory=dict)
    metadata_bytes: dict[str, int] = field(default_factory=dict)

    def keys(self) -> set[str]:
        """All paths, in the form in which they can be compared."""
        return {comparable(path) for paths in (self.data_bytes, self.metadata_bytes) for path in paths}


def references_of(table: Table, snapshots: Iterable[Snapshot]) -> References:
    """The files of some snapshots: segments, manifests and manifest lists."""
    found = References()
    for snapshot in snapshots:
        found.metadata_bytes[snapshot.manifest_list] = 0
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in found.metadata_bytes:
                continue
            found.metadata_bytes[manifest.manifest_path] = manifest.manifest_length
            for entry in manifest.fetch_manifest_entry(table.io):
                data_file = entry.data_file
                is_data = data_file.content == DataFileContent.DATA
                paths = found.data_bytes if is_data else found.metadata_bytes
                paths[data_file.file_path] = data_file.file_size_in_bytes
    return found


def all_references(table: Table) -> References:
    """Everything that the table's metadata, current and logged, refers to.

    Watermarks stand in its properties, which snapshots don't keep: replaced ones are orphans at once, and are swept
    when they are older than the grace.
    """
    found = references_of(table, table.metadata.snapshots)
    found.metadata_bytes |= dict.fromkeys(watermarks_paths(table.properties), 0)
    found.metadata_bytes[table.metadata_location] = 0
    found.metadata_bytes |= {entry.metadata_file: 0 for entry in table.metadata.metadata_log}
    found.metadata_bytes |= {file.statistics_path: 0 for file in table.metadata.statistics}
    found.metadata_bytes |= {file.statistics_path: 0 for file in table.metadata.partition_statistics}
    return found


def comparable(path: str) -> str:
    """A path without its scheme: programs write one place as ``s3://`` or ``s3a://``, ``file:/`` or ``file:///``."""
    local = local_path(path)
    return local if local is not None else path.partition("://")[2]
