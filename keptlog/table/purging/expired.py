"""What outlives the snapshots that a purge expires: which changes landed (``runs``), what they did (``history``)."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.table.io.files import TableFiles
from keptlog.table.metadata import history, runs
from keptlog.table.purging.quiet import PurgeTimes, has_open_erasures


def remember(files: TableFiles, table: Table, expiring: Sequence[Snapshot], new_id: str, now_ms: int) -> list[str]:
    """Write down what these snapshots tell, before the commit that expires them; gives the files that it replaces."""
    runs.remember(files, table, expiring, new_id, now_ms)
    return history.remember_entries(files, table, expiring, new_id, now_ms)


def outdated(files: TableFiles, table: Table, times: PurgeTimes) -> list[str]:
    """What was written down too long ago; and while a key is to be erased, what nobody can look through."""
    old = runs.outdated(files, table.location(), times.now_ms, times.run_memory_ms)
    old += history.outdated_entries(files, table.location(), times.now_ms, times.history_ms)
    if has_open_erasures(table):
        old += history.unreadable_entries(files, table, times.now_ms - times.orphan_grace_ms)
    return list(dict.fromkeys(old))
