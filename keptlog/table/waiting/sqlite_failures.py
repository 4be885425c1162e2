"""What SQLite's errors mean: it has words for what happened to its file, few names, and no numbers of the disk's."""

from __future__ import annotations

import resource
import sqlite3

from sqlalchemy.exc import DBAPIError, OperationalError

from keptlog.disk import FULL, TOO_LARGE, DiskRefusal, is_of_reading_too, refusal_of
from keptlog.table.waiting.half_done import told_half_done
from keptlog.table.waiting.reaching import HALF_DONE

_READ_ONLY = DiskRefusal("can't be written to", "let this user write there, or mount it for writing")
"""SQLite tells no right that is missing from a disk that is read-only."""
OF_HALF_DONE = DiskRefusal(
    "has a commit that its writer died in, with its journal, and takes no writes of this user to take it back",
    HALF_DONE,
)


def disk_refusal_of(error: BaseException) -> DiskRefusal | None:
    """What a disk, also that of SQLite's database, refuses for good to write; null if something else is wrong.

    SQLite rolls the transaction back, so nothing landed. It has words for this, and no numbers that SQLAlchemy shows. A
    part of the catalog uses SQLite without SQLAlchemy.
    """
    text = str(error) if isinstance(error, OperationalError | sqlite3.OperationalError) else ""
    if "database or disk is full" in text:
        return FULL
    if _is_over_limit(error):
        return TOO_LARGE
    if was_moved(error) or is_of_reading_too(error):
        return None
    if told_half_done(error) or _sqlite_name(error) == "SQLITE_READONLY_ROLLBACK":
        return OF_HALF_DONE
    return _READ_ONLY if "readonly database" in text else refusal_of(error)


def is_locked(error: BaseException) -> bool:
    return isinstance(error, OperationalError) and "database is locked" in str(error)


def is_unopened(error: BaseException) -> bool:
    """Whether SQLite can't open its file, or make the journal without which it writes nothing: no file is left to have.

    It has one word for a disk that takes no more files and for a process that may open no more, and no number.
    """
    is_sqlite = isinstance(error, OperationalError | sqlite3.OperationalError)
    return is_sqlite and "unable to open database file" in str(error)


def is_damaged(error: Exception) -> bool:
    """Whether SQLite says that its file is none of its own, or was written over; its other errors are subclasses."""
    return type(error.orig if isinstance(error, DBAPIError) else error) is sqlite3.DatabaseError


def _is_over_limit(error: BaseException) -> bool:
    """Whether SQLite could not write, in a process that may write no large file: it has one name for each failed write.

    It writes before it commits, so nothing landed. Without such a limit it may be a disk that comes back.
    """
    return (
        _sqlite_name(error) == "SQLITE_IOERR_WRITE"
        and resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
    )


def was_moved(error: BaseException) -> bool:
    """Whether SQLite met its file in another place than it was opened in: that is read-only to it, too."""
    return isinstance(error, DBAPIError) and _sqlite_name(error) == "SQLITE_READONLY_DBMOVED"


def _sqlite_name(error: BaseException) -> str | None:
    """SQLite's own name of an error, finer than its words; null if it is not of SQLite."""
    name: str | None = getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlite_errorname", None)
    return name
