"""What a purge is about to delete, written down before it does what can't be taken back: ``metadata/gc/<id>.json``.

    expiry   the files of snapshots that are about to expire          written before the commit that expires them
    sweep    orphans that a late commit could still bring in          written before the commit that condemns them

Whoever finds a journal carries it out: deletes what it names and nothing refers to, then the journal itself. So a
journal that is gone has nothing left of what it named, but for files that a table refers to.

A sweep's journal is named in the table besides, in ``log.condemned``, and every commit that brings in staged files
looks there first (``condemned_paths``). Why, is told in ``keptlog.table.sweep``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.table import Table

from keptlog.table.files import TableFiles
from keptlog.table.references import comparable_forms
from keptlog.table.state import CONDEMNED
from keptlog.table.stored_json import from_json, to_json

EXPIRY = "expiry"
SWEEP = "sweep"


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A file that is off the storage. ``bytes`` is 0 where the size was not known any more."""

    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Journal:
    """What is to be deleted.

    The orphans of a sweep stand in ``metadata``: a keptlog that knows no ``kind`` carries them out as well.
    """

    snapshots: tuple[int, ...]
    segments: tuple[DeletedFile, ...]
    metadata: tuple[DeletedFile, ...]
    kind: str = EXPIRY

    @property
    def paths(self) -> list[str]:
        """All that it names."""
        return [file.path for file in self.segments + self.metadata]

    def and_of(self, other: Journal) -> Journal:
        """Both in one, each file once."""
        return Journal(
            tuple(sorted({*self.snapshots, *other.snapshots})),
            tuple(dict.fromkeys(self.segments + other.segments)),
            tuple(dict.fromkeys(self.metadata + other.metadata)),
            self.kind,
        )


def journal_folder(location: str) -> str:
    """Where the journals of a topic lie; ends with a slash."""
    return f"{location}/metadata/gc/"


def receipt_folder(location: str) -> str:
    """Where it is kept what was deleted; ends with a slash, and is never swept."""
    return f"{location}/metadata/receipts/"


def write_journal(files: TableFiles, path: str, journal: Journal) -> None:
    """Write a journal, durably."""
    files.write_bytes(path, to_json(journal).encode())


def read_journal(files: TableFiles, path: str) -> Journal:
    """Read a journal.

    Raises:
        FileNotFoundError: it was carried out meanwhile.
        LogCorrupt: it is none.
    """
    text = files.read_bytes(path).decode(errors="replace")
    return from_json(Journal, text, path, "journal of a purge", "keptlog purge sets it aside")


def condemned_names(topic: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """The file names of the journals that a table calls condemned; some of them may be gone.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    text = properties.get(CONDEMNED)
    if not text:
        return ()
    return from_json(tuple[str, ...], text, f"topic {topic}: property {CONDEMNED}", "list of journals", "remove it")


def condemned_paths(files: TableFiles, table: Table) -> set[str]:
    """The files, in comparable form, that no commit may bring into a table any more: a purge is deleting them.

    Look here first, and then whether a file is there: of a journal that is gone everything was deleted.

    Raises:
        LogCorrupt: a journal can't be read.
    """
    found: set[str] = set()
    for name in condemned_names(table.name()[-1], table.properties):
        try:
            journal = read_journal(files, journal_folder(table.location()) + name)
        except FileNotFoundError:
            continue
        found.update(comparable_forms(journal.paths).values())
    return found
