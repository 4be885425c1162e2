"""Which changes have landed, remembered beyond their snapshots.

A change has an id, its snapshot carries it (``keptlog.table.commits.commit``): so a change that is made again, because
nobody knows whether it landed, is found there and is not made twice. But a purge expires snapshots. What it is about to
forget it writes down before:

    snapshots    3 run-a    4 run-b    5 run-c    6 run-d         3 and 4 are to be expired
    file         3 run-a    4 run-b                               metadata/receipts/runs/<when>-n3-n4-<id>.json
    snapshots                          5 run-c    6 run-d         after the commit

Every snapshot has the next sequence number, whoever made it. So whoever misses a number finds it in a file, and knows
what it was. Only if another program has expired it, or a keptlog from before these files, can nobody tell.

A file is written once and never changed, so that two purges at once lose nothing; what a purge has written that does
not land is still in the snapshots as well. So a file that can't be read is missed only where a number is that it may
have, as its name says: then nobody can tell whether a change has landed, and it is refused rather than made twice. An
older keptlog did not put the numbers into the name; such a file may have any. A file is deleted
``producer.id.expiration.ms`` after it was written: so long Kafka too remembers what a producer has sent. A
change that is made again later than that lands again.

A topic that was restored from a backup gives numbers again that a file of the lost time tells of. What holds of a
number is its snapshot, and once that has expired the newest file: the purge that expired it has written that.

An adoption after a rollback gives up what appends had brought. It says so in a property, and from then on they have
not landed: who makes one again brings its records again. A tag or a branch may keep their snapshots for longer than the
adoption's own, and than any file; so the property stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import LogCorrupt
from keptlog.log.told.history import DELETE_RECORDS
from keptlog.regular_file import NotAFile
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, Change
from keptlog.table.metadata.format import SET_IT_BACK
from keptlog.table.metadata.lineage import COMMIT_ID, summary_of
from keptlog.table.metadata.state import UNDONE
from keptlog.table.metadata.stored_json import from_json_file, from_property, to_json

APPENDED = "keptlog.appended"
DELETED = "keptlog.deleted"
TRUNCATED = "keptlog.truncated"
"""Snapshot summary properties: what an append, a deletion or a truncation has done."""

APPEND = "append"
"""An operation, which can be told by its result as ``DELETE_RECORDS`` can."""

_NAME = re.compile(r"(\d+)-(?:n(\d+)-n(\d+)-)?[^/]+\.json")


@dataclass(frozen=True, slots=True)
class LandedChange:
    """A change that made a snapshot; without an id it is another program's. ``result`` is JSON, if it has one."""

    sequence_number: int
    commit_id: str | None = None
    result: str | None = None
    operation: str | None = None
    """What kind of change it was; null too if it was remembered by a keptlog that did not write that down."""

    def may_be(self, change: Change) -> bool:
        """Whether it is this change, as far as anybody can tell."""
        if self.commit_id is None:
            return False
        is_bare = change.once_bare is not None and self.commit_id == change.run_id
        return self.commit_id == change.commit_id or (is_bare and self._known_operation in {None, change.once_bare})

    @property
    def _known_operation(self) -> str | None:
        """Where it was not written down, by its result: a list is an append's, and else only deletions had one."""
        if self.operation is None and self.result is not None:
            return APPEND if self.result.startswith("[") else DELETE_RECORDS
        return self.operation

    def may_stand(self, given_up: Collection[Undone]) -> bool:
        """Whether no adoption has given up what it brought; deletions and truncations stay, for the ends of logs do.

        The last adoption decides: it may have taken in again what an earlier one had given up.
        """
        decisions = [each for each in given_up if each.behind < self.sequence_number < each.until]
        if self._known_operation != APPEND or not decisions:
            return True
        return self.sequence_number in max(decisions, key=lambda each: each.until).kept


@dataclass(frozen=True, slots=True)
class Undone:
    """The snapshots that an adoption has left aside: those behind the one that it went back to."""

    behind: int
    """That one's sequence number."""
    until: int
    """The adoption's."""
    kept: tuple[int, ...] = ()
    """Numbers of keptlog's snapshots among them that it has taken in."""


@dataclass(frozen=True, slots=True)
class RememberedChanges:
    """The content of a file."""

    topic_id: str
    """A topic that was created again under the same name has the same folder."""
    changes: tuple[LandedChange, ...]


def remember(files: TableFiles, table: Table, expiring: Iterable[Snapshot], new_id: str, now_ms: int) -> None:
    """Write down what these snapshots tell; to be called before the commit that expires them."""
    changes = tuple(landed_change(snapshot) for snapshot in expiring)
    if changes:
        content = to_json(RememberedChanges(str(table.metadata.table_uuid), changes))
        numbers = [each.sequence_number for each in changes]
        name = f"{now_ms:013d}-n{min(numbers)}-n{max(numbers)}-{new_id}.json"
        files.write_bytes(f"{_folder(table.location())}{name}", content.encode())


def outdated(files: TableFiles, location: str, now_ms: int, horizon_ms: int) -> list[str]:
    """The files of what was written down longer ago than that, of the topic at a location."""
    found = ((file.path, remembered_ms(file.path, location)) for file in files.list(_folder(location)))
    return [path for path, written_ms in found if written_ms is not None and written_ms < now_ms - horizon_ms]


def remembered_ms(path: str, location: str) -> int | None:
    """When a file of changes was written, of the topic at a location; null for any other file."""
    name = _NAME.fullmatch(path.removeprefix(_folder(location)))
    return int(name[1]) if name else None


def _may_have(path: str, location: str, missing: Collection[int]) -> bool:
    """Whether a file that can't be read may tell of one of these sequence numbers."""
    name = _NAME.fullmatch(path.removeprefix(_folder(location)))
    if name is None or name[2] is None:
        return bool(missing)
    return any(int(name[2]) <= number <= int(name[3]) for number in missing)


def landed_change(snapshot: Snapshot) -> LandedChange:
    """What a snapshot tells of the change that made it."""
    properties = summary_of(snapshot)
    result = next((properties[name] for name in (APPENDED, DELETED, TRUNCATED) if name in properties), None)
    return LandedChange(snapshot.sequence_number or 0, properties.get(COMMIT_ID), result, properties.get(OPERATION))


def landed_before(table: Table, change: Change) -> LandedChange | None:
    """A change that has landed, if its snapshot is still there.

    Raises:
        LogCorrupt: nobody can tell whether an adoption has given it up.
    """
    landed = map(landed_change, reversed(table.metadata.snapshots))
    return _standing(table, [each for each in landed if each.may_be(change)])


def undone(table: Table) -> tuple[Undone, ...]:
    """What adoptions have left aside.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    text = table.properties.get(UNDONE)
    if not text:
        return ()
    where, what = f"topic {table.name()[-1]}: property {UNDONE}", "list of what adoptions left aside"
    return from_property(tuple[Undone, ...], text, where, what, SET_IT_BACK)


def _standing(table: Table, found: Sequence[LandedChange]) -> LandedChange | None:
    """The first that no adoption has given up; asks only if there are any."""
    given_up = undone(table) if found else ()
    return next((each for each in found if each.may_stand(given_up)), None)


@dataclass(frozen=True, slots=True)
class ExpiredChanges:
    """What is known of the snapshots behind a sequence number that are no longer there."""

    table: Table
    changes: tuple[LandedChange, ...]
    is_all_known: bool
    """Whether each of them is among ``changes``."""
    damage: LogCorrupt | None = None
    """Of a file that can't be read, and may tell of the others."""

    def find(self, change: Change) -> LandedChange | None:
        """A change that has landed, if it is among them.

        Raises:
            LogCorrupt: it is not, and may be in a file that is damaged; or as for ``undone``.
        """
        found = _standing(self.table, [each for each in self.changes if each.may_be(change)])
        if found is None and self.damage:
            raise self.damage
        return found


def expired_since(files: TableFiles, table: Table, sequence_number: int) -> ExpiredChanges:
    """Look up the snapshots behind a sequence number that have expired; reads no file if there are none."""
    newer = range(sequence_number + 1, table.last_sequence_number + 1)
    present = {snapshot.sequence_number for snapshot in table.metadata.snapshots if snapshot.sequence_number in newer}
    if len(present) == len(newer):
        return ExpiredChanges(table, (), is_all_known=True)
    read, damages = _remembered(files, table)
    expired = set(newer) - present
    changes = tuple(change for change in read if change.sequence_number in expired)
    missing = expired - {change.sequence_number for change in changes}
    damage = next((error for path, error in damages if _may_have(path, table.location(), missing)), None)
    return ExpiredChanges(table, changes, not missing, damage)


def damaged(files: TableFiles, table: Table, paths: Iterable[str]) -> list[LogCorrupt]:
    """What is wrong with the files of changes among these paths: whoever misses a number there would be refused."""
    return [each for _, each in _contents(files, table, paths) if isinstance(each, LogCorrupt)]


def _remembered(files: TableFiles, table: Table) -> tuple[Sequence[LandedChange], list[tuple[str, LogCorrupt]]]:
    """What the files of a topic tell, the newest of each number, and those that can't be read, with the errors."""
    changes: dict[int, LandedChange] = {}
    damages: list[tuple[str, LogCorrupt]] = []
    paths = sorted(file.path for file in files.list(_folder(table.location())))  # a name begins with the time
    for path, read in _contents(files, table, paths):
        if isinstance(read, LogCorrupt):
            damages.append((path, read))
        elif read.topic_id == str(table.metadata.table_uuid):
            changes |= {change.sequence_number: change for change in read.changes}
    return tuple(changes.values()), damages


def _contents(
    files: TableFiles, table: Table, paths: Iterable[str]
) -> Iterator[tuple[str, RememberedChanges | LogCorrupt]]:
    """What each file of changes tells, or why it can't be read."""
    for path in paths:
        if remembered_ms(path, table.location()) is None:
            continue
        try:
            yield path, _read(files, table.name()[-1], path)
        except FileNotFoundError:  # a purge has just forgotten it
            continue
        except LogCorrupt as error:
            yield path, error


def _read(files: TableFiles, topic: str, path: str) -> RememberedChanges:
    """The content of a file.

    Raises:
        FileNotFoundError: it is gone.
        LogCorrupt: it is not what was written.
    """
    what = "list of changes that have landed"
    remedy = (
        "whether a change that it names has landed can't be told: put the file back from a copy of the storage; or "
        f"see what keptlog history {topic} tells, and delete the file: what only it knew of may then land again"
    )
    where = f"topic {topic}: {path}"
    try:
        content = files.read_bytes(path)
    except NotAFile as error:
        raise LogCorrupt(f"{where} is no {what} ({error.strerror}); {remedy}") from error
    return from_json_file(RememberedChanges, content, where, what, remedy)


def _folder(location: str) -> str:
    return f"{location}/metadata/receipts/runs/"
