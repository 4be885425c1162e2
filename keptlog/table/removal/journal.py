"""What a purge is about to delete, written down before it does what can't be taken back: ``metadata/gc/<id>.json``.

    expiry         the files of snapshots that are about to expire    written before the commit that expires them
    sweep          orphans                                            written before the commit that condemns them
    topic-delete   all files of a topic that is being deleted         written before the first of them goes

Whoever finds a journal that is his (``own_journals``) carries it out (``removal``): deletes what it names and nothing
refers to, leaves a receipt of it, then deletes the journal. So a journal that is gone has nothing left of what it
named, but for files that a table refers to. What could not be deleted is in another journal by then, which follows the
first and has its name in its own.

A sweep's journal may be named in the table besides, in ``log.condemned``, and every commit that brings in staged files
looks there first (``condemned_paths``). Why, is told in ``keptlog.table.purging.sweep``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import comparable_forms
from keptlog.table.metadata.segment_metrics import RecordRange
from keptlog.table.metadata.state import read_condemned
from keptlog.table.metadata.stored_json import from_json, to_json
from keptlog.whole_file import is_unfinished

if TYPE_CHECKING:
    from pyiceberg.table import Table

EXPIRY = "expiry"
SWEEP = "sweep"
DELETION = "topic-delete"
DELETION_NAME = "deletion-"
"""Begins the names of the journals of deletions, and the ids of their receipts."""
_FOLLOWS = "-1.json"
"""Ends the names of those of what could not be deleted; no id ends like that."""
_SET_ASIDE = "keptlog purge sets it aside"


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A file that goes, or is off the storage. ``bytes`` is 0 where the size was not known any more."""

    path: str
    bytes: int
    partition: int | None = None
    """Of the records in it, as the manifests tell it; null for what is no segment, or was never live."""
    first_offset: int | None = None
    last_offset: int | None = None
    crc32: str | None = None
    """The checksums that keptlog wrote into its footer; null without one."""

    @property
    def records(self) -> RecordRange | None:
        """Which records are in it; null where it does not say."""
        if self.partition is None or self.first_offset is None or self.last_offset is None:
            return None
        return RecordRange(self.partition, self.first_offset, self.last_offset)


@dataclass(frozen=True, slots=True)
class EndedErasure:
    """An open erasure that ends because its topic is deleted; the names are those of the receipt of an erasure."""

    request: str
    way: str
    reason: str
    state: str
    """How far it was."""
    requested_ms: int
    deadline_ms: int | None
    secret_fingerprint: str
    key_hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Journal:
    """What is to be deleted.

    The orphans of a sweep, and all files of a topic that is being deleted, stand in ``metadata``: a keptlog that knows
    no ``kind`` carries a sweep out as well.
    """

    snapshots: tuple[int, ...]
    segments: tuple[DeletedFile, ...]
    metadata: tuple[DeletedFile, ...]
    kind: str = EXPIRY
    not_looked_at: tuple[str, ...] = ()
    """What could not be read when it was made, a line each: files that only that names are not among these."""
    erasures: tuple[EndedErasure, ...] | None = None
    """Of a topic's deletion: what ends with it, each in one of its journals; null if nobody knows.

    That is so where it could not be read, and where an older keptlog wrote the journal, which did not look.
    """
    table_uuid: str | None = None
    """The id of the topic whose files these are; null in a journal of an older keptlog, which did not write it down."""

    @property
    def paths(self) -> list[str]:
        """All that it names."""
        return [file.path for file in self.segments + self.metadata]

    def only(self, is_meant: Callable[[DeletedFile], bool]) -> Journal:
        """The same journal with some of its files; without its snapshots if none is left."""
        segments, metadata = (tuple(filter(is_meant, files)) for files in (self.segments, self.metadata))
        snapshots = self.snapshots if segments or metadata else ()
        return replace(self, snapshots=snapshots, segments=segments, metadata=metadata)

    def without_snapshots(self, there: Collection[int]) -> Journal:
        """The same journal without snapshots that are still there: the commit that was to expire them never landed."""
        return replace(self, snapshots=tuple(each for each in self.snapshots if each not in there))

    def and_of(self, other: Journal) -> Journal:
        """Both in one, each file once."""
        return replace(
            self,
            snapshots=tuple(sorted({*self.snapshots, *other.snapshots})),
            segments=tuple(dict.fromkeys(self.segments + other.segments)),
            metadata=tuple(dict.fromkeys(self.metadata + other.metadata)),
            not_looked_at=tuple(dict.fromkeys(self.not_looked_at + other.not_looked_at)),
        )


def is_sweep(journal: Journal) -> bool:
    return journal.kind == SWEEP


def journal_folder(location: str) -> str:
    """Where the journals of a topic lie; ends with a slash."""
    return f"{location}/metadata/gc/"


def id_of(path: str) -> str:
    """The id of a journal, or of the draft of a receipt, from where it lies."""
    return path.rpartition("/")[2].removesuffix(".json")


def following(path: str) -> str:
    """The journal of what could not be deleted of what another one named; sorted behind it."""
    return f"{path.removesuffix('.json')}{_FOLLOWS}"


def is_following(path: str) -> bool:
    """Whether it was written once all the rest of what the first one named was gone."""
    return path.endswith(_FOLLOWS)


def receipt_folder(location: str) -> str:
    """Where it is kept what was deleted, until it is sealed; ends with a slash, and is never swept."""
    return f"{location}/metadata/receipts/"


def erasures_folder(location: str) -> str:
    """Where it is kept which keys are to be erased; ends with a slash."""
    return f"{receipt_folder(location)}erasures/"


def unreadable_folder(location: str) -> str:
    """Where journals are set aside that nobody carries out; ends with a slash, and is never swept."""
    return f"{receipt_folder(location)}unreadable/"


def taken_back_folder(location: str) -> str:
    """Where journals are set aside of deletions that were taken back; ends with a slash, and is never swept."""
    return f"{receipt_folder(location)}taken-back/"


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
    journal = from_json(Journal, text, path, "journal of a purge", _SET_ASIDE)
    if not all(named and "\0" not in named for named in journal.paths):
        raise LogCorrupt(f"{path} is no journal of a purge: it names a file that no storage can have; {_SET_ASIDE}")
    return journal


def read_journals(files: TableFiles, location: str, paths: Iterable[str]) -> tuple[dict[str, Journal], dict[str, str]]:
    """The journals among the paths of a listing, and why the others there can't be read; both by path."""
    journals: dict[str, Journal] = {}
    unreadable: dict[str, str] = {}
    for path in paths:
        if not path.startswith(journal_folder(location)) or is_unfinished(path):
            continue
        try:
            journals[path] = read_journal(files, path)
        except FileNotFoundError:
            continue
        except LogCorrupt as error:
            unreadable[path] = str(error)
    return journals, unreadable


def condemned_paths(files: TableFiles, table: Table) -> set[str]:
    """The files, in comparable form, that no commit may bring into a table any more: a purge is deleting them.

    Look here first, and then whether a file is there: of a journal that is gone everything was deleted.

    Raises:
        LogCorrupt: a journal can't be read.
    """
    found: set[str] = set()
    for name in read_condemned(table.name()[-1], table.properties):
        try:
            journal = read_journal(files, journal_folder(table.location()) + name)
        except FileNotFoundError:
            continue
        found.update(comparable_forms(journal.paths).values())
    return found
