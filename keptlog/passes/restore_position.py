"""Whether a restore to a broker may go on from the position at its target; ``restore`` says what decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keptlog.errors import InvalidConfig
from keptlog.log.sections import cleaned_to
from keptlog.log.segment import Log
from keptlog.log.words.iso_time import iso_time
from keptlog.sinks.kafka_broker.position import Position
from keptlog.table.reading.readers import ReaderPositions, Registration

Standing = tuple[Registration, ReaderPositions]
"""Of the reader that a restore is: since when it is registered and what it missed, and how far it has come."""


def is_outdated(logs: Sequence[Log], stored: Mapping[int, Position | None]) -> bool:
    """Whether a look at the logs is from before another restore sent what is there, or before partitions were added."""
    if len(logs) != len(stored):
        return True
    return any(each and _is_older(log, each) for log, each in zip(logs, stored.values(), strict=True))


def require_ours(log: Log, position: Position) -> None:
    """Refuse to go on in another log than the one that was sent up to the position."""
    restored = f"{log.topic_partition} was restored up to offset {position.offset}"
    truncated_to = log.truncations.end_below(position.offset, since=position.truncations)
    if truncated_to is not None:
        raise InvalidConfig(
            f"{restored}, and was truncated to {truncated_to} since: what was read again from there on is not all in "
            "the target; restore to another topic (--topic)"
        )
    if _is_older(log, position):
        how = f"ends at {log.log_end_offset}" if position.offset > log.log_end_offset else "was not truncated yet"
        raise InvalidConfig(
            f"{restored} and {how} here: this is an older copy of it; restore to another topic (--topic)"
        )


def _is_older(log: Log, position: Position) -> bool:
    """Whether a look at a log is from before the one that was sent up to the position."""
    return position.offset > log.log_end_offset or position.truncations > log.truncations.count


def is_ahead(standing: Standing | None, partition: int, position: Position) -> bool:
    """Whether the reader has not held all that lies behind a position of the target."""
    return standing is not None and standing[1].may_be_beyond(partition, position.offset)


def require_not_lost(log: Log, position: Position, seen_ms: int, standing: Standing | None) -> None:
    """Refuse to go on where that would leave what is deleted here, or skip what should be there."""
    name = log.topic_partition
    restored, partition = f"{name} was restored up to offset {position.offset}", name.partition
    if position.as_of_ms is None:
        return
    if position.offset < log.log_start_offset:
        raise InvalidConfig(
            f"{restored} and begins at {log.log_start_offset} now: go on "
            "without what lay between (--skip-lost), or restore to another topic (--topic)"
        )
    choice = "their keys would stay; restore to another topic (--topic), or accept that (--skip-lost)"
    unheld_until_ms = seen_ms
    if standing and not is_ahead(standing, partition, position):
        registration, _ = standing
        unheld_until_ms = min(registration.added_ms, seen_ms)
        gone = registration.missed_from(partition, position.offset)
        if gone:
            raise InvalidConfig(f"{restored}, and {gone.told(str(name))}: {choice}")
    retention_ms = log.config.delete_retention_ms
    if cleaned_to(log) > position.offset and unheld_until_ms > position.as_of_ms + retention_ms:
        raise InvalidConfig(
            f"{restored} as of {iso_time(position.as_of_ms)}, and for longer than delete.retention.ms={retention_ms} "
            f"nothing waited for it: tombstones behind it may be gone since, and {choice}"
        )
