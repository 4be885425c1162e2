"""What still holds bytes of a topic that are not live: a full look at its snapshots and its storage, file by file.

What each kind of holder is, and by when it is to let go, stands in ``keptlog.log.holder``; what snapshots, tags and
branches keep, in ``superseded``. Besides, the storage has files that no snapshot shows. They are told apart by where
they lie and how old they are.

- A file of watermarks belongs to no snapshot. It is retired if a later one of its log is live; since when, the next
  later one says.
- A live segment holds what is below its log's start.
- Metadata holds no records. But another program may write bounds of keys and values into manifests, or statistics.
- What a purge spares for another catalog is told by the metadata file for which it is (``spared``).
- What a bucket keeps beside what it lists stands in ``held_versions``. Where nobody can tell, that is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.log.holder import (
    AFTER_DELAY,
    CLOCKS_DIFFER_MS,
    SEGMENT_IN_NAME,
    Held,
    HolderKind,
    Holdings,
    Terms,
    is_told_by_g8,
)
from keptlog.log.segment import Log
from keptlog.log.segment_path import partition_in, watermarks_partition_in
from keptlog.log.words.counted import counted
from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.metadata_reading import looked_at
from keptlog.table.metadata.references import (
    Manifests,
    References,
    below,
    by_comparable_form,
    comparable,
    comparable_forms,
    inside,
    named_references,
)
from keptlog.table.metadata.state import LogState, watermarks_paths
from keptlog.table.removal.expiry import replaced_at_ms
from keptlog.table.removal.held_versions import held_versions, with_locks
from keptlog.table.removal.hidden import HiddenFiles, hidden_below
from keptlog.table.removal.journal import (
    is_following,
    journal_folder,
    read_journals,
    receipt_folder,
    unreadable_folder,
)
from keptlog.table.removal.left_elsewhere import journals_told
from keptlog.table.removal.own_folder import told_not_own
from keptlog.table.removal.ref_retention import kept_until_ms
from keptlog.table.removal.refusal import Refusal, purge_refusal
from keptlog.table.removal.spared import told_by_keeper
from keptlog.table.removal.superseded import ShownFiles
from keptlog.table.removal.topic_storage import Storage
from keptlog.whole_file import is_unfinished

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile

_ASKED_FIRST = 10
"""Files of a journal of which nothing is gone; it may be that of a purge that has yet to delete the first."""


def held_in(
    load: Callable[[], Table],
    files: TableFiles,
    terms: Terms,
    now_ms: int,
    refusal: Callable[[Table], str] = lambda _: "",
) -> Holdings:
    """All that holds bytes of a topic which are not live, file by file.

    Of what is late, or was refused to a purge, it is asked whether its store keeps it by a lock. ``refusal`` tells why
    a purge would not even look at the topic, and is empty if it would.

    Raises:
        LogCorrupt: the current snapshot can't be read.
        OSError: the storage can't be listed.
    """
    found_there = FoundThere({}, HiddenFiles())

    def load_listed() -> Table:
        # Listed before the table is loaded: what is committed meanwhile is live there.
        nonlocal found_there
        location = load().location()
        listed = list(files.list(location))
        found_there = FoundThere(by_comparable_form(listed), hidden_below(files, location))
        return load()

    def look(table: Table) -> Holdings:
        manifests = Manifests(table.name()[-1], table.io)
        found = held_now(table, found_there, terms, now_ms, manifests)
        # What the store does not answer has nothing to do with who commits.
        unread = [each for each in found.unread if each not in found_there.hidden.unread]
        if unread and load().metadata_location != table.metadata_location:
            raise LogCorrupt(unread[0])
        storage = Storage(table.location(), found_there.listed, found_there.hidden)
        refused = Refusal()
        if found.held or len(table.metadata.snapshots) > 1:
            refused = purge_refusal(table, storage, manifests, files, load)
            if refused.spared.unread and load().metadata_location != table.metadata_location:
                raise LogCorrupt(refused.spared.unread)
            refused = replace(refused, why=refusal(table) or refused.why)
        held = tuple(journals_told(table, found.held, found_there.listed.keys(), files, manifests))
        found = told_by_keeper(replace(found, held=held), refused.spared)
        held = found.held
        asked = set[Held]()
        if not found_there.hidden.unread:  # who may not list versions is not told what keeps them either
            late = [each for each in held if (each.deadline_ms(terms) or now_ms) < now_ms]
            asked = {*late, *_refused(table.location(), held, found_there, files)}
        told = with_locks(files, held, asked, terms)
        return replace(found, held=told, unread=(*found.unread, *refused.unread), no_purge=refused.why)

    return looked_at(load_listed, look)


@dataclass(frozen=True, slots=True)
class FoundThere:
    """What lay below a table's location before the table was loaded."""

    listed: Mapping[str, StoredFile]
    """By comparable path."""
    hidden: HiddenFiles


def held_now(table: Table, there: FoundThere, terms: Terms, now_ms: int, manifests: Manifests) -> Holdings:
    """The same of a table and what lies below its location; nobody is asked about locks.

    Raises:
        LogCorrupt: the current snapshot can't be read.
    """
    # A tag keeps a file whether it is hidden or not.
    stored = {**there.listed, **by_comparable_form(there.hidden.files)}
    snapshots = ShownFiles(table, manifests)
    snapshots.look(stored.keys())
    unread = list(snapshots.unread)
    other = told_not_own(table, (each.path for each in there.listed.values()))
    if other:
        # It may be all that another topic has.
        unread.append(str(other.error(table, "what lies there is not told from another table's files")))
    held = _held_listed(table, snapshots, {} if other else stored, terms, now_ms)
    held = _and_hidden(table, held, there.hidden, snapshots.live, terms)
    held += _below_log_start(table, snapshots.current, unread)
    return Holdings(table.name()[-1], terms, tuple(held), (*unread, *there.hidden.unread), there.hidden.not_looked_at)


def _refused(location: str, held: Collection[Held], there: FoundThere, files: TableFiles) -> list[Held]:
    """What the last purge could not delete: its journal names that, and nothing else.

    Two requests a file are many. So the journal of a purge that is at work, or was killed, costs none once some of it
    is gone. As long as nothing is, it looks like one of which all was refused: a few of its files tell. Nothing is
    asked where the store knows no locks.
    """
    paths = [each.path for each in held if each.kind is HolderKind.JOURNAL and each.path]
    if not paths or not files.may_lock(location):
        return []
    present = there.listed.keys() | by_comparable_form(there.hidden.files).keys()
    is_below, refused = below(location), set[str]()
    for path, journal in read_journals(files, location, paths)[0].items():
        named = {form: each for each, form in comparable_forms(journal.paths).items() if is_below(form)}
        if named.keys() <= present and (is_following(path) or _is_one_kept(files, named.values())):
            refused |= named.keys()
    forms = comparable_forms(each.path for each in held if each.path)
    return [each for each in held if each.path and forms[each.path] in refused]


def _is_one_kept(files: TableFiles, named: Iterable[str]) -> bool:
    return any(left.is_kept for left in files.still_there(sorted(named)[:_ASKED_FIRST]))


def _below_log_start(table: Table, current: References, unread: list[str]) -> Iterator[Held]:
    """Deleted records in live segments; since when is not known, but by the table's last change they were deleted."""
    starts: dict[int, int] = {}
    for path, (partition, first_offset, last_offset) in current.ranges.items():
        if partition not in starts:
            starts[partition] = _log_start(table, partition, unread)
        name = _name_below_log_start(first_offset, last_offset, starts[partition])
        if name:
            size_bytes, since_ms = current.data_bytes[path], table.metadata.last_updated_ms
            yield Held(HolderKind.LIVE_SEGMENT, since_ms, 1, size_bytes, name, partition, path)


def _name_below_log_start(first_offset: int, last_offset: int, log_start_offset: int) -> str | None:
    """The name of a live segment as a holder; null if nothing of it is below the log start."""
    if first_offset >= log_start_offset:
        return None
    end_offset = last_offset + 1
    return f"[{first_offset},{min(log_start_offset, end_offset)}){SEGMENT_IN_NAME}[{first_offset},{end_offset})"


def _log_start(table: Table, partition: int, unread: list[str]) -> int:
    try:
        return LogState.read(table.name()[-1], partition, table.properties).log_start_offset
    except LogCorrupt as error:
        unread.append(str(error))
        return 0


def _and_hidden(
    table: Table, held: Collection[Held], hidden: HiddenFiles, live: Collection[str], terms: Terms
) -> list[Held]:
    """What is hidden by its own names, but for what snapshots show."""
    names = {comparable(file.path) for file in hidden.files}
    shown = [each for each in held if each.kind in AFTER_DELAY or not each.path or comparable(each.path) not in names]
    needed = {*live, *(comparable(each.path) for each in shown if each.path)} if names else live
    return [*shown, *held_versions(hidden, table.location(), needed, terms)]


def _held_listed(
    table: Table, snapshots: ShownFiles, stored: Mapping[str, StoredFile], terms: Terms, now_ms: int
) -> list[Held]:
    below = inside(table.location()).removesuffix("x")
    # What is not in the list any more holds nothing; what lies elsewhere is not in it.
    found, kept_ms = [*snapshots.segments.items(), *snapshots.bounds.items()], kept_until_ms(table)
    there = [shown for form, shown in found if form in stored or not form.startswith(below)]
    held = [each for shown in there for each in shown.held(kept_ms)]
    held += _statistics_files(table)
    known = snapshots.live.union(snapshots.segments, snapshots.bounds)
    unknown = {form: file for form, file in stored.items() if form not in known}
    named = snapshots.metadata.union(comparable_forms(named_references(table).metadata_bytes).values())
    held += _Unreferenced(table, terms, now_ms, named, _watermarks(table, stored)).held(unknown)
    return held


def _statistics_files(table: Table) -> Iterator[Held]:
    """Those of older snapshots; another program has made them."""
    replaced_ms = replaced_at_ms(table)
    for each in _statistics(table):
        if each.snapshot_id != table.metadata.current_snapshot_id:
            since_ms = replaced_ms.get(each.snapshot_id, table.metadata.last_updated_ms)
            yield Held(HolderKind.STATISTICS, since_ms, 1, each.file_size_in_bytes, path=each.statistics_path)


def _statistics(table: Table) -> Iterator[StatisticsFile | PartitionStatisticsFile]:
    """Those of columns and those of partitions, which have keys in them where somebody has partitioned by key."""
    yield from table.metadata.statistics
    yield from table.metadata.partition_statistics


@dataclass(frozen=True)
class _Unreferenced:
    """Tells files apart that no snapshot shows."""

    table: Table
    terms: Terms
    now_ms: int
    named: set[str]
    """Metadata that the table's metadata refers to, in comparable form."""
    watermarks_ms: Mapping[int | None, list[int]]
    """When the files of watermarks of a log were written that are live or came before, by partition."""

    def _is_post_dated(self, file: StoredFile) -> bool:
        # Whoever looks as of an earlier time finds files that came later; the table's own commits did too.
        return file.modified_ms > max(self.now_ms, self.table.metadata.last_updated_ms) + CLOCKS_DIFFER_MS

    def held(self, files: Mapping[str, StoredFile]) -> Iterator[Held]:
        """By comparable path."""
        location = self.table.location()
        journals, receipts = journal_folder(location), receipt_folder(location)
        statistics = {comparable(each.statistics_path) for each in _statistics(self.table)}
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
        of_watermarks_ms = self.watermarks_ms.get(watermarks_partition_in(file.path), ())
        later_ms = [ms for ms in of_watermarks_ms if ms > file.modified_ms]
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
        partition = partition_in(file.path)
        written_ms: int | None = file.modified_ms
        if kind is not HolderKind.METADATA and self._is_post_dated(file):
            kind, until_ms, written_ms = HolderKind.POST_DATED, None, None
        return Held(kind, since_ms, 1, file.size_bytes, "", partition, file.path, until_ms, written_ms)


def _watermarks(table: Table, stored: Mapping[str, StoredFile]) -> dict[int | None, list[int]]:
    """Partition to when its files of watermarks were written, up to the live one."""
    live_ms: dict[int | None, int] = {}
    for form in comparable_forms(watermarks_paths(table.properties)).values():
        if form in stored:
            live_ms[watermarks_partition_in(stored[form].path)] = stored[form].modified_ms
    found: dict[int | None, list[int]] = defaultdict(list)
    for file in stored.values():
        number = watermarks_partition_in(file.path)
        if number is not None and file.modified_ms <= live_ms.get(number, -1):
            found[number].append(file.modified_ms)
    return found


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file that may hold keys or values and is not live, as a receipt names it, and one that keeps it.

    ``bytes`` is 0 where the size is not known.
    """

    path: str
    bytes: int
    holder: str


def held_files(holdings: Holdings, told: Collection[str]) -> tuple[HeldFile, ...]:
    """What G8 tells of, but for files that are told of otherwise, in comparable form."""
    held = [(each, each.path) for each in holdings.held if is_told_by_g8(each.kind)]
    forms = comparable_forms(path for _, path in held if path)
    found = {
        HeldFile(path, each.bytes or 0, f"{each.kind} {each.name}".rstrip())
        for each, path in held
        if path and forms[path] not in told
    }
    return tuple(sorted(found, key=lambda file: (file.path, file.holder)))


_LINES = {
    HolderKind.RETIRED: "that older snapshots still show, until file.delete.delay.ms has passed",
    HolderKind.STAGED: "of runs that are under way, or died: nothing refers to them; deleted after the grace",
    HolderKind.ORPHAN: "of runs that died: nothing refers to them; older than the grace, and left for the next purge",
    HolderKind.WATERMARKS: "of watermarks that later ones have replaced; deleted after the grace",
    HolderKind.JOURNAL: "of unfinished purges or deletions; what lies in receipts/unreadable is yours to delete",
    HolderKind.STATISTICS: "of other programs, with bounds of keys or values, or statistics",
    HolderKind.POST_DATED: "whose time is still to come: nobody knows how old that is, and no purge deletes it",
    HolderKind.OBJECT_VERSION: "that somebody deleted, and whose versions the bucket keeps; deleted after the grace",
}


def held_below(log: Log) -> tuple[HeldFile, ...]:
    """The live segments of a log with records below its start."""
    named = [
        (segment, _name_below_log_start(segment.base_offset, segment.last_offset, log.log_start_offset))
        for segment in log.segments
    ]
    return tuple(HeldFile(each.path, each.size_bytes, _BELOW + name) for each, name in named if name)


_OF_OTHERS = {
    HolderKind.COPIED_STATE: "{path} shows, under whose name another home may have the topic: that file is to be moved "
    "away if none has",
    HolderKind.COMMIT_AHEAD: "{path} refers to, which may have landed elsewhere: deleted after the next commit",
}
_BELOW = f"{HolderKind.LIVE_SEGMENT} "


def _line(holder: str, count: int) -> str:
    for kind, line in _OF_OTHERS.items():
        if holder.startswith(f"{kind} "):
            return f"{counted(count, 'file')} that {line.format(path=holder.removeprefix(f'{kind} '))}"
    if holder.startswith(_BELOW):
        told = counted(count, HolderKind.LIVE_SEGMENT)
        return f"deleted records still lie in {told}, {holder.removeprefix(_BELOW)}: they go with their segment"
    told_by: dict[str, str] = {str(kind): line for kind, line in _LINES.items()}
    return f"{counted(count, 'file')} {told_by.get(holder, f'that {holder} keeps, until it is deleted')}"


def held_lines(held: Iterable[HeldFile]) -> list[str]:
    """One line for each holder, for people."""
    by_holder: dict[str, list[HeldFile]] = defaultdict(list)
    for file in held:
        by_holder[file.holder].append(file)
    return [_line(holder, len(files)) for holder, files in sorted(by_holder.items())]
