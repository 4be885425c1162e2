"""What a topic's table and storage tell of how far its erasures are; ``keptlog.log.erasures.erasure`` decides.

A snapshot that is older than the one in which the records were gone may still show them. Which of those are there, and
who keeps them, stands in the table. What no snapshot shows, ``held`` finds.

What another program commits to a branch is as old as where it left main: it shows what main showed then.

    main        1 <- 2 <- 3 <- 6        the records are gone in 3
    branch      1 <- 4 <- 5             4 and 5 are as old as 1, and may show them

Without 1, the segments of keptlog in 4 decide. It commits to main alone, so 4 left main after the newest of them came
there. What another program wrote tells nothing: it may have old records, however new the file is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.log.erasures.erasure import Erasure, GoneSince
from keptlog.log.segment_path import is_named_by_keptlog
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.lineage import is_ours
from keptlog.table.metadata.metadata_reading import entries_of, looked_at, manifests_of
from keptlog.table.removal.erasure_register import read_erasures

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    LoadTable = Callable[[], Table]

_MAIN_BRANCH = "main"


def current_snapshot_of(table: Table) -> GoneSince:
    """The current snapshot; that of a topic without any is as old as can be."""
    current = table.current_snapshot()
    return GoneSince(current.sequence_number or 0, current.timestamp_ms) if current else GoneSince(0, 0)


def without_segments_since(table: Table) -> GoneSince | None:
    """The first snapshot from which on the table shows no segment; null if it shows one now, or has no snapshot.

    What another request of then waits for, this one waits for too: each adds a snapshot that shows as little.
    """
    topic, since = table.name()[-1], None
    snapshot = table.current_snapshot()
    while snapshot and not _shows_segments(topic, snapshot, table):
        since = snapshot
        parent_id = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent_id) if parent_id is not None else None
    return GoneSince(since.sequence_number or 0, since.timestamp_ms) if since else None


def _shows_segments(topic: str, snapshot: Snapshot, table: Table) -> bool:
    """By its manifest list alone; one that is damaged may show some."""
    try:
        return any(
            each.has_added_files() or each.has_existing_files() for each in manifests_of(topic, snapshot, table.io)
        )
    except LogCorrupt:
        return True


def snapshot_ids(table: Table) -> tuple[int, ...]:
    """Of all snapshots that are there, the current one last."""
    current = table.metadata.current_snapshot_id
    others = sorted(each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id != current)
    return (*others, current) if current is not None else tuple(others)


@dataclass(frozen=True, slots=True)
class SnapshotAges:
    """From when the snapshots of a table are: each from its place on main, or from where it left main."""

    table: Table
    numbers: Mapping[int, int]
    """Snapshot to sequence number."""

    @classmethod
    def of(cls, table: Table, *, looks_inside: bool = False) -> SnapshotAges:
        """Without a look inside, a snapshot of which nobody knows where it left main is as old as can be."""
        return cls(table, _numbers_on_main(table, looks_inside=looks_inside))

    @property
    def oldest(self) -> int:
        """The smallest of the numbers; 0 if there is none."""
        return min(self.numbers.values(), default=0)

    def keepers(self, sequence_number: int) -> list[str]:
        """Tags and branches that keep a snapshot from before that one, ``tag audit``, sorted."""
        return sorted(
            f"{reference.snapshot_ref_type.value} {name}"
            for name, reference in self.table.metadata.refs.items()
            if name != _MAIN_BRANCH and self.numbers.get(reference.snapshot_id, sequence_number) < sequence_number
        )


def _numbers_on_main(table: Table, *, looks_inside: bool) -> dict[int, int]:
    """Snapshot to its sequence number, or to that of the last one of main that it comes from.

    If that one has expired, nobody knows it: it is no older than what is given, which is 0 without a look inside.
    """
    line = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in line}
    # keptlog commits to main alone, and a tag may keep one whose line is broken.
    on_main = {snapshot.snapshot_id for snapshot in line if is_ours(snapshot)}
    current = table.metadata.current_snapshot_id
    while current is not None and current in parents:
        on_main.add(current)
        current = parents.pop(current)
    numbers: dict[int, int] = {}
    for each in line:
        if each.snapshot_id in on_main:
            numbers[each.snapshot_id] = each.sequence_number or 0
        elif each.parent_snapshot_id in numbers:
            numbers[each.snapshot_id] = numbers[each.parent_snapshot_id]
        else:
            numbers[each.snapshot_id] = _newest_own(table, each) if looks_inside else 0
    return numbers


def _newest_own(table: Table, snapshot: Snapshot) -> int:
    """The highest sequence number of keptlog's own segments that a snapshot shows; 0 if it can't be read."""
    topic = table.name()[-1]
    try:
        shown = (each for of in manifests_of(topic, snapshot, table.io) for each in entries_of(topic, of, table.io))
        own = (each.sequence_number or 0 for each in shown if is_named_by_keptlog(each.data_file.file_path))
        return max(own, default=0)
    except LogCorrupt:
        return 0


def read_register(files: TableFiles, load: Callable[[], Table]) -> tuple[Erasure, ...]:
    """The erasures of a topic as they are now, oldest first.

    Raises:
        LogCorrupt: they are damaged, or gone.
    """
    return register_and_table(files, load)[0]


def register_and_table(files: TableFiles, load: Callable[[], Table]) -> tuple[tuple[Erasure, ...], Table]:
    """The same, with the table that they were read by: who looks at more of it need not load it again."""
    return looked_at(load, lambda table: (read_erasures(files, table), table))


def while_same(load: LoadTable, topic_id: str) -> LoadTable:
    """Load a topic's table as it is now, for whoever looks at it several times.

    The call that it gives raises StalePlan once the topic is another one of the same name.
    """

    def loaded() -> Table:
        table = load()
        if str(table.metadata.table_uuid) != topic_id:
            raise StalePlan(
                f"topic {table.name()[-1]} was deleted and created again while its files were looked through: nothing "
                "is verified in the new one, which has requests of its own (keptlog erasure list)"
            )
        return table

    return loaded
