"""Deletes from storage what no reader may need any longer.

A clean only replaces segments; the old ones stay readable through the snapshots before it. A purge ends that:

1. **Expire** the snapshots that were replaced ``file.delete.delay.ms`` ago. What counts is when a snapshot ceased to
   be the current one, not when it was made: that is from when on nobody begins to read it.
2. **Delete** the segments, manifests and manifest lists that only those snapshots had.
3. **Sweep** what crashes and refused commits left behind: files that nothing refers to, older than a grace time, so
   that the staged files of a run that is still under way are spared.

The complication is a kill in between. What step 2 will delete is therefore written to a journal before step 1 commits,
and every purge begins with the journals that it finds: deletes what they name and nothing refers to, if anything. A
journal whose commit never landed names only files that are referred to, and so deletes none.

For every journal that deleted segments a receipt is left, ``metadata/receipts/<id>.json``: what was deleted, and when.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemoveSnapshotsUpdate

from keptlog.log.counted import counted
from keptlog.storage.files import StoredFile
from keptlog.table.commit import Committer, Land, commit_without_snapshot
from keptlog.table.files import TableFiles
from keptlog.table.references import all_references, comparable, references_of
from keptlog.table.stored_json import from_json, is_json, to_json
from keptlog.table.topics import Topic, load_topic_table

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A file that is off the storage. ``bytes`` is 0 where the size was not known any more."""

    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """What a purge did, with what an earlier one, killed on its way, had left to do."""

    topic: str
    expired_snapshots: tuple[int, ...]
    deleted_files: tuple[DeletedFile, ...]
    """Retired segments."""
    deleted_metadata: tuple[DeletedFile, ...]
    """Manifests and manifest lists."""
    deleted_orphans: tuple[DeletedFile, ...]
    """Files that nothing ever referred to, or no longer."""

    @property
    def deleted_bytes(self) -> int:
        return sum(file.bytes for file in self.deleted_files + self.deleted_metadata + self.deleted_orphans)


@dataclass(frozen=True, slots=True)
class _Journal:
    """What a purge is about to do."""

    snapshots: tuple[int, ...]
    segments: tuple[DeletedFile, ...]
    metadata: tuple[DeletedFile, ...]


@dataclass
class Purge:
    """One purge of one topic."""

    topic: Topic
    committer: Committer
    files: TableFiles
    new_id: Callable[[], str]
    now_ms: int
    orphan_grace_ms: int
    _journals: dict[str, _Journal] = field(default_factory=dict)
    """Path to journal, each about to be carried out."""

    def purge(self) -> PurgeReceipt:
        """Finish what was begun, expire, delete, sweep.

        Raises:
            KeptlogError: from the commit; the next purge finishes the work.
        """
        # Listed before the table is looked at: whatever is committed later is not in the list, and safe.
        stored = {file.path: file for file in self.files.list(self.topic.location)}
        self._journals = self._left_behind(stored)
        self.committer.commit(self.topic.name, self._expire)
        referenced = all_references(load_topic_table(self.committer.catalog, self.topic.name)).keys()
        done = {path: self._carry_out(path, journal, referenced) for path, journal in self._journals.items()}
        deleted = {file.path for journal in done.values() for file in journal.segments + journal.metadata}
        orphans = self._sweep([file for path, file in stored.items() if path not in deleted], referenced)
        receipt = PurgeReceipt(
            topic=self.topic.name,
            expired_snapshots=tuple(sorted({number for journal in done.values() for number in journal.snapshots})),
            deleted_files=_distinct(file for journal in done.values() for file in journal.segments),
            deleted_metadata=_distinct(file for journal in done.values() for file in journal.metadata),
            deleted_orphans=orphans,
        )
        if receipt.deleted_files:
            self._tell("retired segment", receipt.deleted_files, f"receipts in {self._receipt_folder}")
        if orphans:
            self._tell("orphan", orphans, "what crashes and refused commits left")
        return receipt

    def _tell(self, what: str, files: Collection[DeletedFile], where: str) -> None:
        """One line for all of them."""
        size_bytes = sum(file.bytes for file in files)
        _logger.info("topic %s: %s, %d bytes, gone: %s", self.topic.name, counted(len(files), what), size_bytes, where)

    @property
    def _journal_folder(self) -> str:
        return f"{self.topic.location}/metadata/gc/"

    @property
    def _receipt_folder(self) -> str:
        return f"{self.topic.location}/metadata/receipts/"

    def _left_behind(self, stored: Mapping[str, StoredFile]) -> dict[str, _Journal]:
        """Journals of purges that were killed, or are still under way; carrying those out too does no harm."""
        journals: dict[str, _Journal] = {}
        name = self.topic.name
        for path in stored:
            if path.startswith(self._journal_folder):
                try:
                    content = self.files.read_bytes(path)
                except FileNotFoundError:
                    continue
                if not is_json(content):
                    # Killed while it was written, so before its commit: there is nothing to finish.
                    self.files.delete(path)
                    _logger.info("topic %s: journal %s of a killed purge is half written, it is dropped", name, path)
                    continue
                remedy = "delete it: the files that it names are then swept as orphans"
                journals[path] = from_json(_Journal, content.decode(), path, "journal of a purge", remedy)
                _logger.info("topic %s: journal %s of an earlier purge is carried out", name, path)
        return journals

    def _expire(self, table: Table) -> Land | None:
        expired = _replaced_before(table, self.now_ms - self.topic.config.file_delete_delay_ms)
        if not expired:
            return None
        numbers = {snapshot.snapshot_id for snapshot in expired}
        kept = references_of(table, [each for each in table.metadata.snapshots if each.snapshot_id not in numbers])
        gone = references_of(table, expired)
        journal = _Journal(
            snapshots=tuple(sorted(numbers)),
            segments=_only_in(gone.data_bytes, kept.data_bytes),
            metadata=_only_in(gone.metadata_bytes, kept.metadata_bytes),
        )
        path = f"{self._journal_folder}{self.new_id()}.json"
        self.files.write_bytes(path, to_json(journal).encode())
        self._journals[path] = journal
        return lambda: self._land(table, sorted(numbers))

    def _land(self, table: Table, numbers: list[int]) -> None:
        """Commit on exactly the snapshot that was looked at: a rollback meanwhile could have revived an expired one."""
        expiry = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": numbers})
        try:
            commit_without_snapshot(self.committer.catalog, table, expiry)
        except ValueError as error:
            raise CommitFailedException("another purge has expired the same snapshots") from error

    def _carry_out(self, path: str, journal: _Journal, referenced: set[str]) -> _Journal:
        """Delete what a journal names and nothing refers to, leave the receipt, drop the journal.

        Returns:
            What was really done of it: nothing, if its commit did not land.
        """
        segments, metadata = (
            tuple(file for file in files if comparable(file.path) not in referenced)
            for files in (journal.segments, journal.metadata)
        )
        for file in segments + metadata:
            self.files.delete(file.path)
        done = _Journal(journal.snapshots if segments or metadata else (), segments, metadata)
        if segments:
            receipt = {
                "topic": self.topic.name,
                "purged_at_ms": self.now_ms,
                "expired_snapshots": done.snapshots,
                "deleted_files": [asdict(file) for file in segments],
            }
            name = path.rpartition("/")[2]
            self.files.write_bytes(self._receipt_folder + name, json.dumps(receipt, indent=1).encode())
        self.files.delete(path)
        return done

    def _sweep(self, stored: Iterable[StoredFile], referenced: set[str]) -> tuple[DeletedFile, ...]:
        orphans = [
            file
            for file in stored
            if file.modified_ms <= self.now_ms - self.orphan_grace_ms
            and comparable(file.path) not in referenced
            and not file.path.startswith((self._journal_folder, self._receipt_folder))
        ]
        for file in orphans:
            self.files.delete(file.path)
            _logger.debug("topic %s: orphan %s with %d bytes is swept", self.topic.name, file.path, file.size_bytes)
        return tuple(DeletedFile(file.path, file.size_bytes) for file in orphans)


def _replaced_before(table: Table, moment_ms: int) -> list[Snapshot]:
    """Snapshots that ceased to be current at or before a moment; none that a branch or tag points to."""
    protected = {reference.snapshot_id for reference in table.metadata.refs.values()}
    replaced_ms: dict[int, int] = {}
    for snapshot in table.metadata.snapshots:
        if snapshot.parent_snapshot_id is not None:
            known_ms = replaced_ms.get(snapshot.parent_snapshot_id, 0)
            replaced_ms[snapshot.parent_snapshot_id] = max(known_ms, snapshot.timestamp_ms)
    return [
        snapshot
        for snapshot in table.metadata.snapshots
        if snapshot.snapshot_id not in protected
        and replaced_ms.get(snapshot.snapshot_id, snapshot.timestamp_ms) <= moment_ms
    ]


def _only_in(gone: Mapping[str, int], kept: Mapping[str, int]) -> tuple[DeletedFile, ...]:
    return tuple(DeletedFile(path, size_bytes) for path, size_bytes in sorted(gone.items()) if path not in kept)


def _distinct(files: Iterable[DeletedFile]) -> tuple[DeletedFile, ...]:
    """Each file once: two journals may name it, if a commit was tried twice."""
    return tuple(dict.fromkeys(files))
