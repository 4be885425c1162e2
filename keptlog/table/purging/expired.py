"""What outlives the snapshots that a purge expires: which changes landed (``runs``), what they did (``history``)."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.table.io.files import TableFiles
from keptlog.table.metadata import history, runs
from keptlog.table.purging.quiet import PurgeTimes, has_open_erasures


def remember(files: TableFiles, table: Table, expiring: Sequence[Snapshot], new_id: str, now_ms: int) -> None:
    """Write down what these snapshots tell; to be called before the commit that expires them."""
    runs.remember(files, table, expiring, new_id, now_ms)
    history.remember_entries(files, table, expiring, new_id, now_ms)


def forget(files: TableFiles, table: Table, times: PurgeTimes) -> None:
    """Delete what was written down too long ago; and while a key is to be erased, what nobody can look through."""
    runs.forget(files, table.location(), times.now_ms, times.run_memory_ms)
    history.forget_entries(files, table.location(), times.now_ms, times.history_ms)
    if has_open_erasures(table):
        history.drop_unreadable(files, table, times.now_ms - times.orphan_grace_ms)
