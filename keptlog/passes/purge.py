"""Purge, the pass after which the bytes are gone: topic by topic, what cleans and retention have replaced is deleted.

What a purge of one topic does, and why a kill in the middle of it is harmless, stands in
``keptlog.table.purging.purge``. Here it is only seen to that every topic gets its turn: one whose purge fails, whatever
of, is named with its reason, and the next purge goes on with it. So is one of which a file could not be deleted; what
it deleted is told all the same.

A far store is mostly waited for, so several topics are purged side by side. One to which nobody has committed since its
last purge, and of which the clock makes nothing due, is left alone (``keptlog.table.purging.purge_memory``), at most
for a day. Whoever names a topic wants it looked at.

Deletions of topics that were begun and not finished are finished here too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.given.given import texts, whole_number
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.passes.names import require_all, require_topics, unknown_topics
from keptlog.table.chosen import whole
from keptlog.table.removal.removal import not_deleted_error
from keptlog.table.waiting.reaching import parted, why_not_purged
from keptlog.table.waiting.side_by_side import each_apart, side_by_side

if TYPE_CHECKING:
    from keptlog.table.purge_preview import PurgePreview
    from keptlog.table.purging.purge_memory import PurgeMemory
    from keptlog.table.purging.purge_receipt import PurgeReceipt
    from keptlog.table.removal.topic_deletion import TopicDeletion
    from keptlog.table.store import LogStore

_TODO = "see to it that they can be, and purge again"


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a pass deleted, topic by topic."""

    receipts: dict[str, PurgeReceipt]
    """Of an idle topic what its last purge found, of which nothing was deleted now."""
    failed: dict[str, KeptlogError]
    """Topic to the error; the next purge finishes what this one has begun there. It may have a receipt besides."""
    deletions: dict[str, TopicDeletion] = field(default_factory=dict)
    """What was done for topics whose deletion had been begun."""
    idle: tuple[str, ...] = ()
    """Topics that were not looked at, because nothing can have become due since their last purge."""

    @property
    def unsealed(self) -> dict[str, KeptlogError]:
        """Topics of which a receipt waits: they have not failed, what it tells is gone, but nobody could prove it."""
        found = {topic: receipt.sealing.unsealed(topic) for topic, receipt in self.receipts.items()}
        return {topic: error for topic, error in found.items() if error}


@dataclass(frozen=True, slots=True)
class PurgePreviews:
    """What a pass would delete."""

    topics: tuple[PurgePreview, ...]
    failed: dict[str, KeptlogError]
    deletions: tuple[str, ...]
    """Topics whose deletion was begun, and would be finished: all their files go."""

    @property
    def deletes_anything(self) -> bool:
        return bool(self.deletions) or any(each.deletes_anything for each in self.topics)

    @property
    def drops_refs(self) -> bool:
        """Whether tags or branches would go."""
        return any(each.refs for each in self.topics)

    @property
    def untold(self) -> dict[str, KeptlogError]:
        """Topics of which nobody knows what a purge would delete: it may reach what the preview did not."""
        return {topic: error for topic, error in self.failed.items() if isinstance(error, StorageUnavailable)}

    @property
    def may_delete_more(self) -> bool:
        """Whether a purge may delete what nobody was told of."""
        return bool(self.untold) or not all(each.is_whole for each in self.topics)


@dataclass
class _Outcome:
    """What became of one topic."""

    receipt: PurgeReceipt | None = None
    failure: KeptlogError | None = None
    deletion: TopicDeletion | None = None


@dataclass(frozen=True, slots=True)
class Purger:
    """Purges the topics of one store; several of them ``at_once``, which is worth it where the storage is far."""

    store: LogStore
    memory: PurgeMemory | None = None
    at_once: int = 1

    def purge(
        self,
        topics: Iterable[str] = (),
        *,
        now_ms: int,
        orphan_grace_ms: int = ORPHAN_GRACE_MS,
        skips_unknown: bool = False,
    ) -> PurgeResult:
        """Purge these topics, all if none is named, and finish the deletions of those that are being deleted.

        ``now_ms`` is compared with the times of snapshots and files, which are the wall clock's; files that nothing
        refers to go once they are older than ``orphan_grace_ms``. With ``skips_unknown`` a name that is no topic's
        counts as failed, and the others are purged.

        Raises:
            UnknownTopic: there is no such topic; nothing was purged.
            InvalidConfig: the home is a copy, or was moved; or the grace is none.
            StorageUnavailable: the catalog can't be reached.
        """
        now_ms, orphan_grace_ms = passed_now_ms(now_ms), valid_grace_ms(orphan_grace_ms)
        self.store.require_writable()
        named = list(dict.fromkeys(texts(topics, "the topics to purge")))
        known: Collection[str]
        idle: dict[str, PurgeReceipt] = {}
        if self.memory and not named:
            known = locations = self.store.metadata_locations()
            found = {name: self.memory.quiet(name, at, now_ms, orphan_grace_ms) for name, at in locations.items()}
            idle = {name: receipt for name, receipt in found.items() if receipt}
        else:
            known = self.store.topics()
        leaving = self.store.being_deleted()
        if self.memory and not named:
            self.memory.forget_others(self._there({*known, *leaving}), now_ms)
        unknown = unknown_topics(named, {*known, *leaving})
        if not skips_unknown:
            require_all(unknown)

        def carry_out(topic: str) -> _Outcome:
            outcome = _Outcome()
            try:
                if topic in leaving:
                    self._finish_deletion(topic, now_ms, outcome)
                if topic in known:
                    self._purge(topic, now_ms, orphan_grace_ms, outcome)
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                # Without names, a topic that was deleted just now is simply not there.
                if named or not isinstance(error, UnknownTopic):
                    outcome.failure = why_not_purged(topic, error)
            return outcome

        idle = {topic: receipt for topic, receipt in idle.items() if topic not in leaving}
        to_do = [name for name in named if name not in unknown] if named else sorted({*known, *leaving} - idle.keys())
        done = side_by_side(carry_out, to_do, self.at_once)
        done |= {topic: _Outcome(receipt) for topic, receipt in idle.items()}
        done |= {name: _Outcome(failure=error) for name, error in unknown.items()}
        return _result(done if named else dict(sorted(done.items())), idle)

    def preview(
        self, topics: Iterable[str] = (), *, now_ms: int, orphan_grace_ms: int = ORPHAN_GRACE_MS
    ) -> PurgePreviews:
        """What a purge with the same arguments would delete; changes nothing, and looks at idle topics too.

        Raises:
            UnknownTopic: there is no such topic.
            InvalidConfig: a purge would refuse, too: the home is a copy, or was moved.
            StorageUnavailable: the catalog can't be reached.
        """
        now_ms, orphan_grace_ms = passed_now_ms(now_ms), valid_grace_ms(orphan_grace_ms)
        self.store.require_writable()
        from keptlog.table import purge_preview  # noqa: PLC0415  # it imports PyIceberg, and no purge needs it

        named = list(dict.fromkeys(texts(topics, "the topics to purge")))
        known, leaving = self.store.topics(), self.store.being_deleted()
        require_topics(named, {*known, *leaving})

        def look(topic: str) -> PurgePreview:
            return purge_preview.preview_purge(self.store, topic, now_ms, orphan_grace_ms)

        found, failed = parted(each_apart(look, [name for name in named or known if name in known], self.at_once))
        if not named:
            failed = {topic: each for topic, each in failed.items() if not isinstance(each, UnknownTopic)}
        return PurgePreviews(tuple(found.values()), failed, tuple(name for name in named or leaving if name in leaving))

    def _there(self, known: set[str]) -> set[str]:
        """All topics there are, ``known`` among them, also those that are none of ours to purge."""
        of_all = whole(self.store)
        return known if of_all is self.store else {*of_all.topics(), *of_all.being_deleted()}

    def _purge(self, topic: str, now_ms: int, orphan_grace_ms: int, outcome: _Outcome) -> None:
        if self.memory:
            self.memory.begin(topic)
        receipt = outcome.receipt = self.store.purge(topic, now_ms, orphan_grace_ms)
        if receipt.not_deleted:
            outcome.failure = not_deleted_error(topic, receipt.not_deleted, _TODO)
        elif self.memory:
            self.memory.end(receipt, now_ms, orphan_grace_ms)

    def _finish_deletion(self, topic: str, now_ms: int, outcome: _Outcome) -> None:
        """A topic that was made anew meanwhile is not deleted."""
        outcome.deletion = self.store.deletion(topic, now_ms).finish()
        outcome.failure = outcome.deletion.unfinished


def valid_grace_ms(given_ms: int) -> int:
    """How old a file must be that nothing refers to.

    Raises:
        InvalidConfig: less than nothing, which every file is.
    """
    grace_ms = whole_number(given_ms, "orphan_grace_ms")
    if grace_ms < 0:
        raise InvalidConfig(
            f"orphan_grace_ms is {grace_ms}: even what a run has yet to write would be old enough; give 0 or more"
        )
    return grace_ms


def _result(done: dict[str, _Outcome], idle: Collection[str]) -> PurgeResult:
    return PurgeResult(
        {topic: each.receipt for topic, each in done.items() if each.receipt},
        {topic: each.failure for topic, each in done.items() if each.failure},
        {topic: each.deletion for topic, each in done.items() if each.deletion},
        tuple(topic for topic in done if topic in idle),
    )
