"""Deletes a topic for good, and leaves a receipt of it.

A kill may come at any moment; the same call again, or the next purge of all topics, finishes what it left.

    catalog                        files
    keptlog.users                  segments, metadata        before
    keptlog_deleting.users         segments, metadata        one change of the catalog: nobody finds the topic any more
    keptlog_deleting.users         the same, and a journal   what is about to be deleted, written down
    keptlog_deleting.users         the current metadata, and the drafts of receipts
    keptlog_deleting.users         the current metadata      the receipts are sealed, outside of the topic's folder
    -                              the current metadata
    -                              -                         gone

A topic leaves its namespace first, so that no writer, of whatever version, lands in a topic that is half deleted. It
stays in the second one until its files are gone, because afterwards nobody would know where they lie. Until then no
topic of this name is created, which could get the same folder. A kill just before the last step leaves one file of
metadata, without a record in it.

Erasures that are open end with their topic. A journal has them, and so has its receipt (``ended_erasures``).

Journals are carried out as a purge carries out its own (``removal``). Those that purges have left are settled too:
what they had deleted already is in their receipts, what is still there in that of the deletion. A run that knew the
topic may stage files for a while, so it is listed again until nothing new is there. What can't be deleted is named, and
the deletion stays unfinished; so it does where the receipts can't be sealed. Tags, branches and young snapshots keep
nothing here.

What is to go is all that is listed, and all that the table refers to. Another program may have written files outside of
the folder. Nobody may delete those here, and without the table nobody knows of them: so they are in the journal too,
are named as not deleted, and the deletion ends when somebody has seen to them. Manifests that can't be read keep nobody
from deleting a topic. The journal says that they could not, because it is written before they go.

Without a chain of receipts the drafts are all that stays; the purge of a later topic in the same folder seals them.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table

from keptlog.errors import CommitStateUnknown, StalePlan, StorageUnavailable
from keptlog.interrupted import if_stopped_within
from keptlog.log.given.unknown_topic import unknown_topic
from keptlog.storage.files import StoredFile
from keptlog.table.catalogs.catalog import make_namespace
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.loaded import loaded_if_there, names_in
from keptlog.table.metadata.references import References, comparable, comparable_forms, readable_references
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.ahead import require_newest
from keptlog.table.removal.drafts import (
    PURGE,
    Seal,
    Sealing,
    content_of,
    done_draft,
    has_receipt,
    seal_drafts,
    told_of_deletion,
    write_draft,
)
from keptlog.table.removal.ended_erasures import Ending, Sealed, counted_open, ended_erasures, own_deletions
from keptlog.table.removal.hidden import hidden_below
from keptlog.table.removal.journal import (
    DELETION,
    DELETION_NAME,
    DeletedFile,
    Journal,
    id_of,
    journal_folder,
    receipt_folder,
    write_journal,
)
from keptlog.table.removal.named_files import NamedFiles
from keptlog.table.removal.own_folder import require_alone, require_own_folder
from keptlog.table.removal.own_journals import nothing_sealed, read_own_journals
from keptlog.table.removal.removal import NotDeleted, Removal
from keptlog.table.removal.topic_deletion import IF_STOPPED_BEFORE, IF_STOPPED_WITHIN, TopicDeletion
from keptlog.table.removal.topic_storage import drafts_among, lost_links_below
from keptlog.table.removal.topic_table import deleting
from keptlog.table.waiting.reach import OUT_OF_REACH, is_sure
from keptlog.table.waiting.reaching import one_line, reaching

_logger = logging.getLogger(__name__)

_MOST_ROUNDS = 20
_AGAIN = "run keptlog topic delete {topic} again"
_REFUSED_OR_IN_DOUBT: tuple[type[Exception], ...] = (*OUT_OF_REACH, TableAlreadyExistsError)
"""A catalog behind REST says of any conflict that such a table exists."""


def being_deleted(catalog: Catalog) -> list[str]:
    """Topics whose deletion was begun and is not finished, sorted; somebody may be at it just now."""
    return names_in(catalog, DELETING)


@dataclass
class Deletion:
    """The deletion of one topic."""

    catalog: Catalog
    files: TableFiles
    name: str
    now_ms: int
    seal: Seal | None = None
    done_ms: Callable[[int], int] = lambda as_of_ms: as_of_ms
    """When what a receipt tells was done: ``ClockGuard.done_ms``."""
    forgets: Iterable[Callable[[str], None]] = ()
    """What remembers topics, and forgets this one, whoever ends its deletion."""
    sealed: Sealed = nothing_sealed
    topic_id: str | None = None
    """The topic that is meant, which may be one whose deletion was begun; null for the one that has the name."""

    def delete(self) -> TopicDeletion:
        """Delete a topic, and finish an earlier deletion of this name.

        Raises:
            UnknownTopic: there is nothing to delete.
            StalePlan: the topic that was meant is gone, and a later one has its name, which stays; or the storage has
                a commit that nobody can tell from one of another home; or the catalog was changed meanwhile.
            LogCorrupt: its metadata is damaged, its folder not its own, or the storage knows more than the catalog.
            StorageUnavailable: catalog or storage can't be reached; the same call again goes on.
            CommitStateUnknown: the catalog gave no answer; the same call again goes on, or finds no such topic.
        """
        with reaching(f"topic {self.name} can't be deleted"):
            is_begun = self.name in being_deleted(self.catalog)
            going = deleting(self.catalog, self.name)  # a list may lag
            earlier = self.finish() if going else TopicDeletion(self.name)
            if not earlier.is_over or (going and str(going.metadata.table_uuid) == self.topic_id):
                return earlier
            self._require_own_folder()
            make_namespace(self.catalog, DELETING)
            with if_stopped_within(IF_STOPPED_BEFORE.format(topic=self.name)):
                return self._take_out_and_finish(earlier, is_begun=bool(going) or is_begun)

    def _take_out_and_finish(self, earlier: TopicDeletion, *, is_begun: bool) -> TopicDeletion:
        try:
            self._changed(self._take_out, lambda: loaded_if_there(self.catalog, NAMESPACE, self.name) is None)
        except (NoSuchTableError, NoSuchNamespaceError):
            if is_begun:
                return earlier
            raise unknown_topic(self.name, ()) from None
        except FileNotFoundError:
            # A catalog reads what it has renamed, and another call may have ended the deletion by then.
            if loaded_if_there(self.catalog, NAMESPACE, self.name):
                raise
        return self.finish().after(earlier)

    def finish(self) -> TopicDeletion:
        """Finish a deletion that was begun; a topic of this name that is not being deleted stays.

        Raises:
            LogCorrupt, StorageUnavailable: as for ``delete``.
        """
        goes_on = f"keptlog topic delete {self.name}, or the next purge, goes on"
        with reaching(f"the deletion of topic {self.name} has begun, and can't be finished now ({goes_on})"):
            return self._finish()

    def _finish(self) -> TopicDeletion:
        table = deleting(self.catalog, self.name)
        if table is None:
            return TopicDeletion(self.name)
        with if_stopped_within(IF_STOPPED_WITHIN.format(topic=self.name)):
            return self._finish_of(table)

    def _finish_of(self, table: Table) -> TopicDeletion:
        # Before the last step: after a kill behind that, nobody would come again.
        for forget in self.forgets:
            forget(self.name)
        if self._is_location_of(table.location()):
            return self._forget(table, TopicDeletion(self.name))
        emptying = _Emptying(self, table)
        done = emptying.empty()
        return self._forget(table, done) if done.is_over and not emptying.is_another else done

    def _forget(self, table: Table, done: TopicDeletion) -> TopicDeletion:
        """The last steps: the catalog forgets where the topic lay, then its metadata goes."""
        last = table.metadata_location
        with contextlib.suppress(NoSuchTableError):  # somebody else was at it too
            self._changed(
                lambda: self.catalog.drop_table((DELETING, self.name)),
                lambda: deleting(self.catalog, self.name) is None,
            )
        removal = Removal(self.files, table.location(), again="delete it by hand")
        gone = (DeletedFile(last, 0),) if removal.delete_file(last) else ()
        deleted = done.deleted_files + gone
        return replace(done, deleted_files=deleted, not_deleted=removal.refused)

    def _take_out(self) -> None:
        self._meant()
        self.catalog.rename_table((NAMESPACE, self.name), (DELETING, self.name))

    def _meant(self) -> Table | None:
        """The topic that is to be taken out, null if there is none; StalePlan if a later one has the name."""
        there = loaded_if_there(self.catalog, NAMESPACE, self.name)
        if there is None or self.topic_id in {None, str(there.metadata.table_uuid)}:
            return there
        what = f"topic {self.name} was deleted and created again meanwhile"
        raise StalePlan(f"{what}; the new one was not deleted, run it again if it is meant for that")

    def _changed(self, change: Callable[[], None], is_done: Callable[[], bool]) -> None:
        """Change the catalog; if its answer was lost, or is that of any conflict, look whether it did so.

        Raises:
            StalePlan: it did not, for somebody was faster.
            CommitStateUnknown: nobody can say.
        """
        try:
            change()
        except _REFUSED_OR_IN_DOUBT as error:
            is_conflict = isinstance(error, TableAlreadyExistsError)
            if not is_conflict and is_sure(error):
                raise
            try:
                done = is_done()
            except OUT_OF_REACH:
                raise CommitStateUnknown(
                    f"topic {self.name}: the catalog did not say whether it is deleted ({one_line(error)}); "
                    f"keptlog topic delete {self.name} finishes it, or says that there is no such topic"
                ) from error
            if not done and is_conflict:
                told = f"topic {self.name} was not deleted: the catalog refused to take it out ({one_line(error)})"
                raise StalePlan(f"{told}; nothing is lost, try again") from error
            if not done:
                raise

    def _require_own_folder(self) -> None:
        """Look before the topic leaves its namespace: what is refused is to stay as it is."""
        first = self._meant()
        listed = list(self.files.list(first.location())) if first else []
        # Loaded again: what was committed while it was listed is no sign of another catalog.
        if table := loaded_if_there(self.catalog, NAMESPACE, self.name):
            self.require_own_folder(table, listed)
            require_alone(self.catalog, table)
            now = partial(loaded_if_there, self.catalog, NAMESPACE, self.name)
            require_newest(table, [file.path for file in listed], now, self.files)

    def require_own_folder(self, table: Table, listed: Iterable[StoredFile]) -> None:
        """Raises LogCorrupt if the topic's folder is not its alone."""
        require_own_folder(self.catalog, table, (file.path for file in listed))

    def _is_location_of(self, location: str) -> bool:
        """Whether a topic that an older keptlog made meanwhile has got the folder; its purge sweeps what is left."""
        table = loaded_if_there(self.catalog, NAMESPACE, self.name)
        return table is not None and comparable(table.location()) == comparable(location)


@dataclass
class _Emptying:
    """Deletes all that lies in the folder of a topic, but for its current metadata, and seals what was said of it."""

    deletion: Deletion
    table: Table
    is_another: bool = False
    """Whether somebody else has finished the deletion, so that the folder may be that of a new topic."""
    _gone: dict[str, DeletedFile] = field(default_factory=dict)
    _receipts: dict[str, None] = field(default_factory=dict)
    _sealing: Sealing = field(default_factory=Sealing)

    def empty(self) -> TopicDeletion:
        """Delete, look again, leave receipts, seal them; once more if something was staged meanwhile."""
        for _ in range(_MOST_ROUNDS):
            removal = self._planned()
            if removal is None:
                return self._so_far((), is_over=True)
            self._carry_out(removal)
            left = removal.not_deleted + self._sealing.not_deleted
            if left or (self._sealing.waiting and self.deletion.seal):
                return self._so_far(left, is_over=False)
        return self._so_far((), is_over=False)

    def _planned(self) -> Removal | None:
        """What is to be carried out, with a journal of what no deletion's names yet; null if nothing is left to do."""
        files, location = self.deletion.files, self.table.location()
        # Read before it is listed: whoever has deleted manifests meanwhile has left his journal before, or all is gone.
        references, unread = self._references
        ending = self._ending
        listed = list(files.list(location))
        # Looked at again once it was listed: as long as it stands there, no topic of its name gets the folder. If
        # another call has finished the deletion, a new topic may have got it, and be what was listed.
        again = deleting(self.deletion.catalog, self.deletion.name)
        if again is None or again.metadata.table_uuid != self.table.metadata.table_uuid:
            self.is_another = True
            return None
        self.deletion.require_own_folder(self.table, listed)
        sizes = {file.path: file.size_bytes for file in listed}
        own_id = str(self.table.metadata.table_uuid)
        journals, _ = read_own_journals(files, location, sizes, own_id, self.deletion.sealed)
        drafts = drafts_among(location, sizes)
        own = own_deletions(journals, own_id)
        before = ending.look(own, drafts, self.deletion.sealed, is_chain_asked=bool(unread))
        removal = Removal(files, location, ending.set_right(journals), again=_AGAIN.format(topic=self.deletion.name))
        own = own_deletions(removal.journals, own_id)
        kept = comparable_forms([self.table.metadata_location, *removal.journals, *drafts])
        # What is hidden is no journal and no draft any more.
        hidden = hidden_below(files, location)
        there = sizes | {each.path: each.size_bytes for each in (*hidden.files, *lost_links_below(location))}
        outside = removal.elsewhere(references.data_bytes | references.metadata_bytes | removal.named_by(_is_purge))
        there |= outside
        # What purges have left is in a deletion's journal from now on, before theirs go: nobody else would name it.
        known = {*comparable_forms(removal.named_by(_is_deletion)).values(), *kept.values()}
        forms = comparable_forms(there)
        new = {path: size for path, size in there.items() if forms[path] not in known}
        if any(file.path not in sizes for file in files.list(journal_folder(location))):
            # Another call has begun in between, and may have deleted what was not listed any more.
            return self._planned()
        # Also of a topic without records. What an earlier topic has left in the folder tells nothing of this one.
        if new or not (own or before.is_any or self.table.metadata.snapshots):
            snapshots = tuple(sorted(each.snapshot_id for each in self.table.metadata.snapshots))
            named = NamedFiles(files).of(new, removal.ranges | references.ranges)
            path = self._path_of_journal(new)
            # An earlier journal or receipt says it, and may have deleted manifests.
            unread = () if own or before.is_any else unread
            erasures = ending.of_new(own)
            if erasures is None:
                what = "no receipt tells which erasures end with it"
                _logger.warning("topic %s: %s: %s", self.deletion.name, what, ending.why_unread)
            removal.journals[path] = Journal(snapshots, (), named, DELETION, unread, erasures, own_id)
            write_journal(files, path, removal.journals[path])
        if removal.journals or (drafts and self.deletion.seal):
            return removal
        if hidden.unread:
            # Once the topic is forgotten, nobody looks into its folder any more.
            why = f"{hidden.unread[0]}; delete it again"
            raise StorageUnavailable(f"topic {self.deletion.name} can't be forgotten: {why}")
        return None

    def _path_of_journal(self, new: Collection[str]) -> str:
        """Two calls at once that find the same write the same journal, and so each file is in one receipt."""
        told = "\n".join([str(self.table.metadata.table_uuid), *sorted(new)])
        names = hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()
        return f"{journal_folder(self.table.location())}{DELETION_NAME}{names[:32]}.json"

    @cached_property
    def _references(self) -> tuple[References, tuple[str, ...]]:
        """What the manifests tell of the segments, and what of them can't be read: a topic is deleted without."""
        return readable_references(self.table)

    @cached_property
    def _ending(self) -> Ending:
        files, own_id = self.deletion.files, str(self.table.metadata.table_uuid)
        read = ended_erasures(files, self.table)
        return Ending(files, self.table.location(), own_id, *read, counted_open(self.table))

    def _carry_out(self, removal: Removal) -> None:
        doomed = removal.own(_is_deletion, ())
        removal.delete(doomed.values())
        listed = [file.path for file in removal.look_again(doomed.values())]
        # Of the journals of purges only what they had deleted before: the rest is in the deletion's own.
        doomed |= removal.own(_is_purge, removal.left_of(removal.named_by(_is_purge)))
        if any(journal.paths for journal in doomed.values()):
            removal.files.make_deletions_durable(removal.location)
        drafts: list[str] = []

        def leave_receipt(path: str, gone: Journal) -> None:
            is_told = gone.paths or not removal.journals[path].paths
            if has_receipt(gone) or (_is_deletion(gone) and is_told):
                drafts.append(self._write_draft(id_of(path), gone, removal))

        done = removal.settle(doomed, leave_receipt)
        self._gone |= {file.path: file for journal in done.values() for file in journal.segments + journal.metadata}
        found = drafts_among(removal.location, [*drafts, *listed])
        given_up_at_ms = dict.fromkeys(found, self.deletion.done_ms(self.deletion.now_ms))
        self._sealing = seal_drafts(removal.files, self.deletion.name, found, self.deletion.seal, given_up_at_ms)

    def _write_draft(self, draft_id: str, gone: Journal, removal: Removal) -> str:
        more: dict[str, Any] = {"not_deleted": [file.told for file in removal.not_deleted], "held_files": None}
        if _is_deletion(gone):
            more |= told_of_deletion(gone) | {"deleted_after_sealing": [self.table.metadata_location]}
        more["not_looked_at"] = [*gone.not_looked_at, *removal.hidden.not_looked_at, *removal.hidden.unread]
        content = content_of(self.deletion.name, str(self.table.metadata.table_uuid), gone, **more)
        kind = DELETION if _is_deletion(gone) else PURGE
        location = self.table.location()
        done = done_draft(draft_id, kind, content, self.deletion.now_ms, self.deletion.done_ms)
        write_draft(self.deletion.files, location, done)
        self._ending.note(done)
        self._receipts[draft_id] = None
        return f"{receipt_folder(location)}{draft_id}.json"

    def _so_far(self, left: tuple[NotDeleted, ...], *, is_over: bool) -> TopicDeletion:
        gone, receipts = tuple(self._gone.values()), tuple(self._receipts)
        return TopicDeletion(self.deletion.name, gone, left, receipts, self._sealing, is_over, self._ending.ended)


def _is_deletion(journal: Journal) -> bool:
    return journal.kind == DELETION


def _is_purge(journal: Journal) -> bool:
    return not _is_deletion(journal)
