"""What still holds bytes of a topic that are not live: a full look at its snapshots and its storage, file by file.

What each kind of holder is, and by when it is to let go, stands in ``keptlog.log.holder``; what snapshots, tags and
branches keep, in ``superseded``. Besides, the storage has files that no snapshot shows. They are told apart by where
they lie and how old they are.

- A file of watermarks belongs to no snapshot. It is retired if a later one of its log is live; since when, the next
  later one says.
- Metadata holds no records. But another program may write bounds of keys and values into manifests, or statistics.
- What a bucket keeps beside what it lists stands in ``held_versions``. Where nobody can tell, that is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.log.counted import counted
from keptlog.log.holder import AFTER_DELAY, CLOCKS_DIFFER_MS, Held, HolderKind, Holdings, Terms
from keptlog.storage.files import StoredFile
from keptlog.table.expiry import replaced_at_ms
from keptlog.table.files import TableFiles
from keptlog.table.held_versions import held_versions, with_locks
from keptlog.table.hidden import HiddenFiles, hidden_below
from keptlog.table.journal import journal_folder, receipt_folder, unreadable_folder
from keptlog.table.metadata_reading import looked_at
from keptlog.table.references import (
    Manifests,
    by_comparable_form,
    comparable,
    comparable_forms,
    live_references,
    named_references,
)
from keptlog.table.state import watermarks_paths
from keptlog.table.superseded import ShownFiles, partition_of
from keptlog.whole_file import is_unfinished

if TYPE_CHECKING:
    from pyiceberg.table import Table


def held_in(load: Callable[[], Table], files: TableFiles, terms: Terms, now_ms: int) -> Holdings:
    """All that holds bytes of a topic which are not live, file by file.

    Of what is late it is asked whether its store keeps it by a lock.

    Raises:
        LogCorrupt: the current snapshot can't be read.
        OSError: the storage can't be listed.
    """
    stored: dict[str, StoredFile] = {}
    hidden = HiddenFiles()

    def load_listed() -> Table:
        # Listed before the table is loaded: what is committed meanwhile is live there.
        nonlocal hidden
        location = load().location()
        listed = list(files.list(location))
        hidden = hidden_below(files, location)
        stored.clear()
        # A tag keeps a file whether it is hidden or not.
        stored.update(by_comparable_form(listed) | by_comparable_form(hidden.files))
        return load()

    def look(table: Table) -> Holdings:
        found = held_now(table, stored, terms, now_ms)
        if found.unread and load().metadata_location != table.metadata_location:
            raise LogCorrupt(found.unread[0])
        held = _and_hidden(table, found.held, hidden, terms)
        late = [each for each in held if (each.deadline_ms(terms) or now_ms) < now_ms]
        return replace(found, held=with_locks(files, held, late, terms), not_looked_at=hidden.not_looked_at)

    return looked_at(load_listed, look)


def _and_hidden(table: Table, held: Collection[Held], hidden: HiddenFiles, terms: Terms) -> tuple[Held, ...]:
    """What is hidden by its own names, but for what snapshots show."""
    names = {comparable(file.path) for file in hidden.files}
    shown = [each for each in held if each.kind in AFTER_DELAY or not each.path or comparable(each.path) not in names]
    live = live_references(table, Manifests(table.name()[-1], table.io)).keys() if names else set()
    needed = live.union(comparable(each.path) for each in shown if each.path) if names else live
    return (*shown, *held_versions(hidden, table.location(), needed, terms))


def held_now(
    table: Table, stored: Mapping[str, StoredFile], terms: Terms, now_ms: int, manifests: Manifests | None = None
) -> Holdings:
    """The same of a table, and files below its location that were listed before it was loaded, by comparable path.

    Raises:
        LogCorrupt: the current snapshot can't be read.
    """
    topic = table.name()[-1]
    snapshots = ShownFiles(table, manifests or Manifests(topic, table.io))
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
    return Holdings(topic, terms, tuple(held), tuple(snapshots.unread))


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

    def _is_post_dated(self, file: StoredFile) -> bool:
        # Whoever looks as of an earlier time finds files that came later; the table's own commits did too.
        return file.modified_ms > max(self.now_ms, self.table.metadata.last_updated_ms) + CLOCKS_DIFFER_MS

    def held(self, files: Mapping[str, StoredFile]) -> Iterator[Held]:
        """By comparable path."""
        location = self.table.location()
        journals, receipts = journal_folder(location), receipt_folder(location)
        statistics = {comparable(each.statistics_path) for each in self.table.metadata.statistics}
        for form, file in files.items():
            if form in statistics:
                continue
            if is_unfinished(file.path):
                yield self._left_behind(file)
            elif file.path.startswith((journals, unreadable_folder(location))):
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
        written_ms: int | None = file.modified_ms
        if kind is not HolderKind.METADATA and self._is_post_dated(file):
            kind, until_ms, written_ms = HolderKind.POST_DATED, None, None
        return Held(kind, since_ms, 1, file.size_bytes, "", partition, file.path, until_ms, written_ms)


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


def _name(held: Held) -> str:
    return held.name


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file that may hold values and is not live, as a receipt names it."""

    path: str
    bytes: int
    holder: str


def held_files(
    table: Table, unknown: Mapping[str, StoredFile], manifests: Manifests, now_ms: int
) -> tuple[HeldFile, ...]:
    """Who holds the files that the current snapshot does not refer to; ``unknown`` is by comparable path.

    Whoever asks has swept by a grace of his own: what is left is staged.

    Raises:
        LogCorrupt: a snapshot can't be read.
    """
    if not unknown:
        return ()
    found = held_now(table, unknown, Terms(0, orphan_grace_ms=now_ms + 1), now_ms, manifests)
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
        elif holder == HolderKind.POST_DATED:
            lines.append(f"{what} whose time is still to come: nobody knows how old that is, and no purge deletes it")
        elif holder == HolderKind.RETIRED:
            lines.append(f"{what} that older snapshots still show, until file.delete.delay.ms has passed")
        else:
            lines.append(f"{what} that {holder} keeps, until it is deleted")
    return lines
