"""What snapshots show that is not live: who keeps it, and since when.

The simple case is a topic that was cleaned and not purged yet: the snapshots before the clean show the segments that it
has replaced. Those are **retired**, since a commit took the place of the last snapshot that shows them. So with each
snapshot that is still there goes a time, and a file is held since the latest one of those that show it.

A tag or a branch keeps its snapshot for good, or until a retention of its own is over and a purge drops it. What
several show belongs to each of them. Once a purge has expired the snapshots behind it, nobody knows any more when
exactly a file ceased to be live, only that the tag's snapshot did before. But then a purge has come, and would have
deleted it: its time is over, whatever the date.

Who looks at many topics asks ``SupersededFiles``. It takes a commit's word for what that has removed, and reads no
file; but where there are tags and branches, it looks at what each snapshot shows, for nothing else tells what those
keep. The look at storage (``held``) does so for every topic, unless appends alone have led to what is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.log.holder import Held, HolderKind
from keptlog.log.segment_path import partition_in
from keptlog.table.metadata.lineage import summary_of
from keptlog.table.metadata.references import (
    ManifestMemory,
    Manifests,
    References,
    comparable,
    comparable_forms,
    live_references,
)
from keptlog.table.removal.expiry import replaced_at_ms
from keptlog.table.removal.ref_retention import kept_until_ms

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_APPEND, _MAIN_BRANCH = "append", "main"
"""Iceberg's words."""
_MANIFEST = ".avro"
_By = tuple[HolderKind, str]
_RETIRED: _By = (HolderKind.RETIRED, "")


class SupersededFiles:
    """Tells what tables say of bytes that are not live; remembers the manifests of those that have tags or branches."""

    def __init__(self) -> None:
        self._read: dict[str, ManifestMemory] = {}

    def of(self, table: Table) -> tuple[Held, ...]:
        """What commits have removed and what tags and branches keep, those of one moment together.

        Raises:
            LogCorrupt: the current snapshot can't be read.
        """
        topic = table.name()[-1]
        if not _named(table):
            self._read.pop(topic, None)
            return _removed_by_commits(table)
        manifests = Manifests(topic, table.io, self._read.setdefault(topic, ManifestMemory()))
        held = tuple(_shown_by_any(table, manifests))
        manifests.forget_all_but(table.metadata.snapshots)
        return held

    def topics(self) -> set[str]:
        """Those of which something is remembered."""
        return set(self._read)

    def forget(self, topic: str) -> None:
        """Remember nothing of a topic."""
        self._read.pop(topic, None)


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

    def held(self, kept_ms: Mapping[str, int]) -> Iterator[Held]:
        """One for each that keeps it; older snapshots only if no tag and no branch does.

        ``kept_ms`` says until when those do that end (``ref_retention``).
        """
        for kind, name in sorted(self.by - {_RETIRED} or self.by):
            place = (partition_in(self.path), self.path)
            yield Held(kind, self.until_ms, 1, self.bytes, name, *place, kept_until_ms=kept_ms.get(name))


@dataclass
class ShownFiles:
    """What the snapshots of a table show that is not live, each manifest read once."""

    table: Table
    manifests: Manifests
    current: References = field(default_factory=References)
    """What the current one needs."""
    live: set[str] = field(default_factory=set)
    """The same in comparable form."""
    segments: dict[str, _Shown] = field(default_factory=lambda: defaultdict(_Shown))
    """By comparable path, as the following."""
    bounds: dict[str, _Shown] = field(default_factory=lambda: defaultdict(_Shown))
    """Manifests that have bounds of records, of segments that are not live."""
    metadata: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    uncounted: set[tuple[_By, int]] = field(default_factory=set)
    """Tags and branches of which something could not be read, and until when main showed it."""

    def look(self, listed: Collection[str] | None = None) -> None:
        """Walk all of them, each manifest once; but the current one alone where no other can show more.

        To tell that, somebody must have listed the table's folder; ``listed`` is in comparable form.

        Raises:
            LogCorrupt: the current one can't be read.
        """
        current = self.table.current_snapshot()
        self.current = live_references(self.table, self.manifests)
        self.live = self.current.keys()
        live_manifests = {each.manifest_path: each for each in (self.manifests.of(current) if current else ())}
        older = self._shown_manifests() if listed is None or self._may_show_more(listed) else {}
        for path, (manifest, shown) in older.items():
            self.metadata.add(comparable(path))
            if path not in live_manifests:
                self._look_into(manifest, shown)
        made_ms = {each.snapshot_id: each.timestamp_ms for each in self.table.metadata.snapshots}
        for manifest in live_manifests.values():
            self._look_for_bounds(manifest, made_ms.get(manifest.added_snapshot_id or 0, min(made_ms.values())))

    def _may_show_more(self, listed: Collection[str]) -> bool:
        """Not if appends alone have led from each snapshot to the current one, and no other manifest is there."""
        snapshots = self.table.metadata.snapshots
        is_line = sum(1 for _ in _line(self.table)) == len(snapshots)
        if not is_line or _named(self.table) or _removed_by_commits(self.table):
            return True
        known = self.live.union(comparable_forms(each.manifest_list for each in snapshots).values())
        return any(form.endswith(_MANIFEST) and form not in known for form in listed)

    def _shown_manifests(self) -> dict[str, tuple[ManifestFile, _Shown]]:
        """By path, of all snapshots but the current one."""
        found: dict[str, tuple[ManifestFile, _Shown]] = {}
        replaced_ms, named = replaced_at_ms(self.table), _named(self.table)
        for snapshot in self.table.metadata.snapshots:
            if snapshot.snapshot_id == self.table.metadata.current_snapshot_id:
                continue
            self.metadata.add(comparable(snapshot.manifest_list))
            by = named.get(snapshot.snapshot_id, [_RETIRED])
            try:
                manifests = self.manifests.of(snapshot)
            except LogCorrupt as error:
                self._pass_over(error, by, replaced_ms[snapshot.snapshot_id])
                continue
            for manifest in manifests:
                _, shown = found.setdefault(manifest.manifest_path, (manifest, _Shown()))
                shown.add(by, replaced_ms[snapshot.snapshot_id])
        return found

    def _look_into(self, manifest: ManifestFile, shown: _Shown) -> None:
        try:
            # What deletes by key has keys in it, and what deletes by position may have whole rows.
            files = self.manifests.files_in(manifest).data_bytes | dict(self.manifests.deletes_bytes_in(manifest))
        except LogCorrupt as error:
            self._pass_over(error, shown.by, shown.until_ms)
            return
        for path, form in comparable_forms(files).items():
            if form not in self.live:
                self.segments[form].add(shown.by, shown.until_ms)
                self.segments[form].path, self.segments[form].bytes = path, files[path]
        self._look_for_bounds(manifest, shown.until_ms)

    def _pass_over(self, error: LogCorrupt, by: Iterable[_By], until_ms: int) -> None:
        self.unread.append(str(error))
        self.uncounted.update((each, until_ms) for each in by if each != _RETIRED)

    def _look_for_bounds(self, manifest: ManifestFile, until_ms: int) -> None:
        bounded = set(comparable_forms(self.manifests.bounded_by(manifest)).values())
        if bounded - self.live:
            found = self.bounds[comparable(manifest.manifest_path)]
            found.add([(HolderKind.STATISTICS, "")], until_ms)
            found.path, found.bytes = manifest.manifest_path, manifest.manifest_length


def _shown_by_any(table: Table, manifests: Manifests) -> list[Held]:
    """What each holder keeps, by when it was superseded; of a tag that can't be read, that it keeps something."""
    shown, kept_ms = ShownFiles(table, manifests), kept_until_ms(table)
    shown.look()
    groups: dict[tuple[_By, int | None, int], list[int]] = defaultdict(list)
    for file in shown.segments.values():
        for each in file.held(kept_ms):
            groups[(each.kind, each.name), each.partition, each.since_ms].append(each.bytes or 0)
    held = [
        Held(kind, since_ms, len(sizes), sum(sizes), name, partition, kept_until_ms=kept_ms.get(name))
        for ((kind, name), partition, since_ms), sizes in groups.items()
    ]
    return held + [
        Held(kind, since_ms, None, None, name, kept_until_ms=kept_ms.get(name))
        for (kind, name), since_ms in sorted(shown.uncounted)
    ]


def _removed_by_commits(table: Table) -> tuple[Held, ...]:
    """What the commits that are still there have taken out of the log, as they say themselves; no file is read.

    A commit's files are held as long as the snapshot before it is there.
    """
    ids = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
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
        is_append = snapshot.summary is None or snapshot.summary.operation.value == _APPEND
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
        if name != _MAIN_BRANCH and reference.snapshot_id != table.metadata.current_snapshot_id:
            named[reference.snapshot_id].append((HolderKind(reference.snapshot_ref_type.value), name))
    return named
