"""Which files a table needs: what a purge must never delete.

A snapshot names a manifest list, that names manifests, and those name the segments. None of the three ever changes, so
``Manifests`` reads each once, however many snapshots share it and however often a purge has to look again.

The complication is how a file is called. Programs write one place as ``file:/``, ``file:///`` or ``/``, as ``s3://`` or
``s3a://``, with ``..`` or a link in it; a Spark that was given ``home/../home`` writes ``home`` into the table. Paths
are therefore only compared in the form that ``comparable`` gives them.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from keptlog.errors import LogCorrupt
from keptlog.log.told.stored_files import MENDING, MENDING_IF_GONE
from keptlog.table.io.files import local_path
from keptlog.table.metadata.columns import PERSONAL
from keptlog.table.metadata.metadata_reading import listed_entries
from keptlog.table.metadata.segment_metrics import RecordRange, offset_range
from keptlog.table.metadata.state import watermarks_paths
from keptlog.table.waiting.reaching import is_out_of_reach, one_line

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from keptlog.storage.files import StoredFile

_Read = TypeVar("_Read")
_DATA, _DELETED = 0, 2
"""Iceberg's numbers for a file of data, and for an entry of a file that was removed."""


@dataclass
class References:
    """Paths to sizes in bytes; those of manifest lists and of table metadata stand nowhere, and are 0."""

    data_bytes: dict[str, int] = field(default_factory=dict)
    metadata_bytes: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, RecordRange] = field(default_factory=dict)
    """Which records a data file has, where its metrics tell."""

    def keys(self) -> set[str]:
        """All paths, in the form in which they can be compared."""
        return set(comparable_forms([*self.data_bytes, *self.metadata_bytes]).values())

    def add(self, other: References) -> None:
        """Take in what others refer to as well."""
        self.data_bytes |= other.data_bytes
        self.metadata_bytes |= other.metadata_bytes
        self.ranges |= other.ranges

    def without(self, other: References) -> References:
        """What others don't refer to, however they spell it."""
        theirs = other.keys()
        ours = comparable_forms([*self.data_bytes, *self.metadata_bytes])
        return References(
            {path: size for path, size in self.data_bytes.items() if ours[path] not in theirs},
            {path: size for path, size in self.metadata_bytes.items() if ours[path] not in theirs},
            {path: records for path, records in self.ranges.items() if ours[path] not in theirs},
        )


@dataclass(frozen=True, slots=True)
class _Content:
    """What a manifest says."""

    files: References
    bounded: frozenset[str]
    deletes_bytes: Mapping[str, int]


@dataclass(slots=True)
class ManifestMemory:
    """What was read of a topic's manifest lists and manifests, by path, and nothing of how: that is good for a while.

    A table that is loaded again may come with other credentials (``keptlog.table.io.vending``).
    """

    lists: dict[str, list[ManifestFile]] = field(default_factory=dict)
    content: dict[str, _Content] = field(default_factory=dict)


class Manifests:
    """Reads a topic's manifest lists and manifests, each once: they never change.

    ``io`` is that of the table as it was just loaded. Who lives longer than that keeps the ``memory`` alone.

    All raise LogCorrupt, naming the file, if it is gone or damaged; what a storage raises that can't be
    reached goes through.
    """

    def __init__(self, topic: str, io: FileIO, memory: ManifestMemory | None = None) -> None:
        self._topic = topic
        self._io = io
        self._memory = ManifestMemory() if memory is None else memory

    def of(self, snapshot: Snapshot) -> list[ManifestFile]:
        """The manifests of a snapshot."""
        path = snapshot.manifest_list
        if path not in self._memory.lists:
            self._memory.lists[path] = self._read("manifest list", path, lambda: list(snapshot.manifests(self._io)))
        return self._memory.lists[path]

    def files_in(self, manifest: ManifestFile) -> References:
        """The live files of a manifest, and the manifest itself."""
        return self._content_of(manifest).files

    def deletes_bytes_in(self, manifest: ManifestFile) -> Mapping[str, int]:
        """The files of a manifest by which another engine deletes, with their sizes: keys or rows may stand in them."""
        return self._content_of(manifest).deletes_bytes

    def bounded_by(self, manifest: ManifestFile) -> frozenset[str]:
        """The segments, live and removed, of which a manifest has bounds of keys, values or headers."""
        return self._content_of(manifest).bounded

    def forget_all_but(self, snapshots: Iterable[Snapshot]) -> None:
        """Keep in memory only what was read of these."""
        paths = {snapshot.manifest_list for snapshot in snapshots}
        lists = {path: manifests for path, manifests in self._memory.lists.items() if path in paths}
        shown = {manifest.manifest_path for manifests in lists.values() for manifest in manifests}
        content = {path: content for path, content in self._memory.content.items() if path in shown}
        self._memory.lists, self._memory.content = lists, content

    def _content_of(self, manifest: ManifestFile) -> _Content:
        path = manifest.manifest_path
        if path not in self._memory.content:
            self._memory.content[path] = self._read("manifest", path, lambda: _content_of(manifest, self._io))
        return self._memory.content[path]

    def _read(self, what: str, path: str, read: Callable[[], _Read]) -> _Read:
        try:
            return read()
        except FileNotFoundError as error:
            raise self._unreadable(what, path, "it is gone", MENDING_IF_GONE) from error
        except LogCorrupt as error:
            # It names the file and says what to do, as this one does.
            raise self._unreadable(what, path, _told_of(path, error)) from error
        except Exception as error:
            if is_out_of_reach(error):
                raise
            # PyIceberg raises anything at all over bytes that are no Avro.
            raise self._unreadable(what, path, one_line(error)) from error

    def _unreadable(self, what: str, path: str, why: str, todo: str = MENDING) -> LogCorrupt:
        return LogCorrupt(
            f"topic {self._topic}: {what} {path} can't be read ({why}): {todo}, or drop the snapshot that "
            "needs it: delete its tag, or repair the topic"
        )


def _told_of(path: str, error: LogCorrupt) -> str:
    why = str(error).removesuffix(f"; {MENDING}")
    return f"it {why.removeprefix(path + ' ')}" if why.startswith(f"{path} ") else why


def _content_of(manifest: ManifestFile, io: FileIO) -> _Content:
    found = References(metadata_bytes={manifest.manifest_path: manifest.manifest_length})
    bounded: set[str] = set()
    deletes_bytes: dict[str, int] = {}
    for entry in listed_entries(manifest, io, discard_deleted=False):
        data_file = entry.data_file
        if PERSONAL & {*(data_file.lower_bounds or {}), *(data_file.upper_bounds or {})}:
            bounded.add(data_file.file_path)
        if entry.status == _DELETED:
            continue
        is_data = data_file.content == _DATA
        paths = found.data_bytes if is_data else found.metadata_bytes
        paths[data_file.file_path] = data_file.file_size_in_bytes
        if not is_data:
            deletes_bytes[data_file.file_path] = data_file.file_size_in_bytes
        if is_data and (offsets := offset_range(data_file)):
            found.ranges[data_file.file_path] = offsets
    return _Content(found, frozenset(bounded), deletes_bytes)


def references_of(snapshots: Iterable[Snapshot], manifests: Manifests) -> References:
    """The files of some snapshots: segments, manifests and manifest lists."""
    found = References()
    for snapshot in snapshots:
        found.metadata_bytes[snapshot.manifest_list] = 0
        for manifest in manifests.of(snapshot):
            if manifest.manifest_path not in found.metadata_bytes:
                found.add(manifests.files_in(manifest))
    return found


class UnreadFile(NamedTuple):
    """A manifest list or manifest that is gone or damaged, or out of reach."""

    kind: str
    path: str
    error: Exception

    @property
    def is_gone(self) -> bool:
        return isinstance(self.error.__cause__, FileNotFoundError)

    @property
    def why(self) -> str:
        """What is wrong with it, to follow its name."""
        return "is gone" if self.is_gone else f"can't be read ({self.met})"

    @property
    def met(self) -> str:
        """What its reading has met."""
        return one_line(self.error.__cause__ or self.error)


def references_in_reach(
    snapshots: Iterable[Snapshot], manifests: Manifests, *, with_outages: bool = False
) -> tuple[References, list[UnreadFile]]:
    """The files of some snapshots as far as they can be read, and what can't be; outages are raised, or told too.

    Each is read once: one that could be read the second time would be missing in the files, and in what can't be read.
    """
    found, unread = References(), list[UnreadFile]()
    for snapshot in snapshots:
        found.metadata_bytes[snapshot.manifest_list] = 0
        shown: list[ManifestFile] = []
        with _told("manifest list", snapshot.manifest_list, unread, with_outages=with_outages):
            shown = manifests.of(snapshot)
        for manifest in shown:
            if manifest.manifest_path in found.metadata_bytes:
                continue
            found.metadata_bytes[manifest.manifest_path] = manifest.manifest_length
            with _told("manifest", manifest.manifest_path, unread, with_outages=with_outages):
                found.add(manifests.files_in(manifest))
    return found, unread


@contextmanager
def _told(kind: str, path: str, unread: list[UnreadFile], *, with_outages: bool) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not (isinstance(error, LogCorrupt) or (with_outages and is_out_of_reach(error))):
            raise
        unread.append(UnreadFile(kind, path, error))


def live_references(table: Table, manifests: Manifests) -> References:
    """What the table needs as it is now: the files of its current snapshot, its metadata file and its watermarks.

    Watermarks stand in its properties, which snapshots don't keep: replaced ones are orphans at once, and are swept
    when they are older than the grace.
    """
    current = table.current_snapshot()
    found = references_of([current] if current else [], manifests)
    found.metadata_bytes |= dict.fromkeys(watermarks_paths(table.properties), 0)
    found.metadata_bytes[table.metadata_location] = 0
    return found


def named_references(table: Table) -> References:
    """What the metadata file itself names: what can be told without reading any other."""
    metadata = table.metadata
    named = [each.manifest_list for each in metadata.snapshots]
    named += [each.metadata_file for each in metadata.metadata_log]
    named += [each.statistics_path for each in metadata.statistics]
    named += [each.statistics_path for each in metadata.partition_statistics]
    return References(metadata_bytes=dict.fromkeys(named, 0))


def all_references(table: Table, manifests: Manifests | None = None) -> References:
    """Everything that the table's metadata, current and logged, refers to."""
    manifests = manifests or Manifests(table.name()[-1], table.io)
    found = references_of(table.metadata.snapshots, manifests)
    found.add(live_references(table, manifests))
    found.add(named_references(table))
    return found


def readable_references(table: Table) -> tuple[References, tuple[str, ...]]:
    """The same as far as it can be read, and a line for each file that can't be: it costs only what it alone names."""
    found = named_references(table)
    found.metadata_bytes |= dict.fromkeys([*watermarks_paths(table.properties), table.metadata_location], 0)
    manifests = Manifests(table.name()[-1], table.io)
    shown, unread = references_in_reach(table.metadata.snapshots, manifests, with_outages=True)
    found.add(shown)
    # Lists first: without one nobody knows which manifests there were.
    unread.sort(key=lambda each: each.kind == "manifest")
    return found, tuple(f"{each.kind} {each.path} can't be read ({each.met})" for each in unread)


def comparable(path: str) -> str:
    """A path in the one form in which two spellings of a place are equal: without scheme, ``..`` and links."""
    return comparable_forms([path])[path]


def comparable_forms(paths: Iterable[str]) -> dict[str, str]:
    """Path to its comparable form; each folder is looked up on the disk once."""
    folders: dict[str, str] = {}
    forms: dict[str, str] = {}
    for path in paths:
        local = local_path(path)
        if local is None:
            forms[path] = path.partition("://")[2]
            continue
        folder, _, name = local.rpartition("/")
        if folder not in folders:
            folders[folder] = os.path.realpath("/" + folder.lstrip("/") if local.startswith("/") else folder)
        forms[path] = f"{folders[folder]}/{name}"
    return forms


def by_comparable_form(files: Collection[StoredFile]) -> dict[str, StoredFile]:
    """Stored files by the comparable form of their path."""
    forms = comparable_forms(file.path for file in files)
    return {forms[file.path]: file for file in files}


def inside(folder: str) -> str:
    """The comparable form of something in a folder, which need not be there: alike for each name of the folder."""
    return comparable(f"{folder}/x")


def below(folder: str) -> Callable[[str], bool]:
    """Tells of paths in their comparable form whether they lie below a folder.

    An object store takes two dots for a name, but what is between here and there may not.
    """
    place = inside(folder).removesuffix("x")
    return lambda form: form.startswith(place) and ".." not in form.removeprefix(place).split("/")
