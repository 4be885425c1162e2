"""What a topic's table remembers beside its files, as table properties.

log.partitions                    how many partitions the topic has
log.p<N>.log-start-offset         the first offset that readers see
log.p<N>.log-end-offset           the next offset; never derived from the files: the last record may be cleaned away
log.p<N>.first-dirty-offset       the cleaner's checkpoint; absent until the first clean
kafka.<name>                      the topic's own configuration, with Kafka's names
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keptlog.errors import LogCorrupt

PARTITIONS = "log.partitions"
CONFIG_PREFIX = "kafka."


def first_dirty_offset(partition: int) -> str:
    """Name of the checkpoint's property."""
    return f"log.p{partition}.first-dirty-offset"


def log_start_offset(partition: int) -> str:
    """Name of the log start offset's property."""
    return f"log.p{partition}.log-start-offset"


def log_end_offset(partition: int) -> str:
    """Name of the log end offset's property."""
    return f"log.p{partition}.log-end-offset"


@dataclass(frozen=True, slots=True)
class LogState:
    """The stored state of one topic-partition. ``log_end_offset`` is exclusive; no checkpoint means never cleaned."""

    log_start_offset: int
    log_end_offset: int
    checkpoint: int | None

    @classmethod
    def read(cls, topic: str, partition: int, properties: Mapping[str, str]) -> LogState:
        """Read it from a table's properties; a new partition is empty and starts at 0.

        Raises:
            LogCorrupt: a value is no number.
        """
        return cls(
            _number(topic, properties, log_start_offset(partition)) or 0,
            _number(topic, properties, log_end_offset(partition)) or 0,
            _number(topic, properties, first_dirty_offset(partition)),
        )


def partition_count(topic: str, properties: Mapping[str, str]) -> int:
    """How many partitions a topic has.

    Raises:
        LogCorrupt: the table is none of ours.
    """
    count = _number(topic, properties, PARTITIONS)
    if not count:
        raise LogCorrupt(f"table {topic!r} has no property {PARTITIONS}: keptlog did not create it; move it elsewhere")
    return count


def _number(topic: str, properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise LogCorrupt(f"topic {topic}: property {name}={text!r} is no offset; set it back to its last right value")
    return int(text)
