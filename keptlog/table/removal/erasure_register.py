"""The erasures of a topic: one file that a property names, written anew as a whole with each change (``erasures``).

    log.erasures         {"file": "5f2c….json", "crc32": 301…}            metadata/receipts/erasures/5f2c….json
    log.erasures.open    {"count": 2, "earliest_deadline_ms": …}          so that whoever only looks reads no file

Both move in commits that produce a snapshot.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.disk import NO_FILE
from keptlog.errors import Action, LogCorrupt
from keptlog.log.erasures.erasure import Erasure
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.format import SET_IT_BACK
from keptlog.table.metadata.state import ERASURES, OPEN_ERASURES, lacks_register
from keptlog.table.metadata.stored_json import from_json, from_json_file, from_property, require_bare
from keptlog.table.removal.journal import erasures_folder
from keptlog.table.removal.own_folder import moved_from

if TYPE_CHECKING:
    from pyiceberg.table import Table

_PUT_BACK = "put it back from a copy of the storage"


@dataclass(frozen=True, slots=True)
class NamedFile:
    """What the property says."""

    file: str
    crc32: int

    def __post_init__(self) -> None:
        require_bare(self.file)


@dataclass(frozen=True, slots=True)
class Register:
    """The content of the file."""

    erasures: tuple[Erasure, ...]


def read_erasures(files: TableFiles, table: Table) -> tuple[Erasure, ...]:
    """All erasures that a topic remembers, oldest first.

    Raises:
        LogCorrupt: the file is gone or damaged. It is gone as well if a commit came since the table was loaded: so
            ``looked_at`` asks it, or what a commit prepares.
    """
    topic, named = table.name()[-1], named_file(table)
    if not named:
        return ()
    path = register_folder(table) + named.file
    mend = f"{_PUT_BACK}; until then nobody can tell which erasures are open"
    try:
        content = files.read_bytes(path)
    except FileNotFoundError:
        moved = moved_from(table)
        if moved:
            # It is where it was: set back, the table finds it.
            mend = f"the folder {table.location()} {moved.why}: {moved.todo}"
        error = LogCorrupt(f"topic {topic}: its erasures {path} are gone; {mend}")
        error.action = Action.FIX_CONFIG if moved else error.action
        raise error from None
    except NO_FILE as error:
        raise LogCorrupt(f"topic {topic}: its erasures {path} can't be read ({error.strerror}); {mend}") from error
    if zlib.crc32(content) != named.crc32:
        raise LogCorrupt(f"topic {topic}: its erasures {path} are not as they were written; {mend}")
    return from_json(Register, content.decode(errors="replace"), path, "list of erasures", mend).erasures


def read_register_file(files: TableFiles, path: str) -> tuple[Erasure, ...]:
    """The erasures of a file, whether a table names it or not.

    Raises:
        LogCorrupt: it is no such file.
        FileNotFoundError: it is gone.
    """
    return from_json_file(Register, files.read_bytes(path), path, "list of erasures", _PUT_BACK).erasures


def is_register(files: TableFiles, path: str) -> bool:
    """Whether a file is one, named by its table or not; FileNotFoundError if it is gone."""
    try:
        read_register_file(files, path)
    except LogCorrupt:
        return False
    return True


def named_file(table: Table) -> NamedFile | None:
    """What names the file; null if no erasure was ever asked for.

    Raises:
        LogCorrupt: another program has changed the property, or removed it.
    """
    text = table.properties.get(ERASURES)
    where = f"topic {table.name()[-1]}: property {ERASURES}"
    if text is not None:
        return from_property(NamedFile, text, where, "name of a file", SET_IT_BACK)
    if lacks_register(table.name()[-1], table.properties):
        # Taken for none, requests would be proved without this topic, and the next purge would delete the file.
        raise LogCorrupt(f"{where} is gone, though {OPEN_ERASURES} counts erasures; {SET_IT_BACK}").of_property()
    return None


def register_path(location: str, properties: Mapping[str, str]) -> str | None:
    """The file that a state of a table names; null if it names none, or nobody can tell which."""
    try:
        named = from_property(NamedFile, properties[ERASURES], ERASURES, "name of a file", "")
    except (KeyError, LogCorrupt):
        return None
    return erasures_folder(location) + named.file


def register_folder(table: Table) -> str:
    """Where the file lies; ends with a slash."""
    return erasures_folder(table.location())
