"""Deletes what journals name, looks whether it is gone, and leaves receipts: for purges and for deletions of topics.

    delete       each file by itself: one that can't be deleted is told with the reason, and the others go all the same;
                 what lies outside of the table's folder is never deleted, whoever has named it
    look again   the storage is listed once more; what is still there is not deleted, whatever the storage said
    settle       for each journal, in the order of their names:

    all of it is gone         a receipt, then the journal goes
    some of it is gone        a new journal for the rest, a receipt of what is gone, then the old journal goes
    nothing of it is gone     the journal stays, and whoever comes next tries again

The complication is a kill in between, after which every file is to be in one receipt, not in two and not in none. Two
journals may name the same file: after a kill the next purge may write down again what an earlier one had; and of what
could not be deleted the new journal names what the old one does. So a file belongs to the last journal that names it,
and journals are settled from the first one on. Whichever of them are left after a kill still name what is theirs; after
a power loss too, because none goes before it is sure that those before it are gone. So one that can't be deleted keeps
those behind it. A new journal's name begins with that of the one it follows, and therefore comes behind it.

A receipt has the id of its journal. One that was written before a kill is written again, in its place.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from keptlog.errors import StorageUnavailable
from keptlog.log.words.counted import counted, some_of
from keptlog.storage.files import StoredFile
from keptlog.storage.object_version import BY_PURGE, DeleteRefused
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.io.local_files import lost_link_above
from keptlog.table.metadata.references import below, comparable_forms
from keptlog.table.metadata.segment_metrics import RecordRange
from keptlog.table.removal.hidden import HiddenFiles, hidden_below
from keptlog.table.removal.journal import DELETION, DeletedFile, Journal, following, write_journal
from keptlog.table.removal.topic_storage import lost_links_below
from keptlog.table.waiting.reach import OUT_OF_REACH
from keptlog.table.waiting.reaching import one_line

_REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.EBUSY}
_REFUSED_BY_S3 = ("ACCESS_DENIED", "AccessDenied")
_STILL_THERE = "it is still there, although the storage said that it was deleted"
_ELSEWHERE = (
    "it lies outside of the topic's folder, where a purge deletes nothing: if it lies in the folder of another topic, "
    "leave it, for that may need it, and its own purges delete it later; else delete it by hand if nobody needs it"
)
_KEPT_ELSEWHERE = (
    "it lies outside of the topic's folder, and another home may need it, which has the topic under the name {keeper}: "
    "if no other home has it, move that file away, and delete this one by hand, unless it lies in the folder of "
    "another topic"
)
_HIDDEN_ELSEWHERE = (
    "it lies outside of the topic's folder, and was deleted there, but its bucket keeps versions of it: delete these by"
    " hand too"
)
_UNTOLD_ELSEWHERE = (
    "it lies outside of the topic's folder, and was deleted there, but nobody can tell whether its bucket keeps "
    "versions of it"
)
_NAMED_IN_ERROR = 3
_FAILURES: tuple[type[Exception], ...] = (*OUT_OF_REACH, StorageUnavailable)


@dataclass(frozen=True, slots=True)
class NotDeleted:
    """A file that was to be deleted and is still there, and why, in one line."""

    path: str
    bytes: int
    reason: str
    is_kept: bool = False
    """Whether only locks and holds of the store keep it: before they have ended, nothing is gained by another try."""

    @property
    def told(self) -> dict[str, str | int]:
        """As answers and receipts have it."""
        return {"path": self.path, "bytes": self.bytes, "reason": self.reason}


@dataclass
class Removal:
    """The journals below one table's location, each about to be carried out."""

    files: TableFiles
    location: str
    journals: dict[str, Journal] = field(default_factory=dict)
    """By path."""
    keeper_of: Callable[[str], str | None] = lambda _: None
    """The metadata file under whose name another home may need a file."""
    again: str = BY_PURGE
    """What helps, once the storage lets go of what it refused to delete."""
    _refused: dict[str, NotDeleted] = field(default_factory=dict)
    """By path, what the storage would not delete."""
    _left: dict[str, NotDeleted] = field(default_factory=dict)
    hidden: HiddenFiles = field(default_factory=HiddenFiles)
    """What the new listing does not show."""
    _present: set[str] = field(default_factory=set)
    """What was there when it was looked again, in comparable form."""

    @property
    def not_deleted(self) -> tuple[NotDeleted, ...]:
        """What could not be deleted, by path; journals too."""
        return tuple(self._left[path] for path in sorted(self._left))

    @property
    def refused(self) -> tuple[NotDeleted, ...]:
        """What the storage would not delete, whether it has a journal or not."""
        return tuple(self._refused.values())

    @cached_property
    def _is_below(self) -> Callable[[str], bool]:
        return below(self.location)

    def named(self) -> set[str]:
        """All that the journals name, in comparable form."""
        return set(comparable_forms(path for journal in self.journals.values() for path in journal.paths).values())

    def named_by(self, is_meant: Callable[[Journal], bool]) -> dict[str, int]:
        """What these journals name, paths to sizes."""
        meant = [journal for journal in self.journals.values() if is_meant(journal)]
        return {file.path: file.bytes for journal in meant for file in journal.segments + journal.metadata}

    @property
    def ranges(self) -> dict[str, RecordRange]:
        """Which records are in files that the journals name, by path, as far as they tell it."""
        named = [file for journal in self.journals.values() for file in journal.segments + journal.metadata]
        return {file.path: file.records for file in named if file.records}

    def own(self, is_meant: Callable[[Journal], bool], needed: Collection[str]) -> dict[str, Journal]:
        """What is to go of each of these journals: nothing refers to it, and no later journal names it.

        ``needed`` is in comparable form. Of a journal whose commit did not land that is nothing. Its snapshots stay
        named: they may have expired though another catalog needs all their files.
        """
        found: dict[str, Journal] = {}
        taken = set(needed)
        for path in reversed(self._in_order(self.journals)):
            journal = self.journals[path]
            forms = comparable_forms(journal.paths)
            if is_meant(journal):
                found[path] = replace(journal.only(_not_among(forms, taken)), snapshots=journal.snapshots)
            taken.update(forms.values())
        return found

    def delete(self, doomed: Iterable[Journal]) -> None:
        """Delete what these journals name; what can't be deleted is remembered, and stops no other.

        Raises:
            OSError, StorageUnavailable: the storage does not answer any more.
        """
        forms = comparable_forms(path for journal in doomed for path in journal.paths)
        paths = [path for path, form in forms.items() if self._is_below(form)]
        if local_path(self.location) is None:
            # An object store deletes many at once.
            for left in self.files.delete_many(paths):
                self._is_left(left.path, left.reason(self.again), is_kept=left.is_kept)
            return
        for path in paths:
            self.delete_file(path)

    def delete_file(self, path: str) -> bool:
        """Delete one file; gives whether the storage did it."""
        try:
            self.files.delete(path)
        except _FAILURES as error:
            if not _is_refusal(error) and not self.files.exists(path):
                return True
            self._refused.pop(path, None)
            if isinstance(error, DeleteRefused):
                for left in error.undeleted:
                    self._is_left(path, left.reason(self.again), is_kept=left.is_kept)
            else:
                self._is_left(path, one_line(error), is_kept=False)
            return False
        return True

    def _is_left(self, path: str, reason: str, *, is_kept: bool) -> None:
        before = self._refused.get(path)
        if before:
            reason, is_kept = f"{before.reason}; {reason}", is_kept and before.is_kept
        self._refused[path] = NotDeleted(path, 0, reason, is_kept)

    def delete_or_tell(self, path: str) -> bool:
        """Delete a file that no journal names; gives whether it is gone. If not, it is told with what could not be."""
        is_gone = self.delete_file(path)
        if is_gone:
            self._left.pop(path, None)
        else:
            self._left[path] = self._refused[path]
        return is_gone

    def look_again(self, doomed: Iterable[Journal]) -> list[StoredFile]:
        """Find out what is really gone, from a new listing; gives the listing."""
        listed = list(self.files.list(self.location))
        self.hidden = hidden_below(self.files, self.location)
        there = [*listed, *self.hidden.files, *lost_links_below(self.location)]
        self._present = set(comparable_forms(file.path for file in there).values())
        looked_for = [file for journal in doomed for file in journal.segments + journal.metadata]
        forms = comparable_forms(file.path for file in looked_for)
        for file in looked_for:
            reason, refused = self._why_left(file.path, forms[file.path]), self._refused.get(file.path)
            if reason:
                is_kept = refused is not None and refused.is_kept
                self._left[file.path] = NotDeleted(file.path, file.bytes, reason, is_kept)
        return listed

    def left_of(self, paths: Iterable[str]) -> set[str]:
        """What of these was not gone when it was looked again, in comparable form."""
        forms = comparable_forms(paths)
        return {form for path, form in forms.items() if self._why_left(path, form)}

    def _why_left(self, path: str, form: str) -> str | None:
        """Null if it is gone."""
        if self._is_below(form):
            if refused := self._refused.get(path):
                return refused.reason
            return _STILL_THERE if form in self._present else None
        return self._why_elsewhere(path)

    def elsewhere(self, size_bytes: Mapping[str, int]) -> dict[str, int]:
        """Of these files, paths to sizes, those that lie outside of the table's folder, and are there."""
        forms = comparable_forms(size_bytes)
        outside = [path for path in size_bytes if not self._is_below(forms[path])]
        return {path: size_bytes[path] for path in outside if self._why_elsewhere(path)}

    def _why_elsewhere(self, path: str) -> str | None:
        """Null if it is not there; where nobody can tell, it may be."""
        try:
            if self.files.exists(path):
                keeper = self.keeper_of(path)
                return _KEPT_ELSEWHERE.format(keeper=keeper) if keeper else _ELSEWHERE
        except _FAILURES as error:
            return f"{_ELSEWHERE} ({one_line(error)})"
        try:
            versions = [each.version_id for each in self.files.still_there([path])]
        except _FAILURES as error:
            return f"{_UNTOLD_ELSEWHERE} ({one_line(error)})"
        if versions:
            return f"{_HIDDEN_ELSEWHERE} ({some_of(list(map(str, versions)), _NAMED_IN_ERROR)})"
        local = local_path(path)
        lost = lost_link_above(local) if local is not None else None
        return f"it lies behind {lost}, a link that leads nowhere now (is its disk mounted?)" if lost else None

    def settle(self, own: Mapping[str, Journal], leave_receipt: Callable[[str, Journal], object]) -> dict[str, Journal]:
        """Leave receipts of what is gone, and drop the journals of which nothing is left.

        ``leave_receipt`` gets a journal's path and what of it is gone, maybe nothing, and writes it down durably.

        Returns:
            What is gone, by journal.
        """
        gone: dict[str, Journal] = {}
        is_in_turn = True
        dropped = ""  # the folder of a journal that a power loss may bring back
        for path in self._in_order(own):
            left = own[path].only(lambda file: file.path in self._left)
            gone[path] = own[path].only(lambda file: file.path not in self._left) if own[path].paths else own[path]
            if left.paths and not gone[path].paths:
                continue
            if left.paths:
                self._write_following(path, left)
            leave_receipt(path, gone[path])
            if dropped:
                self.files.make_deletions_durable(dropped)
            is_in_turn = is_in_turn and self._drop(path)
            dropped = path.rpartition("/")[0]
        return gone

    def _write_following(self, path: str, left: Journal) -> None:
        while path in self.journals:
            path = following(path)
        # What ends with the topic is in the receipt of the first; if that could not tell, nor can the next.
        erasures = None if left.erasures is None else ()
        self.journals[path] = replace(left, snapshots=(), erasures=erasures)
        write_journal(self.files, path, self.journals[path])

    def _drop(self, path: str) -> bool:
        """Gives whether it is gone. One that can't be deleted keeps those behind it: what both name is theirs."""
        is_gone = self.delete_or_tell(path)
        if is_gone:
            del self.journals[path]
        return is_gone

    def _in_order(self, paths: Iterable[str]) -> list[str]:
        """From the first to be settled; what a topic's deletion names is nobody's else."""
        return sorted(paths, key=lambda path: (self.journals[path].kind == DELETION, path.removesuffix(".json")))


def not_deleted_error(topic: str, left: Collection[NotDeleted], todo: str) -> StorageUnavailable:
    """One line that says which files are still there, and why; ``todo`` ends it.

    Where locks and holds keep all of them, it lasts until somebody acts, or they end.
    """
    named = "; ".join(f"{file.path} ({file.reason})" for file in list(left)[:_NAMED_IN_ERROR])
    more = f"; and {len(left) - _NAMED_IN_ERROR} more" if len(left) > _NAMED_IN_ERROR else ""
    count = counted(len(left), "file")
    error = StorageUnavailable(f"topic {topic}: {count} could not be deleted: {named}{more}; {todo}")
    return error.for_good() if all(file.is_kept for file in left) else error


def _not_among(forms: Mapping[str, str], taken: Collection[str]) -> Callable[[DeletedFile], bool]:
    return lambda file: forms[file.path] not in taken


def _is_refusal(error: Exception) -> bool:
    """Whether the storage answers, and says no; it may have no answer for a while, and then nothing more is tried."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _REFUSALS
    return any(word in str(error) for word in _REFUSED_BY_S3)
