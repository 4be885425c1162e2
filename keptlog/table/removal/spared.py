"""What a purge spares because another catalog may need it (``ahead``).

copied state    what a catalog reads that names this file: its snapshot, those of its tags and branches, watermarks,
the register of erasures, statistics; until the state leaves the history of this catalog
one ahead       what an attempt has added, and what else it names; until the next commit here
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.table.metadata.references import Manifests, References, references_of
from keptlog.table.metadata.state import watermarks_paths
from keptlog.table.removal.ahead import ToldApart, told_apart, why_refused
from keptlog.table.removal.erasure_register import register_path

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from keptlog.table.io.files import TableFiles


def spared_references(
    table: Table, stored: Iterable[str], manifests: Manifests, files: TableFiles, load: Callable[[], Table | None]
) -> References:
    """What another catalog may need; ``stored``, ``files`` and ``load`` are those of ``told_apart``.

    Raises:
        LogCorrupt: the storage knows more than the catalog.
    """
    found = told_apart(table, stored, files, load)
    if found.elsewhere:
        raise LogCorrupt(why_refused(table, found.elsewhere))
    return _spared_for(table, found, manifests)


def _spared_for(table: Table, found: ToldApart, manifests: Manifests) -> References:
    """What the metadata files need that may be another catalog's, as far as it can be read."""
    spared = References()
    for path, metadata in found.copied.items():
        shown = {metadata.current_snapshot_id, *(each.snapshot_id for each in metadata.refs.values())}
        snapshots = [each for each in metadata.snapshots if each.snapshot_id in shown]
        spared.add(_needed(path, metadata, snapshots, manifests))
    known = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
    for path, metadata in found.one_ahead.items():
        new = [each for each in metadata.snapshots if each.snapshot_id not in known]
        spared.add(_needed(path, metadata, new, manifests))
    return spared


def _needed(path: str, metadata: TableMetadata, snapshots: Iterable[Snapshot], manifests: Manifests) -> References:
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    register = register_path(metadata.location, metadata.properties)
    named = [*watermarks_paths(metadata.properties), *(each.statistics_path for each in statistics)]
    needed = References(metadata_bytes=dict.fromkeys([path, *([register] if register else []), *named], 0))
    for snapshot in snapshots:
        needed.metadata_bytes[snapshot.manifest_list] = 0
        try:
            needed.add(references_of([snapshot], manifests))
        except LogCorrupt:  # What landed is whole, so this did not; or it has gone before.
            continue
    return needed
