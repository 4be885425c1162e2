"""Turns what Iceberg's readers throw over one file of a table into ``LogCorrupt``, which names the file.

A metadata file, a manifest list or a manifest that is cut off, foreign or gone makes PyIceberg raise whatever its
parsers meet: ``ValidationError``, ``UnicodeDecodeError``, ``EOFError``, even ``SystemError``. None of that says
which topic it was, and who looks at many can't tell it from a bug. So each of these files is read in ``reading``.

A storage that can't be reached is no damage: that error goes on as it is (``keptlog.table.waiting.reach``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from keptlog.disk import NO_FILE
from keptlog.errors import Action, LogCorrupt
from keptlog.log.told.stored_files import MENDING, MENDING_IF_GONE, damaged_text
from keptlog.table.waiting.reaching import is_out_of_reach, one_line

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestEntry, ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

Seen = TypeVar("Seen")
LOOKS = 10
"""How often one looks anew, because others commit, before what was found is taken as it is."""
_ADDED, _DELETED = 1, 2
"""Iceberg's numbers for an entry of a file that came, or was removed, with the manifest."""
_UNKNOWN_FORMAT = re.compile(r"Input tag '([0-9]{1,4})' found using 'format_version'")
"""How PyIceberg's parser says that it does not know a version of the format."""
_UNKNOWN_TYPE = re.compile(
    r"(?:Unsupported field type: '|Type not recognized: |Could not parse )"
    r"(variant|geometry|geography|timestamptz?_ns)\b"
)
"""How it says that it does not know a column's type of version 3; by chance no damage gives one such a name."""


@contextmanager
def reading(topic: str, file: str) -> Iterator[None]:
    """Read one file of a topic's table; ``file`` says which, in words and with its path.

    Raises:
        LogCorrupt: it is damaged or gone.
    """
    try:
        yield
    except Exception as error:
        if is_out_of_reach(error) and not isinstance(error, NO_FILE):
            raise
        raise unreadable(topic, file, error) from error


def whole_metadata(io: FileIO, path: str) -> TableMetadata | None:
    """A metadata file; null if it is gone, or can't be read whatever is wrong with it."""
    found = metadata_or_why(io, path)
    return None if isinstance(found, Exception) else found


def metadata_or_why(io: FileIO, path: str) -> TableMetadata | Exception:
    """A metadata file, or what its reader threw; ``unreadable`` words that."""
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415  # who only looks at a table needs no other's file

    try:
        return FromInputFile.table_metadata(io.new_input(path))
    except FileNotFoundError as error:
        return error
    except Exception as error:
        if is_out_of_reach(error):
            raise
        return error


def looked_at(load: Callable[[], Table], look: Callable[[Table], Seen]) -> Seen:
    """What is seen in a table as it is now.

    While one looks, others commit, and a purge deletes what the table that was loaded names. Then the table is another
    one by now, and that is looked at; damage is what a table names that still is the current one.

    Raises:
        LogCorrupt: a file of the table is damaged or gone.
    """
    table = load()
    for _ in range(LOOKS):
        try:
            return look(table)
        except LogCorrupt:
            now = load()
            if now.metadata_location == table.metadata_location:
                raise
            table = now
    return look(table)


def unreadable(topic: str, file: str, error: Exception) -> LogCorrupt:
    """The error to raise over what a file's reader has thrown."""
    return unreadable_of(f"topic {topic}", file, error)


def unreadable_of(what: str, file: str, error: Exception) -> LogCorrupt:
    """The same of any table; ``what`` says which, in words."""
    if isinstance(error, LogCorrupt):
        # Its checksum was wrong: that names the file, but not the topic.
        return error.reworded(f"{what}: {error}")
    if isinstance(error, FileNotFoundError):
        return LogCorrupt(f"{what}: {file} is gone: {MENDING_IF_GONE}")
    newer = _UNKNOWN_FORMAT.search(str(error))
    if newer:
        told = LogCorrupt(
            f"{what}: another program has raised its table to version {newer[1]} of Iceberg's format, which "
            f"this keptlog can't read ({file}); nothing is lost: use a keptlog that reads it"
        )
        told.action = Action.FIX_CONFIG  # as of a version that can be read, and not be written
        return told
    kind = _UNKNOWN_TYPE.search(str(error))
    if kind:
        return _unknown_type(what, file, kind[1])
    return LogCorrupt(f"{what}: {file} is damaged ({one_line(error)}): {MENDING}")


def _unknown_type(what: str, file: str, kind: str) -> LogCorrupt:
    told = LogCorrupt(
        f"{what}: another program has given its table a column of type {kind}, which this keptlog can't read: "
        f"the type came with version 3 of Iceberg's format ({file}). Nothing is lost: use a keptlog that reads it. Or "
        "drop the column there, and then have its schema removed, as Spark's expire_snapshots does with "
        "clean_expired_metadata => true. Give it older_than => TIMESTAMP '1970-01-02 00:00:00' too: no snapshot may go"
    )
    told.action = Action.FIX_CONFIG  # as of a version that can't be read
    return told


def manifests_of(topic: str, snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """The manifests of a snapshot.

    Raises:
        LogCorrupt: its manifest list is damaged or gone.
    """
    with reading(topic, f"manifest list {snapshot.manifest_list}"):
        return snapshot.manifests(io)


def entries_of(topic: str, manifest: ManifestFile, io: FileIO) -> list[ManifestEntry]:
    """The entries of a manifest, without those of removed files.

    Raises:
        LogCorrupt: it is damaged or gone.
    """
    with reading(topic, f"manifest {manifest.manifest_path}"):
        return listed_entries(manifest, io)


def listed_entries(manifest: ManifestFile, io: FileIO, *, discard_deleted: bool = True) -> list[ManifestEntry]:
    """The entries of a manifest, if they are those that its manifest list tells of: the one way to them.

    A manifest in the place of another is whole, and was perhaps written by a program that gives no checksums. The list
    counts the files, and says which snapshot wrote it. Totals in the summary of a snapshot tell less: each is counted
    on from the one before, so one that any program got wrong stays wrong.

    What a list does not know is null, or less than 0.

    Raises:
        LogCorrupt: they are not.
    """
    entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
    live = [entry for entry in entries if entry.status != _DELETED]
    counts = (manifest.added_files_count, manifest.existing_files_count)
    known = [count for count in counts if count is not None and count >= 0]
    is_as_counted = len(known) < len(counts) or len(live) == sum(known)
    writers = {entry.snapshot_id for entry in entries if entry.status == _ADDED}
    told = manifest.added_snapshot_id
    is_of_writer = told is None or told < 0 or writers <= {told, None}
    if not (is_as_counted and is_of_writer):
        raise LogCorrupt(damaged_text(manifest.manifest_path, "is not the manifest that its manifest list tells of"))
    return live if discard_deleted else entries
