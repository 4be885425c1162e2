"""What outlives the snapshots that a purge expires: which changes landed (``runs``), what they did (``history``)."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.table import history, runs
from keptlog.table.files import TableFiles
from keptlog.table.quiet import PurgeTimes


def remember(files: TableFiles, table: Table, expiring: Sequence[Snapshot], new_id: str, now_ms: int) -> None:
    """Write down what these snapshots tell; to be called before the commit that expires them."""
    runs.remember(files, table, expiring, new_id, now_ms)
    history.remember_entries(files, table, expiring, new_id, now_ms)


def forget(files: TableFiles, location: str, times: PurgeTimes) -> None:
    """Delete what was written down too long ago, of the topic at a location."""
    runs.forget(files, location, times.now_ms, times.run_memory_ms)
    history.forget_entries(files, location, times.now_ms, times.history_ms)
