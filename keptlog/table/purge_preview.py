"""What a purge of a topic would delete now, by the rules of ``purge`` and without changing anything.

The storage is listed before the table is looked at, as a purge does it; so what is committed meanwhile is not taken for
an orphan. What a bucket hides, and what earlier purges could not delete, is counted with the orphans.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table import Table

from keptlog.log.counted import counted
from keptlog.log.units import size
from keptlog.storage.files import StoredFile
from keptlog.table.ahead import spared_references
from keptlog.table.expiry import expiry_of, replaced_before
from keptlog.table.files import TableFiles
from keptlog.table.hidden import HiddenFiles, hidden_below
from keptlog.table.journal import read_journals
from keptlog.table.metadata_reading import looked_at
from keptlog.table.quiet import Storage
from keptlog.table.reaching import reaching
from keptlog.table.references import Manifests, comparable_forms, live_references, named_references, references_of
from keptlog.table.store import LogStore


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """Of one topic: how much would be gone. A file that is counted may be spared, if a commit comes first."""

    topic: str
    snapshots: int
    files: int
    """Of snapshots that would expire, and of journals that earlier purges have left."""
    orphans: int
    bytes: int

    @property
    def deletes_anything(self) -> bool:
        return bool(self.snapshots or self.files or self.orphans)

    def __str__(self) -> str:
        if not self.deletes_anything:
            return f"{self.topic}: nothing to purge"
        files = f"{counted(self.files, 'replaced file')} and {counted(self.orphans, 'orphan')} ({size(self.bytes)})"
        return f"{self.topic}: {counted(self.snapshots, 'snapshot')} would expire, {files} would be deleted for good"


def preview_purge(store: LogStore, topic: str, now_ms: int, orphan_grace_ms: int) -> PurgePreview:
    """What ``LogStore.purge`` would delete of a topic with the same arguments.

    Raises:
        LogCorrupt: a purge would refuse, too: the storage knows more than the catalog, or a snapshot can't be read.
        UnknownTopic, StorageUnavailable: as from a purge.
    """
    delay_ms = store.describe_topic(topic).config.file_delete_delay_ms
    listed: list[StoredFile] = []
    hidden = HiddenFiles()

    def load_listed() -> Table:
        nonlocal listed, hidden
        location = store.load_table(topic).location()
        listed = list(store.files.list(location))
        hidden = hidden_below(store.files, location)
        return store.load_table(topic)

    def look(table: Table) -> PurgePreview:
        return _preview(table, store.files, (listed, hidden), (now_ms - delay_ms, now_ms - orphan_grace_ms))

    with reaching(f"topic {topic} can't be looked through"):
        return looked_at(load_listed, look)


def _preview(
    table: Table, files: TableFiles, found: tuple[list[StoredFile], HiddenFiles], moments_ms: tuple[int, int]
) -> PurgePreview:
    """``moments_ms``: what was replaced before the first goes, and orphans from before the second."""
    topic, location = table.name()[-1], table.location()
    (listed, hidden), (replaced_ms, orphan_ms) = found, moments_ms
    forms = comparable_forms(file.path for file in [*listed, *hidden.files])
    storage = Storage(location, {forms[file.path]: file for file in listed}, hidden)
    manifests = Manifests(topic, table.io)
    expired = replaced_before(table, replaced_ms)
    ids = {snapshot.snapshot_id for snapshot in expired}
    needed = references_of([each for each in table.metadata.snapshots if each.snapshot_id not in ids], manifests)
    needed.add(live_references(table, manifests))
    needed.add(named_references(table))
    needed.add(spared_references(table, [file.path for file in listed], manifests))
    goes = expiry_of(table, expired, manifests).files.keys() if expired else set()
    # The metadata file names the manifest lists of expired snapshots too.
    kept = needed.keys() - goes
    journals, _ = read_journals(files, location, [file.path for file in listed])
    goes |= set(comparable_forms(path for journal in journals.values() for path in journal.paths).values())
    there = {forms[file.path]: file for file in [*hidden.files, *listed]}
    needless = {form: file for form, file in there.items() if form not in kept and not storage.is_own(file)}
    of_snapshots = [file for form, file in needless.items() if form in goes]
    orphans = [file for form, file in needless.items() if form not in goes and file.modified_ms <= orphan_ms]
    size_bytes = sum(file.size_bytes for file in [*of_snapshots, *orphans])
    return PurgePreview(topic, len(expired), len(of_snapshots), len(orphans), size_bytes)
