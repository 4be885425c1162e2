"""What still holds bytes of a topic that are not live: a look at its snapshots, its references and its storage.

What each kind of holder is, and by when it is to let go, stands in ``keptlog.log.holder``. Here it is found out.

The simple case is a topic that was cleaned and not purged yet: the snapshots before the clean show the segments that it
has replaced. Those are **retired**, since a commit took the place of the last snapshot that shows them. So with each
snapshot that is still there goes a time, and a file is held since the latest one of those that show it.

Complications:

- A tag or a branch keeps a snapshot for good. Its files are its own, those of several belong to each. Once a purge has
  expired the snapshots behind it, nobody knows any more when exactly a file ceased to be live, only that the tag's
  snapshot did before. Then a purge has come, and would have deleted it: its time is over, whatever the date.
- The storage has files that no snapshot shows. They are told apart by where they lie and how old they are.
- A file of watermarks belongs to no snapshot. It is retired if a later one of its log is live; since when, the next
  later one says.
- Metadata holds no records. But another program may write bounds of keys and values into manifests.

Two looks give the same. ``kept_by_name`` needs only the table, and tells of tags and branches, ``retired_in_summaries``
of the rest what commits said of themselves: for whoever looks at many topics. ``held_in`` has the storage's list too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot

from keptlog.errors import LogCorrupt
from keptlog.log.counted import counted
from keptlog.log.holder import Held, HolderKind, Terms
from keptlog.storage.files import StoredFile
from keptlog.table.expiry import replaced_at_ms
from keptlog.table.files import TableFiles
from keptlog.table.journal import journal_folder, receipt_folder
from keptlog.table.lineage import summary_of
from keptlog.table.metadata_reading import looked_at
from keptlog.table.references import Manifests, comparable, comparable_forms, live_references, named_references
from keptlog.table.state import watermarks_paths

_PARTITION = re.compile(r"/partition=(\d+)/")
_By = tuple[HolderKind, str]
_RETIRED: _By = (HolderKind.RETIRED, "")


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """What a full look at one topic has found."""

    held: tuple[Held, ...] = ()
    """One for each file."""
    unread: tuple[str, ...] = ()
    """What could not be read, a line each: what only that shows is missing."""


@dataclass
class _Shown:
    """Where a file stands: who shows it, and until when main did."""

    by: set[_By] = field(default_factory=set)
    until_ms: int = 0
    path: str = ""
    bytes: int | None = None

    def add(self, by: Iterable[_By], until_ms: int) -> None:
        self.by.update(by)
        self.until_ms = max(self.until_ms, until_ms)

    def held(self) -> Iterator[Held]:
        """One for each that keeps it; older snapshots only if no tag and no branch does."""
        for kind, name in sorted(self.by - {_RETIRED} or self.by):
            yield Held(kind, self.until_ms, 1, self.bytes, name, partition_of(self.path), self.path)


@dataclass
class _Snapshots:
    """What the snapshots of a table show that is not live."""

    table: Table
    manifests: Manifests
    live: set[str] = field(default_factory=set)
    """All that the current one needs, in comparable form."""
    segments: dict[str, _Shown] = field(default_factory=lambda: defaultdict(_Shown))
    """By comparable path, as the following."""
    bounds: dict[str, _Shown] = field(default_factory=lambda: defaultdict(_Shown))
    """Manifests that have bounds of records, of segments that are not live."""
    metadata: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)

    def look(self) -> None:
        """Walk all of them, each manifest once.

        Raises:
            LogCorrupt: the current one can't be read.
        """
        current = self.table.current_snapshot()
        self.live = live_references(self.table, self.manifests).keys()
        live_manifests = {each.manifest_path: each for each in (self.manifests.of(current) if current else ())}
        for path, (manifest, shown) in self._shown_manifests().items():
            self.metadata.add(comparable(path))
            if path not in live_manifests:
                self._look_into(manifest, shown)
        made_ms = {each.snapshot_id: each.timestamp_ms for each in self.table.metadata.snapshots}
        for manifest in live_manifests.values():
            self._look_for_bounds(manifest, made_ms.get(manifest.added_snapshot_id or 0, min(made_ms.values())))

    def _shown_manifests(self) -> dict[str, tuple[ManifestFile, _Shown]]:
        """By path, of all snapshots but the current one."""
        found: dict[str, tuple[ManifestFile, _Shown]] = {}
        replaced_ms, named = replaced_at_ms(self.table), _named(self.table)
        for snapshot in self.table.metadata.snapshots:
            if snapshot.snapshot_id == self.table.metadata.current_snapshot_id:
                continue
            self.metadata.add(comparable(snapshot.manifest_list))
            try:
                manifests = self.manifests.of(snapshot)
            except LogCorrupt as error:
                self.unread.append(str(error))
                continue
            by = named.get(snapshot.snapshot_id, [_RETIRED])
            for manifest in manifests:
                _, shown = found.setdefault(manifest.manifest_path, (manifest, _Shown()))
                shown.add(by, replaced_ms[snapshot.snapshot_id])
        return found

    def _look_into(self, manifest: ManifestFile, shown: _Shown) -> None:
        try:
            files = self.manifests.files_in(manifest).data_bytes
        except LogCorrupt as error:
            self.unread.append(str(error))
            return
        for path, form in comparable_forms(files).items():
            if form not in self.live:
                self.segments[form].add(shown.by, shown.until_ms)
                self.segments[form].path, self.segments[form].bytes = path, files[path]
        self._look_for_bounds(manifest, shown.until_ms)

    def _look_for_bounds(self, manifest: ManifestFile, until_ms: int) -> None:
        bounded = set(comparable_forms(self.manifests.bounded_by(manifest)).values())
        if bounded - self.live:
            found = self.bounds[comparable(manifest.manifest_path)]
            found.add([(HolderKind.STATISTICS, "")], until_ms)
            found.path, found.bytes = manifest.manifest_path, manifest.manifest_length


def held_in(
    load: Callable[[], Table],
    files: TableFiles,
    terms: Terms,
    now_ms: int,
    versions: Callable[[Table], Iterable[Held]] = lambda _: (),
) -> HeldFiles:
    """All that holds bytes of a topic which are not live, file by file; ``versions`` tells of a bucket's old versions.

    Raises:
        LogCorrupt: the current snapshot can't be read.
        OSError: the storage can't be listed.
    """
    stored: dict[str, StoredFile] = {}

    def load_listed() -> Table:
        # Listed before the table is loaded: what is committed meanwhile is live there.
        listed = list(files.list(load().location()))
        forms = comparable_forms(file.path for file in listed)
        stored.clear()
        stored.update({forms[file.path]: file for file in listed})
        return load()

    def look(table: Table) -> HeldFiles:
        found = held_now(table, stored, terms, now_ms)
        if found.unread and load().metadata_location != table.metadata_location:
            raise LogCorrupt(found.unread[0])
        return HeldFiles((*found.held, *versions(table)), found.unread)

    return looked_at(load_listed, look)


def held_now(
    table: Table, stored: Mapping[str, StoredFile], terms: Terms, now_ms: int, manifests: Manifests | None = None
) -> HeldFiles:
    """The same of a table, and files below its location that were listed before it was loaded, by comparable path.

    Raises:
        LogCorrupt: the current snapshot can't be read.
    """
    snapshots = _Snapshots(table, manifests or Manifests(table.name()[-1], table.io))
    snapshots.look()
    below = comparable(f"{table.location()}/x").removesuffix("x")
    # What is not in the list any more holds nothing; what lies elsewhere is not in it.
    found = [*snapshots.segments.items(), *snapshots.bounds.items()]
    held = [each for form, shown in found if form in stored or not form.startswith(below) for each in shown.held()]
    held += _statistics_files(table)
    known = snapshots.live.union(snapshots.segments, snapshots.bounds)
    unknown = {form: file for form, file in stored.items() if form not in known}
    named = snapshots.metadata.union(comparable_forms(named_references(table).metadata_bytes).values())
    held += _Unreferenced(table, terms, now_ms, named, _watermarks(table, stored)).held(unknown)
    return HeldFiles(tuple(held), tuple(snapshots.unread))


def kept_by_name(table: Table, manifests: Manifests) -> HeldFiles:
    """What tags and branches keep; nothing is read of a table that has none, or only of its current snapshot.

    Raises:
        LogCorrupt: the current snapshot can't be read.
    """
    if not _named(table):
        return HeldFiles()
    snapshots = _Snapshots(table, manifests)
    snapshots.look()
    held = [each for shown in snapshots.segments.values() for each in shown.held()]
    return HeldFiles(tuple(each for each in held if each.kind is not HolderKind.RETIRED), tuple(snapshots.unread))


def retired_in_summaries(table: Table) -> tuple[Held, ...]:
    """What the commits that are still there have taken out of the log, as they say themselves; no file is read.

    A commit's files are held as long as the snapshot before it is there. If that is a tag's, the tag holds them.
    """
    ids = {snapshot.snapshot_id for snapshot in table.metadata.snapshots} - _named(table).keys()
    return tuple(
        Held(HolderKind.RETIRED, snapshot.timestamp_ms, *_taken_out(snapshot))
        for snapshot in _line(table)
        if snapshot.parent_snapshot_id in ids and _taken_out(snapshot)[0] != 0
    )


def _taken_out(snapshot: Snapshot) -> tuple[int | None, int | None]:
    """Files and bytes that a commit has removed; null where it does not say."""
    summary = summary_of(snapshot)
    files, size_bytes = summary.get("deleted-data-files"), summary.get("removed-files-size")
    if files is None:
        is_append = snapshot.summary is None or snapshot.summary.operation is Operation.APPEND
        # PyIceberg and Spark leave out what is 0.
        return (0, 0) if is_append or "total-data-files" in summary else (None, None)
    return int(files), int(size_bytes) if size_bytes else None


def _line(table: Table) -> Iterator[Snapshot]:
    """The current snapshot and those that it was built on, as far as they are still there."""
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    snapshot = table.current_snapshot()
    while snapshot:
        yield snapshot
        snapshot = snapshots.pop(snapshot.parent_snapshot_id or -1, None)


def _named(table: Table) -> dict[int, list[_By]]:
    """Snapshot to the tags and branches that keep it; one that keeps the current snapshot keeps nothing."""
    named: dict[int, list[_By]] = defaultdict(list)
    for name, reference in sorted(table.metadata.refs.items()):
        if name != MAIN_BRANCH and reference.snapshot_id != table.metadata.current_snapshot_id:
            named[reference.snapshot_id].append((HolderKind(reference.snapshot_ref_type.value), name))
    return named


def _statistics_files(table: Table) -> Iterator[Held]:
    """Those of older snapshots; another program has made them."""
    replaced_ms = replaced_at_ms(table)
    for each in table.metadata.statistics:
        if each.snapshot_id != table.metadata.current_snapshot_id:
            since_ms = replaced_ms.get(each.snapshot_id, table.metadata.last_updated_ms)
            yield Held(HolderKind.STATISTICS, since_ms, 1, each.file_size_in_bytes, path=each.statistics_path)


@dataclass(frozen=True)
class _Unreferenced:
    """Tells files apart that no snapshot shows."""

    table: Table
    terms: Terms
    now_ms: int
    named: set[str]
    """Metadata that the table's metadata refers to, in comparable form."""
    watermarks_ms: Mapping[int, list[int]]
    """When the files of watermarks of a log were written that are live or came before, by partition."""

    def held(self, files: Mapping[str, StoredFile]) -> Iterator[Held]:
        """By comparable path."""
        location = self.table.location()
        journals, receipts = journal_folder(location), receipt_folder(location)
        statistics = {comparable(each.statistics_path) for each in self.table.metadata.statistics}
        for form, file in files.items():
            if form in statistics:
                continue
            if file.path.startswith((journals, f"{receipts}unreadable/")):
                yield self._held(HolderKind.JOURNAL, file)
            elif not file.path.startswith(receipts):
                yield self._held(HolderKind.METADATA, file) if form in self.named else self._left_behind(file)

    def _left_behind(self, file: StoredFile) -> Held:
        later_ms = [ms for ms in self.watermarks_ms.get(_watermarks_of(file.path), ()) if ms > file.modified_ms]
        sweepable_ms = file.modified_ms + self.terms.orphan_grace_ms
        if later_ms:
            replaced_ms = min(later_ms)
            until_ms = max(replaced_ms + self.terms.delete_delay_ms, sweepable_ms)
            return self._held(HolderKind.WATERMARKS, file, replaced_ms, until_ms)
        return self._held(HolderKind.STAGED if sweepable_ms > self.now_ms else HolderKind.ORPHAN, file)

    def _held(
        self, kind: HolderKind, file: StoredFile, since_ms: int | None = None, until_ms: int | None = None
    ) -> Held:
        since_ms = file.modified_ms if since_ms is None else since_ms
        partition = partition_of(file.path)
        return Held(kind, since_ms, 1, file.size_bytes, partition=partition, path=file.path, until_ms=until_ms)


def _watermarks(table: Table, stored: Mapping[str, StoredFile]) -> dict[int, list[int]]:
    """Partition to when its files of watermarks were written, up to the live one."""
    live_ms: dict[int, int] = {}
    for form in comparable_forms(watermarks_paths(table.properties)).values():
        if form in stored:
            live_ms[_watermarks_of(stored[form].path)] = stored[form].modified_ms
    found: dict[int, list[int]] = defaultdict(list)
    for file in stored.values():
        number = _watermarks_of(file.path)
        if number >= 0 and file.modified_ms <= live_ms.get(number, -1):
            found[number].append(file.modified_ms)
    return found


def _watermarks_of(path: str) -> int:
    """The partition of a file of watermarks, -1 for any other file."""
    partition = partition_of(path)
    return partition if partition is not None and "/watermarks/" in path else -1


def partition_of(path: str) -> int | None:
    """The partition in whose folder a file lies, null for a file of no log alone."""
    found = _PARTITION.search(path)
    return int(found.group(1)) if found else None


def _name(held: Held) -> str:
    return held.name


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file that may hold values and is not live, as a receipt names it."""

    path: str
    bytes: int
    holder: str


def held_files(table: Table, unknown: Mapping[str, StoredFile], manifests: Manifests) -> tuple[HeldFile, ...]:
    """Who holds the files that the current snapshot does not refer to; ``unknown`` is by comparable path.

    Raises:
        LogCorrupt: a snapshot can't be read.
    """
    if not unknown:
        return ()
    found = held_now(table, unknown, Terms(0), 0, manifests)
    if found.unread:
        raise LogCorrupt(found.unread[0])
    holders = {each.path: f"{each.kind} {each.name}".rstrip() for each in sorted(found.held, key=_name, reverse=True)}
    return tuple(HeldFile(file.path, file.size_bytes, holders[file.path]) for file in unknown.values())


def held_lines(held: Iterable[HeldFile]) -> list[str]:
    """One line for each holder, for people."""
    by_holder: dict[str, list[HeldFile]] = defaultdict(list)
    for file in held:
        by_holder[file.holder].append(file)
    lines = []
    for holder, files in sorted(by_holder.items()):
        what = counted(len(files), "file")
        if holder == HolderKind.STAGED:
            lines.append(f"{what} of runs that are under way, or died: nothing refers to them; deleted after the grace")
        elif holder == HolderKind.RETIRED:
            lines.append(f"{what} that older snapshots still show, until file.delete.delay.ms has passed")
        else:
            lines.append(f"{what} that {holder} keeps, until it is deleted")
    return lines
