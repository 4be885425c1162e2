"""Marks logs whose clean failed (``keptlog.log.uncleanable``), in their topic's properties.

No segment moves, so no snapshot is made; the commit lands only while the current snapshot is the one that was looked
at. A clean that heals a log makes a new one and empties the mark with it: whichever of the two comes first, the log
ends without a mark, because the mark is not set on a log whose checkpoint is no longer the one that failed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.update import SetPropertiesUpdate

from keptlog.errors import Action
from keptlog.log.given.past import is_past
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff, Uncleanable, after_failure
from keptlog.log.words.iso_time import iso_time, next_time
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.metadata.state import LogState, read_last_pass, uncleanable
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.metadata.without_snapshot import commit_without_snapshot

_logger = logging.getLogger(__name__)

_LONGEST_REASON = 1000
Marks = dict[TopicPartition, Uncleanable]


@dataclass(frozen=True, slots=True)
class Failure:
    """A clean that failed: why, and the checkpoint of the log that it was planned from."""

    topic_partition: TopicPartition
    reason: str
    checkpoint: int | None
    action: Action = Action.RETRY
    """What helps."""
    topic_id: str | None = None
    """Tells its topic from a later one of the same name, whose logs have not failed."""
    began_ms: int | None = None
    """When the clean began, where it is told afterwards: a log that was tried since then is not marked for it."""


def mark_uncleanable(
    committer: Committer, topic: str, failures: Iterable[Failure], now_ms: int, backoff: Backoff
) -> Marks:
    """Mark logs of one topic, and tell which; those that somebody else has cleaned meanwhile are left without.

    Raises:
        StalePlan, StorageUnavailable: the marks could not be set.
    """
    failures = tuple(failures)
    marks: Marks = {}

    def prepare(table: Table) -> Land | None:
        marks.clear()
        partitions = partition_count(topic, table.properties)
        for failure in failures:
            partition = failure.topic_partition.partition
            if partition >= partitions:
                continue
            state = LogState.read(topic, partition, table.properties)
            last = read_last_pass(topic, partition, table.properties)
            if state.checkpoint == failure.checkpoint and not _was_tried_since(failure.began_ms, last, state, now_ms):
                reason, mark = failure.reason[:_LONGEST_REASON], state.uncleanable
                marks[failure.topic_partition] = after_failure(mark, reason, now_ms, backoff, failure.action)
        if not marks:
            return None
        updates = {uncleanable(name.partition): to_json(mark) for name, mark in marks.items()}
        return lambda: commit_without_snapshot(committer.catalog, table, SetPropertiesUpdate(updates=updates))

    committer.commit(Change(topic, next((each.topic_id for each in failures), None)), prepare)
    for name, mark in marks.items():
        # Why it failed the caller knows, and says.
        text = "%s is uncleanable: attempt %d since %s failed; the next try comes %s"
        _logger.warning(text, name, mark.attempts, iso_time(mark.since_ms), next_time(mark.retry_at_ms))
    return marks


def _was_tried_since(began_ms: int | None, last: LastPass | None, state: LogState, now_ms: int) -> bool:
    """Whether a log was cleaned, or failed, after a clean began whose failure is told only now."""
    if began_ms is None:
        return False
    ended_ms = last.ended_ms if last else None
    failed_ms = state.uncleanable.failed_ms if state.uncleanable else None
    return any(at_ms is not None and began_ms <= at_ms and is_past(at_ms, now_ms) for at_ms in (ended_ms, failed_ms))


def tell_cleared(topic: str, before: Mapping[str, str], changed: Mapping[str, str]) -> None:
    """A line for each mark that a commit has emptied; from the topic's properties before it, and those it has set."""
    for partition in range(partition_count(topic, before)):
        name = uncleanable(partition)
        if before.get(name) and changed.get(name) == "":
            _logger.info("%s is cleanable again", TopicPartition(topic, partition))
