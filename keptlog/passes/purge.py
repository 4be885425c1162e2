"""Purge, the pass after which the bytes are gone: topic by topic, what cleans and retention have replaced is deleted.

What a purge of one topic does, and why a kill in the middle of it is harmless, stands in ``keptlog.table.purge``. Here
it is only seen to that every topic gets its turn: one whose purge fails, whatever of, is named with its reason, and the
next purge goes on with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.table.purge import ORPHAN_GRACE_MS, PurgeReceipt
from keptlog.table.reach import one_line
from keptlog.table.store import LogStore


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a pass deleted, topic by topic."""

    receipts: dict[str, PurgeReceipt]
    failed: dict[str, KeptlogError]
    """Topic to the error; the next purge finishes what this one has begun there."""


@dataclass(frozen=True, slots=True)
class Purger:
    """Purges the topics of one store."""

    store: LogStore

    def purge(self, topics: Iterable[str] = (), *, now_ms: int, orphan_grace_ms: int = ORPHAN_GRACE_MS) -> PurgeResult:
        """Purge these topics, all if none is named.

        ``now_ms`` is compared with the times of snapshots and files, which are the wall clock's; files that nothing
        refers to go once they are older than ``orphan_grace_ms``.

        Raises:
            UnknownTopic: there is no such topic; nothing was purged.
            InvalidConfig: the home is a copy, or was moved.
            StorageUnavailable: the catalog can't be reached.
        """
        self.store.require_writable()
        known = self.store.topics()
        named = list(dict.fromkeys(topics))
        for topic in named:
            if topic not in known:
                raise UnknownTopic(f"there is no topic {topic!r}: see keptlog topic list")
        receipts: dict[str, PurgeReceipt] = {}
        failed: dict[str, KeptlogError] = {}
        for topic in named or known:
            try:
                receipts[topic] = self.store.purge(topic, now_ms, orphan_grace_ms)
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                # Without names, a topic that was deleted just now is simply not there.
                if named or not isinstance(error, UnknownTopic):
                    failed[topic] = _reason(topic, error)
        return PurgeResult(receipts, failed)


def _reason(topic: str, error: Exception) -> KeptlogError:
    """The error as callers know it; one that nobody has thought of says which topic it was."""
    if isinstance(error, KeptlogError):
        return error
    text = f"topic {topic}: its purge stopped at {one_line(error)}; the next one goes on; report it if it stays"
    return KeptlogError(text)
