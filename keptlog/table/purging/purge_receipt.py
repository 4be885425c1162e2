"""What a purge of one topic tells: to whoever called it, and in the log."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from keptlog.log.words.counted import counted
from keptlog.table.purging.quiet import Quiet
from keptlog.table.removal.drafts import Sealing
from keptlog.table.removal.held import HeldFile
from keptlog.table.removal.journal import SWEEP, DeletedFile, Journal
from keptlog.table.removal.ref_retention import EndedRef
from keptlog.table.removal.removal import NotDeleted

_logger = logging.getLogger(__name__)


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
    not_deleted: tuple[NotDeleted, ...] = ()
    """What should be gone and is still there; the next purge tries again."""
    receipts: tuple[str, ...] = ()
    """The ids of the receipts of this purge."""
    sealing: Sealing = field(default_factory=Sealing)
    """What became of them, and of those that lay there before."""
    held: tuple[HeldFile, ...] = ()
    """Files that may still hold values although they are not live."""
    unreadable: tuple[str, ...] = ()
    """What could not be read, and was gone past: journals, receipts, metadata of expired snapshots. One line each."""
    not_looked_at: tuple[str, ...] = ()
    """Why nobody knows whether the store keeps more: its versions, its open uploads. One line each."""
    dropped_refs: tuple[EndedRef, ...] = ()
    quiet: Quiet | None = None
    """For how long nothing is to be done again, if nobody commits; null if something is left."""

    @property
    def all_deleted(self) -> tuple[DeletedFile, ...]:
        """Every file that is gone, as its receipts count them."""
        return self.deleted_files + self.deleted_metadata + self.deleted_orphans

    @property
    def deleted_bytes(self) -> int:
        return sum(file.bytes for file in self.all_deleted)


@dataclass(frozen=True)
class Account:
    """What has become of each journal, and all else that there is to tell."""

    done: Mapping[str, Journal]
    """What is gone, by journal."""
    not_deleted: tuple[NotDeleted, ...]
    receipts: tuple[str, ...]
    sealing: Sealing
    held: tuple[HeldFile, ...]
    unreadable: tuple[str, ...]
    not_looked_at: tuple[str, ...]
    dropped_refs: tuple[EndedRef, ...]

    def receipt(self, topic: str) -> PurgeReceipt:
        """All of it in one. Whoever gets it tells it, so it is in the log only for who looks closer."""
        expiries = [journal for journal in self.done.values() if journal.kind != SWEEP]
        sweeps = [journal for journal in self.done.values() if journal.kind == SWEEP]
        receipt = PurgeReceipt(
            topic=topic,
            expired_snapshots=tuple(sorted({number for journal in expiries for number in journal.snapshots})),
            deleted_files=tuple(file for journal in expiries for file in journal.segments),
            deleted_metadata=tuple(file for journal in expiries for file in journal.metadata),
            deleted_orphans=tuple(file for journal in sweeps for file in journal.metadata),
            not_deleted=self.not_deleted,
            receipts=self.receipts,
            sealing=self.sealing,
            held=self.held,
            unreadable=self.unreadable,
            not_looked_at=self.not_looked_at,
            dropped_refs=self.dropped_refs,
        )
        noun = "receipt" if len(self.receipts) == 1 else "receipts"
        _tell(topic, "retired segment", receipt.deleted_files, f"{noun} {', '.join(self.receipts)}")
        _tell(topic, "orphan", receipt.deleted_orphans, "what crashes and refused commits left")
        for file in receipt.deleted_orphans:
            _logger.debug("topic %s: orphan %s with %d bytes is swept", topic, file.path, file.bytes)
        for left in receipt.not_deleted:
            _logger.debug("topic %s: %s could not be deleted: %s", topic, left.path, left.reason)
        return receipt


@contextmanager
def telling_dropped(topic: str, refs: Mapping[EndedRef, bool]) -> Iterator[None]:
    """Let a purge that fails tell those that it has surely dropped, in a line each; of any other the receipt tells."""
    try:
        yield
    except BaseException:
        for each in (ref for ref, is_sure in refs.items() if is_sure):
            _logger.info("topic %s: dropped %s", topic, each)
        raise


def _tell(topic: str, what: str, files: Collection[DeletedFile], where: str) -> None:
    """One line for all of them."""
    if files:
        size_bytes = sum(file.bytes for file in files)
        _logger.debug("topic %s: %s, %d bytes, gone: %s", topic, counted(len(files), what), size_bytes, where)
