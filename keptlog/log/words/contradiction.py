"""What is said where files and state of a topic contradict each other.

Whoever judges a topic has asked before whether another program has changed it (``keptlog.table.metadata.lineage``).
Then a file of the table is not the one that was written, and no repair brings it back. Who has not asked says so
(``blaming``).
"""

from __future__ import annotations

from keptlog.errors import LogCorrupt

_CAUSE = "a file of its metadata was written over, or another program changed a property"
_TODO = "put the metadata back from a copy of the storage"


def contradiction(what: str) -> LogCorrupt:
    """The error of a topic that no other program's commit has changed; ``what`` contradicts what, without an end."""
    error = LogCorrupt(f"{what}: {_CAUSE}; {_TODO}")
    error.contradiction = what
    return error
