"""A database of SQLite that a writer has died in, and that this user can't bring back to its last commit.

SQLite has a word of its own for that only where it may not write to the database. Where it may, and not to the folder
or to the journal, it says "disk I/O error" or "unable to open database file", as of a disk that fails or is full. So it
is told by what is there: a journal with something in it, and no right to take back what that has.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

_AS_OF_A_DISK = ("SQLITE_IOERR", "SQLITE_CANTOPEN")
"""So begin SQLite's names of what it may have met then. A lock is something else, and so is a database that this user
may only read: a living writer has such a journal too.
"""


class HalfDone(sqlite3.OperationalError):
    """What SQLite said of such a database, told from what it says of a disk."""

    @property
    def in_words(self) -> str:
        """What people are told of it: they know no class of ours."""
        return f"SQLite says {str(self)!r}"


def half_done(error: BaseException | None, database: Path) -> HalfDone | None:
    """What SQLite says of a file, where this is the reason; else null."""
    name = getattr(error, "sqlite_errorname", "")
    if not name.startswith(_AS_OF_A_DISK) or not _is_left(database):
        return None
    return HalfDone(str(error))


def told_half_done(error: BaseException) -> HalfDone | None:
    """What was told of an error as this, also where SQLAlchemy wraps it; else null."""
    found = getattr(error, "orig", error)
    return found if isinstance(found, HalfDone) else None


def _is_left(database: Path) -> bool:
    journal = database.with_name(f"{database.name}-journal")
    try:
        if not journal.stat().st_size:
            return False
    except OSError:
        return False
    is_allowed = os.access(database.parent, os.W_OK | os.X_OK)
    return not is_allowed or not all(os.access(file, os.R_OK | os.W_OK) for file in (database, journal))
