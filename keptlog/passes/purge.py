"""Purge, the pass after which the bytes are gone: topic by topic, what cleans and retention have replaced is deleted.

What a purge of one topic does, and why a kill in the middle of it is harmless, stands in ``keptlog.table.purge``. Here
it is only seen to that every topic gets its turn: one whose purge fails, whatever of, is named with its reason, and the
next purge goes on with it. So is one of which a file could not be deleted; what it deleted is told all the same.

Deletions of topics that were begun and not finished are finished here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.passes.names import require_topics
from keptlog.table.deletion import Deletion, TopicDeletion
from keptlog.table.purge_receipt import PurgeReceipt
from keptlog.table.reach import one_line
from keptlog.table.removal import not_deleted_error
from keptlog.table.store import LogStore

_TODO = "see to it that they can be, and purge again"


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a pass deleted, topic by topic."""

    receipts: dict[str, PurgeReceipt]
    failed: dict[str, KeptlogError]
    """Topic to the error; the next purge finishes what this one has begun there. It may have a receipt besides."""
    deletions: dict[str, TopicDeletion] = field(default_factory=dict)
    """What was done for topics whose deletion had been begun."""


@dataclass(frozen=True, slots=True)
class Purger:
    """Purges the topics of one store."""

    store: LogStore

    def purge(self, topics: Iterable[str] = (), *, now_ms: int, orphan_grace_ms: int = ORPHAN_GRACE_MS) -> PurgeResult:
        """Purge these topics, all if none is named, and finish the deletions of those that are being deleted.

        ``now_ms`` is compared with the times of snapshots and files, which are the wall clock's; files that nothing
        refers to go once they are older than ``orphan_grace_ms``.

        Raises:
            UnknownTopic: there is no such topic; nothing was purged.
            InvalidConfig: the home is a copy, or was moved.
            StorageUnavailable: the catalog can't be reached.
        """
        self.store.require_writable()
        known, leaving = self.store.topics(), self.store.being_deleted()
        named = list(dict.fromkeys(topics))
        require_topics(named, {*known, *leaving})
        result = PurgeResult({}, {})
        for topic in named or sorted({*known, *leaving}):
            try:
                if topic in leaving:
                    self._finish_deletion(topic, now_ms, result)
                if topic in known:
                    self._purge(topic, now_ms, orphan_grace_ms, result)
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                # Without names, a topic that was deleted just now is simply not there.
                if named or not isinstance(error, UnknownTopic):
                    result.failed[topic] = _reason(topic, error)
        return result

    def _purge(self, topic: str, now_ms: int, orphan_grace_ms: int, result: PurgeResult) -> None:
        receipt = result.receipts[topic] = self.store.purge(topic, now_ms, orphan_grace_ms)
        if receipt.not_deleted:
            result.failed[topic] = not_deleted_error(topic, receipt.not_deleted, _TODO)

    def _finish_deletion(self, topic: str, now_ms: int, result: PurgeResult) -> None:
        """A topic that was made anew meanwhile is not deleted."""
        store = self.store
        deletion = Deletion(store.committer.catalog, store.files, topic, now_ms, store.seal).finish()
        result.deletions[topic] = deletion
        if deletion.unfinished:
            result.failed[topic] = deletion.unfinished


def _reason(topic: str, error: Exception) -> KeptlogError:
    """The error as callers know it; one that nobody has thought of says which topic it was."""
    if isinstance(error, KeptlogError):
        return error
    text = f"topic {topic}: its purge stopped at {one_line(error)}; the next one goes on; report it if it stays"
    return KeptlogError(text)
