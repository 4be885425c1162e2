"""Whether a purge of a topic has anything to do, told without reading a manifest; and from when on there may be.

    all that is listed   is named by the table's metadata, or by the manifest list, or is keptlog's own,
                         or is data: as many files and bytes as the manifest list and the snapshot count
    no snapshot          was replaced long enough ago
    no tag, no branch    has a retention of its own that is over
    nothing              waits: no journal, no draft, nothing hidden, no file of erasures that was replaced, nothing
                         remembered for too long, no key to be erased

Then nothing is to be deleted, and nothing is looked at any further. In all other cases the purge looks at everything:
here nobody decides what goes. If one file is lost and another of its size is an orphan, that counts as quiet; where a
live file is lost a purge would delete nothing either, and who looks for lost files is the verification.

What a purge has left behind stays so until somebody commits, or until the clock reaches one of the times that ``until``
takes the first of. But a writer that is killed leaves files, and commits nothing. So the storage is listed again after
``LISTED_AGAIN_MS``, or after the grace if that is shorter: no orphan is swept later than it would be without all this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table

from keptlog.errors import LogCorrupt
from keptlog.log.broker import BrokerConfig
from keptlog.storage.files import StoredFile
from keptlog.table.metadata.history import outdated_from_ms
from keptlog.table.metadata.lineage import summary_of
from keptlog.table.metadata.references import Manifests, comparable_forms, named_references
from keptlog.table.metadata.runs import remembered_ms
from keptlog.table.metadata.state import read_open_erasures, watermarks_paths
from keptlog.table.purging.clock_guard import ClockGuard
from keptlog.table.purging.sweep import left_registers
from keptlog.table.removal.expiry import replaced_at_ms, replaced_before
from keptlog.table.removal.journal import receipt_folder
from keptlog.table.removal.ref_retention import ended_refs, kept_snapshots, kept_until_ms
from keptlog.table.removal.topic_storage import Storage

LISTED_AGAIN_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Quiet:
    """Of a topic: as long as its metadata lies there, nothing is to be purged before a time."""

    location: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class PurgeTimes:
    """When what goes; all ms."""

    now_ms: int
    delete_delay_ms: int
    orphan_grace_ms: int
    run_memory_ms: int
    history_ms: int
    done_ms: Callable[[int], int] = lambda as_of_ms: as_of_ms
    """When what a receipt tells was done: ``ClockGuard.done_ms``."""
    watermarks_ms: int | None = None
    """When the next watermark is past its time; null if there is none."""

    @classmethod
    def of(cls, guard: ClockGuard, now_ms: int, delete_delay_ms: int, orphan_grace_ms: int) -> PurgeTimes:
        """With what a broker's settings say."""
        broker = BrokerConfig.of(guard.broker_settings)
        memory_ms, history_ms = broker.producer_id_expiration_ms, broker.keptlog_history_retention_ms
        return cls(now_ms, delete_delay_ms, orphan_grace_ms, memory_ms, history_ms, guard.done_ms)

    def has_nothing_to_do(self, table: Table, storage: Storage, manifests: Manifests) -> bool:
        """Whether a purge of a table would delete nothing; the storage was listed after the table was loaded.

        Raises:
            LogCorrupt: the manifest list of the current snapshot can't be read.
        """
        if storage.waits or storage.hidden.files or ended_refs(table, self.now_ms):
            return False
        if replaced_before(table, self.now_ms - self.delete_delay_ms, self.now_ms):
            return False
        if has_open_erasures(table):
            return False
        if left_registers(table, storage.files) or any(due_ms <= self.now_ms for due_ms in self._own_due_ms(storage)):
            return False
        return _is_accounted_for(table, storage, manifests)

    def quiet(self, table: Table, storage: Storage, needed: Collection[str]) -> Quiet | None:
        """For how long a table stays as a purge has left it; null if something is left to do now.

        ``needed`` is in comparable form what is referred to.
        """
        left = [file for form, file in storage.files.items() if form not in needed and not storage.is_own(file)]
        # What of keptlog's own was due has gone just now.
        due_ms = [each_ms for each_ms in self._own_due_ms(storage) if each_ms > self.now_ms]
        due_ms.append(self.now_ms + min(LISTED_AGAIN_MS, self.orphan_grace_ms))
        due_ms += [] if self.watermarks_ms is None else [self.watermarks_ms]
        due_ms += [file.modified_ms + self.orphan_grace_ms for file in (*left, *storage.hidden.files)]
        due_ms += [until_ms + 1 for until_ms in kept_until_ms(table).values()]
        protected = kept_snapshots(table, self.now_ms)
        replaced = replaced_at_ms(table).items()
        due_ms += [at_ms + self.delete_delay_ms for number, at_ms in replaced if number not in protected]
        until_ms, waits = min(due_ms), storage.waits or storage.hidden.unread
        return Quiet(table.metadata_location, until_ms) if until_ms > self.now_ms and not waits else None

    def _own_due_ms(self, storage: Storage) -> Iterator[int]:
        """When what keptlog itself keeps for a while goes."""
        for file in storage.files.values():
            written_ms = remembered_ms(file.path, storage.location)
            if written_ms is not None:
                yield written_ms + self.run_memory_ms + 1
            outdated_ms = outdated_from_ms(file.path, storage.location, self.history_ms)
            if outdated_ms is not None:
                yield outdated_ms
        own = receipt_folder(storage.location)
        yield from (
            each.since_ms + self.orphan_grace_ms for each in storage.hidden.replaced if each.path.startswith(own)
        )


def has_open_erasures(table: Table) -> bool:
    """Whether keys are to be erased: then each file is looked through, and one that can't be is in the way."""
    try:
        return bool(read_open_erasures(table.name()[-1], table.properties).count)
    except LogCorrupt:
        return True


def _is_accounted_for(table: Table, storage: Storage, manifests: Manifests) -> bool:
    """Whether all that is listed is known, but for as much data as there is to be."""
    current = table.current_snapshot()
    listed = manifests.of(current) if current else []
    if any(each.content is ManifestContent.DELETES for each in listed):
        return False
    named = {table.metadata_location, *named_references(table).metadata_bytes, *watermarks_paths(table.properties)}
    known = set(comparable_forms([*named, *(each.manifest_path for each in listed)]).values())
    data = [file for form, file in storage.files.items() if form not in known and not storage.is_own(file)]
    if any(file.path.startswith(f"{storage.location}/metadata/") for file in data):
        return False
    count = sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in listed)
    told_bytes = _told_bytes(table)
    return len(data) == count and told_bytes in {None, _bytes_of(data)}


def _told_bytes(table: Table) -> int | None:
    """How many bytes the current snapshot says that its data has; null if it does not say."""
    current = table.current_snapshot()
    text = summary_of(current).get("total-files-size", "") if current else ""
    return int(text) if text.isdecimal() else None


def _bytes_of(files: Iterable[StoredFile]) -> int:
    return sum(file.size_bytes for file in files)
