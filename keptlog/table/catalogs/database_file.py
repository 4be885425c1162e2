"""The file of an embedded catalog, for a program that has it open: gone, or another one than it was.

A connection goes on with the file that it was opened with. Who asks it after the home was moved, unmounted, or put back
from a backup, reads what nobody else sees any more, and writes where nobody looks. So a connection is taken out of the
pool only while the file at the path is still the one that it was opened with.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError

from keptlog.folders import NOT_THERE
from keptlog.table.catalogs.home_folder import lost_since
from keptlog.table.waiting.reach import FailureKind, ToldFailure

FileIdentity = tuple[int, int]
"""Device and inode: no other file has both while a connection has this one open."""
_OPENED = "keptlog.opened"
_USED = "keptlog.used"


def identity_of(database: Path) -> FileIdentity | None:
    """Tells a file from one that took its place; null if there is none."""
    there = _stat(database)
    return (there.st_dev, there.st_ino) if there else None


def is_blank(database: Path) -> bool:
    """Whether nothing is in a file that is there: it was made just now, or emptied where it lies."""
    there = _stat(database)
    return there is not None and there.st_size == 0


def _stat(database: Path) -> os.stat_result | None:
    """What is told of a file; null if there is none, as where a folder or a pipe is in its place."""
    try:
        there = database.stat()
    except NOT_THERE:
        return None
    return there if stat.S_ISREG(there.st_mode) else None


def follow_file(engine: Engine, database: Path) -> None:
    """Let an engine's connections go with the file that lies at this path."""

    def remember(_dialect: Any, record: Any, _arguments: Any, _named: Any) -> None:
        # Before it is opened: if another file comes in between, the connection is taken for an old one.
        record.info[_OPENED] = identity_of(database)

    def compare(_connection: Any, record: Any, _proxy: Any) -> None:
        there = identity_of(database)
        if there is None:
            raise ToldFailure(lost_since(database.parent), FailureKind.NOT_SENT)
        # One that reads an emptied file takes its first page for empty, also after the same content is back.
        is_emptied = record.info.get(_USED, False) and is_blank(database)
        if record.info[_OPENED] != there or is_emptied:
            raise DisconnectionError  # the pool opens the file that is there now
        record.info[_USED] = True

    event.listen(engine, "do_connect", remember)
    event.listen(engine, "checkout", compare)
