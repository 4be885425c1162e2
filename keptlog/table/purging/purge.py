"""Deletes from storage what no reader may need any longer.

A clean only replaces segments; the old ones stay readable through the snapshots before it. A purge ends that.
Mostly there is nothing to do, and that is told without reading much (``quiet``). Else:

1. **Compare** storage and catalog. Where the storage knows more (``ahead``), or a live file is not there, nothing is
   deleted: what looks unneeded from here may be somebody else's, or the only way back.
2. **Expire** the snapshots that were replaced ``file.delete.delay.ms`` ago (``expiry``). What counts is when a snapshot
   ceased to be the current one, not when it was made: that is from when on nobody begins to read it. A tag or a branch
   whose retention is over keeps none (``ref_retention``), and goes in the same commit.
3. **Delete** the segments, manifests and manifest lists that only those snapshots had.
4. **Sweep** what crashes and refused commits left behind (``sweep``): files that nothing refers to, older than a grace
   time, so that the staged files of a run that is still under way are spared.
5. **Look again** what is gone, and leave receipts of that: what, when, and what else still holds values (``held``).
   What could not be deleted is named with the reason, and tried again by the next purge (``removal``).
   What a bucket keeps of deleted files, and uploads that were never completed, are swept like orphans (``hidden``).
6. **Seal** the receipts (``drafts``).

Before all that, watermarks that are past their time leave the table (``watermark_expiry``).

The complication is a kill in between. What steps 3 and 4 will delete is therefore written to a journal before, that of
step 3 before step 2 commits, and every purge begins with the journals that it finds: deletes what they name and nothing
refers to, if anything. A journal whose commit never landed names only files that are referred to, and so deletes none.
One that can't be read costs only itself: its files are orphans then. Not each journal is the topic's own, and none of a
topic's deletion deletes anything here (``own_journals``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from pyiceberg.table import Table

from keptlog.errors import LogCorrupt, StalePlan, first_line
from keptlog.log.holder import Holdings, Terms
from keptlog.storage.files import StoredFile
from keptlog.storage.leftover import discard
from keptlog.table.chain.sealed_deletions import SealedDeletions
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.loading import load_same_topic
from keptlog.table.commits.taken_back import taken_back_if_gone
from keptlog.table.commits.topics import Topic
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.metadata_reading import LOOKS
from keptlog.table.metadata.references import (
    Manifests,
    all_references,
    by_comparable_form,
    comparable_forms,
    live_references,
    named_references,
)
from keptlog.table.metadata.state import read_condemned
from keptlog.table.metadata.without_snapshot import commit_without_snapshot, removal_of, require_same_refs
from keptlog.table.purging import expired
from keptlog.table.purging.purge_receipt import Account, PurgeReceipt, telling_dropped
from keptlog.table.purging.quiet import PurgeTimes
from keptlog.table.purging.sweep import PURGE_AGAIN, Fence, left_registers, may_still_land, newest_list_of
from keptlog.table.removal.drafts import (
    PURGE,
    Seal,
    content_of,
    done_draft,
    given_up_drafts,
    has_receipt,
    seal_drafts,
    told_of_deletion,
    write_draft,
)
from keptlog.table.removal.expiry import EXPIRED_AT_ONCE, Expiry, expiry_of, replaced_before
from keptlog.table.removal.held import FoundThere, HeldFile, held_files, held_now
from keptlog.table.removal.hidden import HiddenFiles, hidden_below
from keptlog.table.removal.journal import (
    DELETION,
    Journal,
    id_of,
    is_sweep,
    journal_folder,
    receipt_folder,
    write_journal,
)
from keptlog.table.removal.named_files import NamedFiles
from keptlog.table.removal.own_folder import require_own_folder
from keptlog.table.removal.own_journals import for_purge, read_own_journals, set_aside, set_taken_back_aside
from keptlog.table.removal.ref_retention import EndedRef, ended_refs
from keptlog.table.removal.refusal import require_live_files
from keptlog.table.removal.removal import Removal
from keptlog.table.removal.spared import Spared, spared_references, told_by_keeper
from keptlog.table.removal.topic_storage import Storage, drafts_among, without_let_go

_logger = logging.getLogger(__name__)


@dataclass
class Purge:
    """One purge of one topic."""

    topic: Topic
    first_look: Table
    """The topic's table as it was before its storage was listed."""
    committer: Committer
    files: TableFiles
    new_id: Callable[[], str]
    times: PurgeTimes
    seal: Seal | None = None
    """Takes the receipts into their chain; without one they stay as drafts."""
    _stored: dict[str, StoredFile] = field(default_factory=dict)
    """All files below the table's location, as they were before the table was looked at, by comparable path."""
    _hidden: HiddenFiles = field(default_factory=HiddenFiles)
    """What is there besides, and not listed."""
    _spared: Spared = field(default_factory=Spared)
    """What another catalog may need; somebody may move that away at any time, and then it goes."""
    _receipts: dict[str, str] = field(default_factory=dict)
    """Id to path of the drafts that were written."""
    _unreadable: dict[str, None] = field(default_factory=dict)
    _dropped: dict[EndedRef, bool] = field(default_factory=dict)  # whether it surely is
    _looked_at: str = ""  # where the table's metadata was at the last look

    def purge(self) -> PurgeReceipt:
        """Finish what was begun, expire, delete, sweep.

        Raises:
            LogCorrupt: storage knows more than the catalog, a file is not there, or is another table's; says which.
            StalePlan: another purge was faster, or the topic was created anew; this one has deleted nothing more.
            KeptlogError: from the commit; the next purge finishes the work.
        """
        try:
            taken_back = taken_back_if_gone(self.committer.catalog, self.files, self.first_look)
            with telling_dropped(self.topic.name, self._dropped), taken_back as self.files:
                return self._purge()
        except LogCorrupt as error:
            looked_at = self._looked_at or self.first_look.metadata_location
            if not isinstance(error.__cause__, FileNotFoundError) or self._table().metadata_location == looked_at:
                raise
            what = f"topic {self.topic.name}: another purge was faster, and this one has deleted nothing more"
            raise StalePlan(f"{what} ({first_line(error)}); nothing is lost, purge again") from error

    def _purge(self) -> PurgeReceipt:
        # Listed before the table is looked at: whatever is committed later is not in the list, and safe.
        listed = list(self.files.list(self.topic.location))
        paths = [file.path for file in listed]
        require_own_folder(self.committer.catalog, self.first_look, paths)
        self._stored = by_comparable_form(listed)
        self._hidden = hidden_below(self.files, self.topic.location)
        if self.times.has_nothing_to_do(self.first_look, self._storage, self._manifests):
            told = (*self._hidden.not_looked_at, *self._hidden.unread)
            quiet = self.times.quiet(self.first_look, self._storage, self._stored)
            return PurgeReceipt(self.topic.name, (), (), (), (), not_looked_at=told, quiet=quiet)
        table = self._table()
        self._spared = spared_references(table, paths, self._manifests, self.files, self._table)
        require_live_files(table, self._storage, self._manifests, self.files, self._table)
        self._read_journals(table)
        left_behind = set(self._removal.journals)
        while self._expire_some():
            pass
        before, table = table, self._table()
        self._stored = without_let_go(self._stored, self.files, (self.first_look, before), table)
        self._delete(expired.outdated(self.files, table, self.times))
        discard(self.files, left_registers(table, self._stored, self._spared.keys()))
        needed = self._needed(table, left_behind)
        doomed = self._removal.own(lambda journal: not is_sweep(journal), needed)
        self._removal.delete(each for each in doomed.values() if each.kind != DELETION)
        doomed |= self._sweep(table, needed)
        return self._account_for(doomed, needed)

    @cached_property
    def _removal(self) -> Removal:
        return Removal(self.files, self.topic.location, keeper_of=self._spared.keeper_of)  # known by then

    @cached_property
    def _named_files(self) -> NamedFiles:
        return NamedFiles(self.files)

    def _table(self) -> Table:
        table = load_same_topic(self.committer.catalog, self.topic.name, self.topic.id)
        self._looked_at = table.metadata_location
        return table

    @cached_property
    def _manifests(self) -> Manifests:
        return Manifests(self.topic.name, self.first_look.io)

    @property
    def _storage(self) -> Storage:
        return Storage(self.topic.location, self._stored, self._hidden)

    @property
    def _fence(self) -> Fence:
        return Fence(self.topic, self.committer, self.files, self.new_id)

    def _read_journals(self, table: Table) -> None:
        """Journals of purges that were killed, or are still under way; carrying those out too does no harm."""
        condemned = read_condemned(self.topic.name, table.properties)
        by_path = {file.path: file for file in self._stored.values()}
        sealed = SealedDeletions(self.committer.catalog)
        found, unreadable = read_own_journals(self.files, self.topic.location, by_path, self.topic.id, sealed)
        there = self._stored.keys() | self._hidden_files().keys()
        self._removal.journals, taken_back = for_purge(found, self.topic.id, there)
        for path in taken_back:
            set_taken_back_aside(self._removal, self._stored, path, found[path], self.new_id())
        for path, why in unreadable.items():
            self._pass_over(why)
            # A young one may still be under way to the disk; one that is condemned was written to its end.
            if self._is_old(by_path[path]) or path.rpartition("/")[2] in condemned:
                set_aside(self._removal, self._stored, path)
        for path in self._removal.journals:
            _logger.info("topic %s: journal %s of an earlier purge is carried out", self.topic.name, path)

    def _delete(self, paths: Iterable[str]) -> None:
        """Delete what is keptlog's own and counts no more; what can't be deleted is told, and keeps nothing else."""
        for path in paths:
            self._removal.delete_or_tell(path)

    def _pass_over(self, what: str) -> None:
        if what not in self._unreadable:
            _logger.warning("%s", what)
        self._unreadable[what] = None

    def _expire_some(self) -> bool:
        """Expire the oldest snapshots that are due, and tags and branches that have ended; gives if there may be more.

        Each attempt looks anew, but reads only what came since. One that was refused, or got no answer, leaves its
        journal to the next, which takes it over: the same files are in one receipt, once.
        """
        moment_ms = self.times.now_ms - self.times.delete_delay_ms
        written: tuple[str, Journal] | None = None
        count = 0

        def prepare(table: Table) -> Land | None:
            nonlocal written, count
            self._looked_at = table.metadata_location
            old = replaced_before(table, moment_ms, self.times.now_ms)[:EXPIRED_AT_ONCE]
            count = len(old)
            expiry = replace(expiry_of(table, old, self._manifests), refs=ended_refs(table, self.times.now_ms))
            if not old:
                return (lambda: self._land(table, expiry)) if expiry.refs else None
            for what in expiry.unreadable:
                self._pass_over(what)
            written = self._write_expiry(expiry, written)
            self._delete(expired.remember(self.files, table, old, self.new_id(), self.times.now_ms))
            return lambda: self._land(table, expiry)

        self.committer.commit(Change(self.topic.name, self.topic.id, remedy=PURGE_AGAIN), prepare)
        return count == EXPIRED_AT_ONCE

    def _write_expiry(self, expiry: Expiry, written: tuple[str, Journal] | None) -> tuple[str, Journal]:
        files, named = expiry.files, self._named_files
        metadata_bytes = self._storage.with_listed_bytes(files.metadata_bytes)
        segments, metadata = named.of(files.data_bytes, files.ranges), named.of(metadata_bytes, files.ranges)
        journal = Journal(expiry.snapshot_ids, segments, metadata, table_uuid=self.topic.id)
        if written:
            journal = written[1].and_of(journal)
            if journal == written[1]:
                return written
        write_journal(self.files, path := f"{journal_folder(self.topic.location)}{self.new_id()}.json", journal)
        self._removal.journals[path] = journal
        if written and self._removal.delete_or_tell(written[0]):
            del self._removal.journals[written[0]]
        return path, journal

    def _land(self, table: Table, expiry: Expiry) -> None:
        """Commit on exactly the snapshot that was looked at: a rollback meanwhile could have revived an expired one.

        So could a branch or a tag, and the commit would remove it. A server compares none of those, and all that came
        before took a while, so it is looked again; only what comes between that look and the commit is not seen.
        """
        updates = (*removal_of(table.metadata, expiry.snapshot_ids, expiry.ref_names), *self._fence.lifted(table))
        require_same_refs(table.metadata, self._table().metadata)
        self._dropped |= dict.fromkeys(expiry.refs, False)  # before: a commit that gets no answer may have landed
        commit_without_snapshot(self.committer.catalog, table, *updates)
        self._dropped |= dict.fromkeys(expiry.refs, True)

    def _needed(self, table: Table, left_behind: Collection[str]) -> set[str]:
        """What must stay, in comparable form; older snapshots are read only if something can't be told without."""
        told = live_references(table, self._manifests)
        told.add(named_references(table))
        needed = told.keys() | self._spared.keys_below(self.topic.location)
        present = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        journals = self._removal.journals.values()
        is_certain = not left_behind and all(present.isdisjoint(each.snapshots) for each in journals)
        known = needed | self._removal.named()
        there = self._stored | self._hidden_files()
        if is_certain and not any(self._may_go(file) for path, file in there.items() if path not in known):
            return needed
        return needed | all_references(table, self._manifests).keys()

    def _may_go(self, file: StoredFile) -> bool:
        """Whether it matters if a file is referred to: it would be swept, or may hold values."""
        return not self._storage.is_own(file) and (self._is_old(file) or not self._is_metadata(file))

    def _is_old(self, file: StoredFile) -> bool:
        return file.modified_ms <= self.times.now_ms - self.times.orphan_grace_ms

    def _is_metadata(self, file: StoredFile) -> bool:
        return file.path.startswith(f"{self.topic.location}/metadata/")

    def _hidden_files(self) -> dict[str, StoredFile]:
        """By comparable path."""
        return by_comparable_form(self._hidden.files)

    def _forget_replaced(self) -> None:
        """Of what keptlog writes again only the newest version stays; what was there before are positions and names."""
        moment_ms = self.times.now_ms - self.times.orphan_grace_ms
        own = receipt_folder(self.topic.location)
        old = [each for each in self._hidden.replaced if each.path.startswith(own) and each.since_ms <= moment_ms]
        for left in self.files.delete_versions(old):
            _logger.warning("topic %s: %s", self.topic.name, left)

    def _sweep(self, table: Table, needed: set[str]) -> dict[str, Journal]:
        """Delete orphans that are older than the grace, behind a fence if a commit of before could still land."""
        removal = self._removal
        left_behind = any(map(is_sweep, removal.journals.values()))
        named = removal.named()
        known = needed | named
        orphans = [file for path, file in self._stored.items() if path not in known and self._is_old(file)]
        orphans = [file for file in orphans if not self._storage.is_own(file)]
        hidden = [file for path, file in self._hidden_files().items() if path not in known and self._is_old(file)]
        if orphans or hidden:
            found = self._named_files.of({file.path: file.size_bytes for file in [*orphans, *hidden]})
            removal.journals |= self._fence.write_down(found)
        newest_list = newest_list_of(table, self._stored)
        if left_behind or any(may_still_land(file, self.topic.location, newest_list) for file in orphans):
            self._fence.condemn(path for path, journal in removal.journals.items() if is_sweep(journal))
            needed = all_references(self._table(), self._manifests).keys()
            needed |= self._spared.keys_below(self.topic.location)
        doomed = removal.own(is_sweep, needed)
        removal.delete(doomed.values())
        return doomed

    def _account_for(self, doomed: Mapping[str, Journal], needed: Collection[str]) -> PurgeReceipt:
        """Look what is gone, leave receipts of it, and drop the journals of which nothing is left."""
        if any(journal.paths for journal in doomed.values()):
            self._stored = by_comparable_form(self._removal.look_again(doomed.values()))
            self._hidden = self._removal.hidden
        self._forget_replaced()
        if any(map(has_receipt, doomed.values())):
            # Also what others have deleted: a receipt speaks of all files.
            self.files.make_deletions_durable(self.topic.location)
        holdings = self._held()
        carried_out = {file.path for file in self._removal.not_deleted} | self._removal.journals.keys()
        held = held_files(holdings, set(comparable_forms(carried_out).values()))
        not_looked_at = (*holdings.not_looked_at, *holdings.unread)
        table = self._table()
        there = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        doomed = {path: journal.without_snapshots(there) for path, journal in doomed.items()}

        def leave_receipt(path: str, gone: Journal) -> None:
            if has_receipt(gone) or gone.erasures:
                self._write_draft(id_of(path), gone, held, not_looked_at)

        done = self._removal.settle(doomed, leave_receipt)
        drafts = drafts_among(self.topic.location, [*self._receipts.values(), *(f.path for f in self._stored.values())])
        old = (file.path for file in self._stored.values() if self._is_old(file))
        given_up = given_up_drafts(
            self.topic.location, old, self._removal.journals, self.times.done_ms(self.times.now_ms)
        )
        sealing = seal_drafts(self.files, self.topic.name, drafts, self.seal, given_up)
        for what in sealing.unreadable:
            self._pass_over(what)
        receipts, unreadable = tuple(self._receipts), tuple(self._unreadable)
        left = self._removal.not_deleted + sealing.not_deleted
        done = {path: journal for path, journal in done.items() if journal.kind != DELETION}  # not deleted by a purge
        dropped = tuple(sorted((each for each in self._dropped if each.name not in table.metadata.refs), key=str))
        told = Account(done, left, receipts, sealing, held, unreadable, not_looked_at, dropped)
        if self._removal.journals or left or sealing.waiting or unreadable or self._spared.keepers:
            return told.receipt(self.topic.name)
        over = (*drafts, journal_folder(self.topic.location))
        self._stored = {path: file for path, file in self._stored.items() if not file.path.startswith(over)}
        return replace(told.receipt(self.topic.name), quiet=self.times.quiet(table, self._storage, needed))

    def _write_draft(
        self, draft_id: str, gone: Journal, held: Collection[HeldFile], not_looked_at: Collection[str]
    ) -> None:
        still, left = [asdict(file) for file in held], [file.told for file in self._removal.not_deleted]
        more = {"not_deleted": left, "held_files": still, "not_looked_at": list(not_looked_at)}
        if gone.kind == DELETION:
            # Of an earlier topic: what this one holds has nothing to do with it.
            more |= told_of_deletion(gone) | {"not_deleted": [], "not_looked_at": list(gone.not_looked_at)}
        content = content_of(self.topic.name, self.topic.id, gone, **more)
        kind = DELETION if gone.kind == DELETION else PURGE
        done = done_draft(draft_id, kind, content, self.times.now_ms, self.times.done_ms)
        write_draft(self.files, self.topic.location, done)
        self._receipts[draft_id] = f"{receipt_folder(self.topic.location)}{draft_id}.json"

    def _held(self) -> Holdings:
        """What G8 judges, but for what could not be deleted, which is told by itself."""
        terms = Terms(self.times.delete_delay_ms, orphan_grace_ms=self.times.orphan_grace_ms)
        there = FoundThere(self._stored, self._hidden)
        for _ in range(LOOKS):
            table = self._table()
            found = held_now(table, there, terms, self.times.now_ms, self._manifests)
            # Another purge may have deleted what could not be read; what the store does not list, no commit changes.
            unread = set(found.unread).difference(self._hidden.unread)
            if not unread or self._table().metadata_location == table.metadata_location:
                break
        return told_by_keeper(found, self._spared)
