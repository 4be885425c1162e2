"""What lies below a folder of an object store and no listing shows: it keeps bytes, and a purge has to know of it.

    hidden file       delete marker, older versions     somebody deleted it, and the bytes stayed
    open upload       parts of a file                   a writer died before the file was there
    replaced version  current object, older versions    somebody wrote the file again

The first two come as files that a delete of their path ends. So whoever deletes files, with journal and receipt,
deletes these like any other, once they are older than the grace. But never a hidden file that a table needs: to take
its delete marker away is the way back. No commit can bring one in: whoever commits looks for a current object.

A replaced version goes with its file, whose delete takes all versions; until then it is the only way back to what was
there. Only of the files that keptlog itself writes again each replaced version is garbage by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from keptlog.storage.files import StoredFile
from keptlog.storage.object_version import ObjectVersion
from keptlog.storage.refusal import is_never_told
from keptlog.table.io.files import TableFiles
from keptlog.table.waiting.reaching import is_out_of_reach, one_line


@dataclass(frozen=True, slots=True)
class HiddenFiles:
    """What was found."""

    files: tuple[StoredFile, ...] = ()
    """Hidden files, all versions of one together, and open uploads; ``modified_ms`` is since when they are that."""
    replaced: tuple[ObjectVersion, ...] = ()
    """Older versions of what is there."""
    unread: tuple[str, ...] = ()
    """What was asked for and not told, in one line each: nobody knows what lies there."""
    not_looked_at: tuple[str, ...] = ()
    """What the store never tells, in one line each: neither fine nor broken."""
    uploads: frozenset[str] = frozenset()
    """The paths of the open uploads among the files; one alone does not say so, as an object's may look like it."""


def hidden_below(files: TableFiles, folder: str) -> HiddenFiles:
    """All that lies hidden below a folder. What the store does not answer costs only what was asked of it."""
    found: list[StoredFile] = []
    replaced: list[ObjectVersion] = []
    unread: list[str] = []
    not_looked_at: list[str] = []
    uploads: list[StoredFile] = []
    with _told(unread):
        below = files.versions_below(folder)
        not_looked_at += [below.not_looked_at] if below.not_looked_at else []
        for path, group in groupby(below.versions, key=lambda each: each.path):
            versions = list(group)
            if path in below.current:
                replaced += versions
            else:
                size_bytes = sum(each.size_bytes for each in versions)
                found.append(StoredFile(path, size_bytes, max(each.modified_ms for each in versions)))
    with _told(unread, not_looked_at):
        uploads += [StoredFile(each.location, 0, each.began_ms) for each in files.uploads_below(folder)]
    names = frozenset(each.path for each in uploads)
    return HiddenFiles((*found, *uploads), tuple(replaced), tuple(unread), tuple(not_looked_at), names)


@contextmanager
def _told(unread: list[str], not_looked_at: list[str] | None = None) -> Iterator[None]:
    """What can't be had is told; in the second list, if there is one, what the store never tells this user."""
    try:
        yield
    except Exception as error:
        if not is_out_of_reach(error):
            raise
        told = unread if not_looked_at is None or not is_never_told(error) else not_looked_at
        told.append(one_line(error))
