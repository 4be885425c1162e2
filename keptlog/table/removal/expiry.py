"""Which snapshots a purge expires, and which files only those have.

A reader that began with a snapshot keeps it for ``file.delete.delay.ms`` after another one took its place. Snapshots
that a tag or a branch points to stay, until that ends (``ref_retention``).

In the ordinary history each snapshot was built on the one before, and the oldest ones expire together:

    expired  [ 1 ][ 2 ][ 3 ]  kept  [ 4 ][ 5 ] ... [ 600 ]

No path is ever used twice (I2), and a manifest that was dropped never comes back: what a snapshot behind 4 needs of the
first three, 4 needs as well. So of those that stay only 4 is looked at, and of its manifests only those that not every
expired one has. What is read grows with what expires, not with what there is.

The complication is any other history: tags in the middle, branches, rollbacks, clocks that went back, and a line in
which not every commit only went on from the one before. A repair brings files back that were dropped, and so may
another program, which may also add a file that is there already. There all that stays is compared with all that goes.

A snapshot that is about to expire may be damaged, and nobody needs to mend it any more. What can't be read of it is
told; what only that file would have named is an orphan from now on, and goes with those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.table.metadata.change import OPERATION
from keptlog.table.metadata.lineage import summary_of
from keptlog.table.metadata.references import Manifests, References, references_of
from keptlog.table.removal.ref_retention import EndedRef, kept_snapshots

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_GOES_ON = {
    *("append", "ingest", "clean", "retain", "delete-records", "truncate"),
    *("drop", "sweep", "alter", "erase", "register", "forget"),
}
"""Our commits that take the files of the snapshot before, and bring back none that was dropped."""
EXPIRED_AT_ONCE = 500
"""A commit of PyIceberg compares each snapshot that goes with all that are there."""


@dataclass
class Expiry:
    """Snapshots that expire in one commit, and the files that no other snapshot has."""

    snapshot_ids: tuple[int, ...]
    files: References
    unreadable: list[str] = field(default_factory=list)
    """What could not be read of them, one line each."""
    refs: tuple[EndedRef, ...] = ()
    """They go in the same commit."""

    @property
    def ref_names(self) -> list[str]:
        return [each.name for each in self.refs]


def replaced_before(table: Table, moment_ms: int, now_ms: int) -> list[Snapshot]:
    """Snapshots that ceased to be current at or before a moment, oldest first; none that a branch or tag keeps now."""
    protected = kept_snapshots(table, now_ms)
    replaced_ms = replaced_at_ms(table)
    return [
        snapshot
        for snapshot in _by_age(table)
        if snapshot.snapshot_id not in protected and replaced_ms[snapshot.snapshot_id] <= moment_ms
    ]


def replaced_at_ms(table: Table) -> dict[int, int]:
    """Snapshot to when another one took its place; when it was made, if none that is still known has.

    That is one that was built on it, or to which somebody has rolled back. A rollback's entry has a time of its own.
    Any other entry has that of its snapshot, and may stand behind one whose successor has expired: it says nothing.
    """
    metadata = table.metadata
    made_ms = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
    changes = [(snapshot.parent_snapshot_id, snapshot.timestamp_ms) for snapshot in metadata.snapshots]
    changes += [
        (before.snapshot_id, after.timestamp_ms)
        for before, after in pairwise(metadata.snapshot_log)
        if after.timestamp_ms != made_ms.get(after.snapshot_id)
    ]
    replaced_ms: dict[int, int] = {}
    for snapshot_id, at_ms in changes:
        if snapshot_id in made_ms:
            replaced_ms[snapshot_id] = max(replaced_ms.get(snapshot_id, 0), at_ms)
    return made_ms | replaced_ms


def expiry_of(table: Table, expired: Sequence[Snapshot], manifests: Manifests) -> Expiry:
    """What only these snapshots have.

    Raises:
        LogCorrupt: a snapshot that stays, and has to be looked at, can't be read.
    """
    ids = {snapshot.snapshot_id for snapshot in expired}
    expiry = Expiry(tuple(sorted(ids)), References())
    if not ids:
        return expiry
    follower = _follower(table, expired)
    if follower:
        _collect_unlike(follower, expired, manifests, expiry)
    else:
        for snapshot in expired:
            _collect(snapshot, set(), manifests, expiry)
        kept = [snapshot for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in ids]
        expiry.files = expiry.files.without(references_of(kept, manifests))
    return expiry


def _by_age(table: Table) -> list[Snapshot]:
    return sorted(table.metadata.snapshots, key=lambda snapshot: (snapshot.sequence_number or 0, snapshot.timestamp_ms))


def _follower(table: Table, expired: Sequence[Snapshot]) -> Snapshot | None:
    """The first snapshot that stays, if the beginning of a single line expires and the rest only goes on; else null."""
    line = _by_age(table)
    parents = [snapshot.parent_snapshot_id for snapshot in line]
    ids = [snapshot.snapshot_id for snapshot in line]
    is_single = parents[1:] == ids[:-1] and parents[0] not in ids
    if not is_single or len(line) == len(expired) or {each.snapshot_id for each in expired} != set(ids[: len(expired)]):
        return None
    follower, *rest = line[len(expired) :]
    if not all(OPERATION in summary_of(each) for each in [*expired, follower]):
        return None  # a file that another program has added twice stands in two manifests, of which one expires
    return follower if all(summary_of(each).get(OPERATION) in _GOES_ON for each in rest) else None


def _collect_unlike(follower: Snapshot, expired: Sequence[Snapshot], manifests: Manifests, expiry: Expiry) -> None:
    """What the expired snapshots have and their follower does not."""
    kept = {manifest.manifest_path: manifest for manifest in manifests.of(follower)}
    in_all = set(kept)
    for snapshot in expired:
        in_all &= {manifest.manifest_path for manifest in _collect(snapshot, set(kept), manifests, expiry)}
    needed = References()
    for path, manifest in kept.items():
        if path not in in_all:
            needed.add(manifests.files_in(manifest))
    expiry.files = expiry.files.without(needed)


def _collect(snapshot: Snapshot, kept: set[str], manifests: Manifests, expiry: Expiry) -> Sequence[ManifestFile]:
    """Add an expired snapshot's files, as far as they can be read and are of no kept manifest; gives its manifests."""
    expiry.files.metadata_bytes[snapshot.manifest_list] = 0
    try:
        of_snapshot = manifests.of(snapshot)
    except LogCorrupt as error:
        expiry.unreadable.append(str(error))
        return ()
    for manifest in of_snapshot:
        path = manifest.manifest_path
        if path in kept or path in expiry.files.metadata_bytes:
            continue
        expiry.files.metadata_bytes[path] = manifest.manifest_length
        try:
            expiry.files.add(manifests.files_in(manifest))
        except LogCorrupt as error:
            expiry.unreadable.append(str(error))
    return of_snapshot
