"""Which files still hold values although no live segment is among them, and who holds them.

A purge deletes what was replaced, and says so. Whoever reads its receipt wants to know whether a value is gone, so it
also says what is not: a value may lie in a file that a run staged and never committed, that an older snapshot still
shows, or that a tag keeps. Metadata holds no values, and is not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from keptlog.log.counted import counted
from keptlog.storage.files import StoredFile
from keptlog.table.references import Manifests, references_of

STAGED = "staged"
"""Nothing refers to it: a run that is under way, or one that died. It goes once it is older than the grace."""
RETIRED = "retired"
"""An older snapshot refers to it, until ``file.delete.delay.ms`` has passed."""


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file that may hold values and is not live; the holder is staged, retired, ``tag <name>``, ``branch <name>``."""

    path: str
    bytes: int
    holder: str


def held_files(table: Table, unknown: Mapping[str, StoredFile], manifests: Manifests) -> tuple[HeldFile, ...]:
    """Who holds the files that the current snapshot does not refer to; ``unknown`` is by comparable path.

    Raises:
        LogCorrupt: a snapshot can't be read.
    """
    if not unknown:
        return ()
    holders: dict[str, str] = {}
    for holder, snapshots in _held_snapshots(table).items():
        holders = dict.fromkeys(references_of(snapshots, manifests).keys(), holder) | holders
    files = ((file, holders.get(path, STAGED)) for path, file in unknown.items())
    return tuple(HeldFile(file.path, file.size_bytes, holder) for file, holder in files)


def held_lines(held: Iterable[HeldFile]) -> list[str]:
    """One line for each holder, for people."""
    by_holder: dict[str, list[HeldFile]] = defaultdict(list)
    for file in held:
        by_holder[file.holder].append(file)
    lines = []
    for holder, files in sorted(by_holder.items()):
        what = counted(len(files), "file")
        if holder == STAGED:
            lines.append(f"{what} of runs that are under way, or died: nothing refers to them; deleted after the grace")
        elif holder == RETIRED:
            lines.append(f"{what} that older snapshots still show, until file.delete.delay.ms has passed")
        else:
            lines.append(f"{what} that {holder} keeps, until it is deleted")
    return lines


def _held_snapshots(table: Table) -> dict[str, list[Snapshot]]:
    """Holder to the snapshots that stay beside the current one; first tags and branches, which keep them longest."""
    metadata = table.metadata
    named = {
        reference.snapshot_id: f"{reference.snapshot_ref_type.value} {name}"
        for name, reference in sorted(metadata.refs.items())
        if name != MAIN_BRANCH
    }
    by_holder: dict[str, list[Snapshot]] = {holder: [] for holder in (*named.values(), RETIRED)}
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id != metadata.current_snapshot_id:
            by_holder[named.get(snapshot.snapshot_id, RETIRED)].append(snapshot)
    return by_holder
