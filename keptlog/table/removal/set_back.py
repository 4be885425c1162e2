"""A topic's table that another program had moved, and that lies again where it lay: what is where it was meanwhile.

Its traces are its earlier metadata and its manifest lists. Where the first of them lies, the topic lay before:

    first trace   later ones
    lake/users    lake/users            it was never moved
    lake/users    lake/x, lake/users    set back to lake/users: what lies in lake/x has to be accounted for
    lake/x        lake/users            moved to lake/users, whose ever that is (``own_folder``)

A purge makes the first traces go, so it notes the folder in the table (``log.location``). Without such a note the
folder must be called as a topic's is, too: the first traces may have been expired by others.

Later the other traces go, and nobody looks at that other folder any more. What the table needs of there is named until
it is gone. But a run that died there has left what nothing names, with records in it. So no purge goes on while such a
file is there, and no erasure is proved. Whose it is, nobody can tell from here: another topic may lie there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from keptlog.log.words.counted import counted, some_of
from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.metadata_reading import whole_metadata
from keptlog.table.metadata.references import (
    Manifests,
    below,
    by_comparable_form,
    comparable,
    comparable_forms,
    inside,
    readable_references,
    references_in_reach,
)
from keptlog.table.metadata.state import watermarks_paths
from keptlog.table.removal.journal import read_journals, receipt_folder

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

LOCATION = "log.location"
_METADATA = "/metadata"
_PARTS = ("data", "metadata")
"""Where Iceberg's writers write: what else lies in such a folder is no topic's, and it may be that of all topics."""
_NAMED = 10
_DELETE = (
    "delete what is named if runs of this topic have left it, or move it away if it is somebody else's, leave what "
    "else lies there, which this topic may need, and try again"
)


def traces(table: Table) -> list[str]:
    """Its earlier metadata, and that of its snapshots, oldest first."""
    dated = [(each.timestamp_ms, each.metadata_file) for each in table.metadata.metadata_log]
    dated += [(each.timestamp_ms, each.manifest_list) for each in table.metadata.snapshots if each.manifest_list]
    return [path for _, path in sorted(dated, key=lambda each: each[0])]


def is_set_back(table: Table, elsewhere: Sequence[str]) -> bool:
    """Whether a table that lay elsewhere too lies where it lay before; ``elsewhere`` are traces of there.

    Snapshots stand in the order of their commits, whatever the clocks said; of what came before the first that is
    left, only the times tell.
    """
    noted, location = table.properties.get(LOCATION), table.location()
    # Elsewhere its metadata may lie in a folder of many tables: nobody can tell then where it was itself.
    if not all(map(_lay_at, elsewhere)):
        return False
    if noted:
        return inside(noted) == inside(location)
    name, topic = location.rpartition("/")[2], table.name()[-1]
    if name != topic and not name.startswith(f"{topic}-"):
        return False
    snapshots = sorted(table.metadata.snapshots, key=lambda each: each.sequence_number or 0)
    log = table.metadata.metadata_log
    first = [each.manifest_list for each in snapshots[:1]]
    first += [each.metadata_file for each in log[:1] if not snapshots or each.timestamp_ms < snapshots[0].timestamp_ms]
    return all(map(below(f"{location}{_METADATA}"), comparable_forms(first).values()))


def _lay_at(trace: str) -> str:
    """The folder of the table that a trace is of; empty if its metadata lay apart from that."""
    folder = trace.rpartition("/")[0]
    return folder.removesuffix(_METADATA) if folder.endswith(_METADATA) else ""


def left_there(
    table: Table, elsewhere: Iterable[str], files: TableFiles, paths: Iterable[str]
) -> tuple[str, str] | None:
    """Why nothing is deleted of a table that was set back, and what to do; null if all that lies there is known.

    ``paths`` are all files in its folder.
    """
    known: set[str] = set()
    for folder in dict.fromkeys(map(_lay_at, elsewhere)):
        known = known or _known(table, files, paths)
        there = [each for part in _PARTS for each in files.list(f"{folder}/{part}")]
        unknown = {form: each for form, each in by_comparable_form(there).items() if form not in known}
        other = _another(table, unknown.values(), f"{folder}{_METADATA}/")
        theirs = _named_by(other, table) if other else set[str]()
        left = [
            each.path for form, each in unknown.items() if form not in theirs and not _holds_no_record(each, folder)
        ]
        if left:
            found = f"{'lies' if len(left) == 1 else 'lie'} {counted(len(left), 'file')}"
            why = f"is where its table lies again, and in {folder}, where another program had moved it, {found} that "
            why += f"it does not refer to: {some_of(sorted(left), _NAMED)}"
            if other:
                return why, "purge the topic that lies there, which deletes what no run needs any more, and try again"
            return why, _DELETE
    return None


def _known(table: Table, files: TableFiles, paths: Iterable[str]) -> set[str]:
    """All that the table refers to, and what its journals name: that is told until it is gone."""
    references, _ = readable_references(table)
    journals, _ = read_journals(files, table.location(), paths)
    named = (path for each in journals.values() for path in each.paths)
    return references.keys() | set(comparable_forms(named).values())


def _another(table: Table, unknown: Iterable[StoredFile], folder: str) -> TableMetadata | None:
    """The newest state of another table that lies there; null if none does."""
    found = [each for each in unknown if each.path.startswith(folder) and each.path.endswith(METADATA_ENDINGS)]
    for each in sorted(found, key=lambda file: file.modified_ms, reverse=True):
        metadata = whole_metadata(table.io, each.path)
        if metadata and str(metadata.table_uuid) != str(table.metadata.table_uuid):
            return metadata
    return None


def _named_by(metadata: TableMetadata, table: Table) -> set[str]:
    named = [*watermarks_paths(metadata.properties), *(each.manifest_list for each in metadata.snapshots)]
    shown, _ = references_in_reach(metadata.snapshots, Manifests(table.name()[-1], table.io), with_outages=True)
    return shown.keys() | set(comparable_forms(named).values())


def _holds_no_record(file: StoredFile, folder: str) -> bool:
    """Table metadata, which leaves the history and may stay, and what keptlog itself remembers."""
    return file.path.endswith(METADATA_ENDINGS) or file.path.startswith(receipt_folder(folder))


def also_there(table: Table, elsewhere: Iterable[str], files: TableFiles, path: str) -> str | None:
    """Where a file of a table's folder lies that was written while the table lay elsewhere; null if nowhere."""
    relative = path.removeprefix(table.location())
    candidates = (folder + relative for folder in map(_lay_at, elsewhere) if folder)
    return next((each for each in candidates if comparable(each) != comparable(path) and files.exists(each)), None)
