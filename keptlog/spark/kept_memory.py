"""What a worker keeps of the memory that Arrow has freed, from one task to the next (ADR 77).

Settings name the variable, and workers look at it, those too to which keptlog's code comes as an archive.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

KEEPS_MEMORY = "MIMALLOC_PURGE_DELAY"
"""Tells Arrow's allocator, of a worker, for how many ms it is to keep what is free."""
KEPT_BYTES = 2**29
"""Of a worker that keeps memory, between two tasks: more than a task takes that is cut to its usual size."""
_STATM = Path("/proc/self/statm")
_RESIDENT = 1
"""The field of ``statm`` that says how many pages a process has."""


def give_back(pool: pa.MemoryPool) -> None:
    """Give back what is free, after a task; where memory is kept, only once there is much."""
    is_kept = KEEPS_MEMORY in os.environ and pool.backend_name == "mimalloc"
    if not is_kept or _resident_bytes() > KEPT_BYTES:
        pool.release_unused()


def _resident_bytes() -> int:
    """The memory of this process; where nobody tells it, more than any has."""
    try:
        return int(_STATM.read_text().split()[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return KEPT_BYTES + 1
