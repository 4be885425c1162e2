"""Drops the records of keys from the logs of one topic that has a source, in one commit.

    logs --plan--> steps --on Spark--> staged --verify--> commit --> live
      ^                                                     |
      +------ somebody was faster: once more, as it is now -+

Done again it finds nothing to drop, and commits nothing: so it may be killed at any moment, and be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import InputGone, InvariantViolated, StalePlan, UnknownTopic
from keptlog.log.drop import DropResult, drop_step, verify_drop
from keptlog.log.told.stored_files import live_paths
from keptlog.progress import Progress, silent
from keptlog.storage.leftover import discard

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.storage.key_hash import KeyHasher
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore

_ATTEMPTS = 5
"""A clean that was under way wins once, and then others may."""


@dataclass(frozen=True, slots=True)
class Dropper:
    """Drops records from the topics of one store with one engine."""

    store: LogStore
    engine: Engine
    hasher: KeyHasher

    def drop(
        self,
        topic: Topic,
        end_offsets: Mapping[int, Mapping[bytes, int]],
        run_id: str,
        *,
        now_ms: int,
        progress: Progress = silent,
    ) -> list[DropResult]:
        """Drop every record of these keys, and commit; partitions that are not named are left alone.

        ``end_offsets`` has by partition, and then by the key's hash, the offset from which on its records stay.

        Returns:
            An outcome for each partition that was named, in the order of partitions; an empty one changed nothing.

        Raises:
            InvalidConfig: the topic has no source.
            UnknownTopic: it was deleted and created again meanwhile; nothing is dropped from the new one.
            StalePlan: others kept committing first; nothing was dropped.
            LogCorrupt: a live file is damaged, or lost, so that it can't be told whether it has the keys.
            CommitStateUnknown: the catalog did not say whether it landed; the same call again finds out.
        """
        self.store.require_writable()
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._drop(topic, end_offsets, run_id, now_ms, progress)
            except StalePlan as error:
                progress(f"{error}")
        return self._drop(topic, end_offsets, run_id, now_ms, progress)

    def _drop(
        self,
        topic: Topic,
        end_offsets: Mapping[int, Mapping[bytes, int]],
        run_id: str,
        now_ms: int,
        progress: Progress,
    ) -> list[DropResult]:
        logs = {log.topic_partition.partition: log for log in self.store.logs(topic.name)}
        if any(log.topic_id != topic.id for log in logs.values()):
            raise UnknownTopic(
                f"topic {topic.name} was deleted and created again meanwhile: nothing is dropped from the new one, "
                "whose offsets mean other records; ask for it too if it has the keys"
            )
        steps = [drop_step(logs[partition], end_offsets[partition], now_ms) for partition in sorted(end_offsets)]
        locations = {topic.name: self.store.data_location(topic.name)}
        try:
            outcomes = self.engine.drop(steps, self.hasher, locations, run_id, progress)
        except InputGone as error:
            paths = [path for partition in sorted(end_offsets) for path in live_paths(logs[partition])]
            lost = self.store.lost_files(topic.name).first(paths)
            if lost:
                raise lost from error
            raise
        changed = [outcome for outcome in outcomes if not outcome.is_empty]
        try:
            for outcome in outcomes:
                verify_drop(outcome)
        except InvariantViolated:
            discard(self.store.files, [path for outcome in outcomes for path in outcome.staged_paths])
            raise
        if changed:
            self.store.swap(topic.name, changed, run_id)
        return outcomes
