"""What a purge of a topic would delete now, by the rules of ``purge`` and without changing anything.

The storage is listed before the table is looked at, as a purge does it; so what is committed meanwhile is not taken for
an orphan. What a bucket hides, and what earlier purges could not delete, is counted with the orphans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.table import Table

from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.units import size
from keptlog.table.metadata.lineage import require_own
from keptlog.table.metadata.metadata_reading import looked_at
from keptlog.table.metadata.references import (
    Manifests,
    References,
    by_comparable_form,
    comparable_forms,
    live_references,
    named_references,
    references_of,
)
from keptlog.table.removal.expiry import expiry_of, replaced_before
from keptlog.table.removal.hidden import hidden_below
from keptlog.table.removal.journal import DELETION, read_journals
from keptlog.table.removal.own_folder import require_own_folder
from keptlog.table.removal.ref_retention import EndedRef, ended_refs
from keptlog.table.removal.refusal import require_live_files
from keptlog.table.removal.removal import Removal
from keptlog.table.removal.spared import spared_references
from keptlog.table.removal.topic_storage import Storage
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.table.store import LogStore

_NAMED = 10


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """Of one topic: how much would be gone. A file that is counted may be spared, if a commit comes first."""

    topic: str
    snapshots: int
    files: int
    """Of snapshots that would expire, and of journals that earlier purges have left."""
    segments: int
    """Of these: the others are manifests and manifest lists."""
    orphans: int
    bytes: int
    elsewhere: int = 0
    """Replaced segments outside of the topic's folder: no purge deletes these."""
    not_looked_at: tuple[str, ...] = ()
    """What the storage did not tell, in one line each: what lies there is not counted."""
    refs: tuple[EndedRef, ...] = ()
    """Tags and branches that would be dropped."""
    is_whole: bool = True
    """Whether all was counted that the storage ever tells; if not, a purge may be told of more."""

    @property
    def deletes_anything(self) -> bool:
        return bool(self.snapshots or self.files or self.orphans or self.refs)

    def __str__(self) -> str:
        if not self.deletes_anything:
            nothing = "nothing to purge was seen" if self.not_looked_at else "nothing to purge"
            return f"{self.topic}: {nothing}{self._left}"
        dropped = f"{some_of([str(each) for each in self.refs], _NAMED)} would be dropped" if self.refs else ""
        if not (self.snapshots or self.files or self.orphans):
            return f"{self.topic}: {dropped}{self._left}"
        files = f"{counted(self.files, 'replaced file')}, {counted(self.segments, 'segment')} among them, "
        files += f"and {counted(self.orphans, 'orphan')} ({size(self.bytes)})"
        files += f" would be deleted for good{self._left}"
        return f"{self.topic}: {dropped and dropped + '; '}{counted(self.snapshots, 'snapshot')} would expire, {files}"

    @property
    def _left(self) -> str:
        elsewhere, unseen = "", "".join(f"; not looked at: {what}" for what in self.not_looked_at)
        if self.elsewhere:
            files = counted(self.elsewhere, "replaced file")
            elsewhere = f"; {files} outside of its folder would be left, and the purge says what to do about each"
        return f"{elsewhere}{unseen}"


def preview_purge(store: LogStore, topic: str, now_ms: int, orphan_grace_ms: int) -> PurgePreview:
    """What ``LogStore.purge`` would delete of a topic with the same arguments.

    Raises:
        LogCorrupt, InvalidConfig: what a purge would refuse too: another program has changed the table, the storage
            knows more than the catalog, a snapshot can't be read, a live file is not there, the folder is not the
            topic's own, the clock is not plausible.
        UnknownTopic, StorageUnavailable: as from a purge.
    """
    delay_ms = store.describe_topic(topic).config.file_delete_delay_ms
    store.clock_guard.require_plausible(now_ms, store.load_table(topic))
    storage: Storage

    def load_listed() -> Table:
        nonlocal storage
        location = store.load_table(topic).location()
        listed = list(store.files.list(location))
        storage = Storage.of(location, listed, hidden_below(store.files, location))
        return store.load_table(topic)

    def look(table: Table) -> PurgePreview:
        paths = [file.path for file in storage.files.values()]
        require_own_folder(store.committer.catalog, table, paths)
        manifests = Manifests(topic, table.io)
        require_live_files(table, storage, manifests, store.files, lambda: store.load_table(topic))
        found = _preview(table, store, storage, manifests, (now_ms - delay_ms, now_ms - orphan_grace_ms, now_ms))
        if found.snapshots or found.orphans or found.refs:
            require_own(table)  # as the commits are that a purge needs for these
        return found

    with reaching(f"topic {topic} can't be looked through"):
        return looked_at(load_listed, look)


def _preview(
    table: Table, store: LogStore, storage: Storage, manifests: Manifests, moments_ms: tuple[int, int, int]
) -> PurgePreview:
    """``moments_ms``: what was replaced before the first goes, and orphans from before the second; the third is now."""
    replaced_ms, orphan_ms, now_ms = moments_ms
    listed = [file.path for file in storage.files.values()]
    expired = replaced_before(table, replaced_ms, now_ms)
    ids = {snapshot.snapshot_id for snapshot in expired}
    needed = references_of([each for each in table.metadata.snapshots if each.snapshot_id not in ids], manifests)
    needed.add(live_references(table, manifests))
    needed.add(named_references(table))
    spared = spared_references(table, listed, manifests, store.files, lambda: store.load_table(table.name()[-1]))
    of_expired = expiry_of(table, expired, manifests).files if expired else References()
    # The metadata file names the manifest lists of expired snapshots too.
    kept = (needed.keys() - of_expired.keys()) | spared.keys()
    found, _ = read_journals(store.files, storage.location, listed)
    journals = {path: each for path, each in found.items() if each.kind != DELETION}  # nothing goes by those
    left = [file.path for journal in journals.values() for file in journal.segments]
    replaced = comparable_forms([*of_expired.data_bytes, *left])
    unneeded = {path: 0 for path, form in replaced.items() if form not in kept}
    of_journals = comparable_forms(path for journal in journals.values() for path in journal.paths)
    goes = of_expired.keys() | set(of_journals.values())
    there = by_comparable_form(storage.hidden.files) | dict(storage.files)
    needless = {form: file for form, file in there.items() if form not in kept and not storage.is_own(file)}
    of_snapshots = {form: file for form, file in needless.items() if form in goes}
    orphans = [file for form, file in needless.items() if form not in goes and file.modified_ms <= orphan_ms]
    return PurgePreview(
        topic=table.name()[-1],
        snapshots=len(expired),
        files=len(of_snapshots),
        segments=len(of_snapshots.keys() & set(replaced.values())),
        orphans=len(orphans),
        bytes=sum(file.size_bytes for file in [*of_snapshots.values(), *orphans]),
        elsewhere=len(Removal(store.files, storage.location).elsewhere(unneeded)),
        not_looked_at=(*storage.hidden.not_looked_at, *storage.hidden.unread),
        refs=ended_refs(table, now_ms),
        is_whole=not storage.hidden.unread,
    )
