"""A broker's log directory: which logs are in it, and what the broker noted about them.

    log-dir/
      cleaner-offset-checkpoint       first dirty offsets      of all logs, one line each: topic partition offset
      log-start-offset-checkpoint     log start offsets        only where records were deleted
      replication-offset-checkpoint   high watermarks          every 5 s, and when the broker ends in peace
      orders-0/
        partition.metadata            the topic's id
        leader-epoch-checkpoint       leader epochs and where they begin, one line each
        00000000000000000000.log ...

A folder is a log if its name is a topic-partition. Others are a log's that is no more, ``…-delete``, or not yet,
``…-future``, or that this broker should not have, ``…-stray``: a broker serves none of them, so they are overlooked.

A checkpoint of all logs that can't be read fails them all. What can't be read in a log's own folder fails that log
alone: whoever wants others never asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_log.open_file import unread

_CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
_LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
_HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
_PARTITION_METADATA = "partition.metadata"
_CHECKPOINT_VERSION = "0"
_REMEDY = "restore the file, or remove it to go without what it notes"


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log's folder, and what its broker noted about it; null where it noted nothing."""

    topic_partition: TopicPartition
    folder: Path
    topic_id: str | None
    """Kafka's UUID of the topic in base64: it tells a topic from a later one of the same name."""
    log_start_offset: int | None
    first_dirty_offset: int | None
    """Where the broker's cleaner would go on."""
    high_watermark: int | None = None
    """Below it all replicas have the records; what lies above may still be taken back."""
    high_watermark_ms: int | None = None
    """When that was noted; in a copy, no later than it was copied."""
    epoch_starts: tuple[tuple[int, int], ...] = ()
    """Leader epochs and where they begin, both rising."""
    unreadable: KeptlogError | None = None
    """Why what is noted in its own folder can't be told: then nothing of the log may be read."""


def log_directories(path: Path) -> list[LogDirectory]:
    """The logs in a log directory, internal topics too, in the order of their names and numbers.

    Raises:
        InvalidConfig: there is no log in this directory.
        LogCorrupt: a checkpoint of all logs is none.
        StorageUnavailable: it, or such a checkpoint, can't be read.
    """
    try:
        return _log_directories(path)
    except OSError as error:
        raise _unavailable(path, error) from error


def _log_directories(path: Path) -> list[LogDirectory]:
    if not path.is_dir():
        raise InvalidConfig(f"{path} is not a directory; name a broker's log directory, one of its log.dirs")
    log_starts = _checkpoint(path / _LOG_START_CHECKPOINT)
    first_dirty = _checkpoint(path / _CLEANER_CHECKPOINT)
    committed_ms = _written_ms(path / _HIGH_WATERMARK_CHECKPOINT)
    committed = _checkpoint(path / _HIGH_WATERMARK_CHECKPOINT)
    found = [
        _with_own_notes(
            LogDirectory(
                name,
                folder,
                None,
                log_starts.get(name),
                first_dirty.get(name),
                committed.get(name),
                committed_ms if name in committed else None,
            )
        )
        for folder in path.iterdir()
        if (name := _log_in(folder)) is not None
    ]
    if not found:
        hint = "it is a log's own folder: name the one above it" if _log_in(path) else "name one of a broker's log.dirs"
        raise InvalidConfig(f"{path} holds no folder <topic>-<partition>; {hint}")
    return sorted(found, key=lambda log: log.topic_partition)


def _with_own_notes(log: LogDirectory) -> LogDirectory:
    """A log with what is noted in its own folder, or why that can't be told."""
    try:
        return replace(log, topic_id=_topic_id(log.folder), epoch_starts=_epoch_starts(log.folder / _EPOCH_CHECKPOINT))
    except KeptlogError as error:
        return replace(log, unreadable=error)
    except OSError as error:
        return replace(log, unreadable=_unavailable(log.folder, error))


def _unavailable(path: Path, error: OSError) -> StorageUnavailable:
    return unread(f"{error.filename or path} can't be read", error, "a running broker may have changed it")


def _log_in(folder: Path) -> TopicPartition | None:
    try:
        return TopicPartition.parse(folder.name) if folder.is_dir() else None
    except InvalidConfig:
        return None


def _checkpoint(path: Path) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint file of all logs."""
    offsets: dict[TopicPartition, int] = {}
    for number, line in _entries(path):
        try:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise LogCorrupt(f"{path} line {number}: {line!r} is not <topic> <partition> <offset>; {_REMEDY}") from None
    return offsets


def _written_ms(path: Path) -> int | None:
    """When a file was written; null if there is none."""
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def _epoch_starts(path: Path) -> tuple[tuple[int, int], ...]:
    """The leader epochs in a log's own checkpoint file."""
    starts: list[tuple[int, int]] = []
    for number, line in _entries(path):
        try:
            epoch, start = map(int, line.split(" "))
        except ValueError:
            raise LogCorrupt(f"{path} line {number}: {line!r} is not <epoch> <offset>; {_REMEDY}") from None
        starts.append((epoch, start))
    return tuple(sorted(starts))


def _entries(path: Path) -> Iterator[tuple[int, str]]:
    """Line by line, with its number, what stands in a checkpoint file: its version, the number of entries, the entries.

    None if there is no file.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    except UnicodeDecodeError:
        raise LogCorrupt(f"{path} is not text; {_REMEDY}") from None
    if lines and (lines[0] != _CHECKPOINT_VERSION or len(lines) < 2 or lines[1] != str(len(lines) - 2)):
        raise LogCorrupt(f"{path} does not begin with version 0 and the number of its entries; {_REMEDY}")
    yield from enumerate(lines[2:], start=3)


def _topic_id(folder: Path) -> str | None:
    path = folder / _PARTITION_METADATA
    try:
        fields = dict(line.split(": ", 1) for line in path.read_text(encoding="utf-8").splitlines() if line)
    except FileNotFoundError:
        return None
    except ValueError:
        raise LogCorrupt(f"{path} does not hold lines of <name>: <value>; {_REMEDY}") from None
    # Without one, a topic that was made anew would pass for the old one.
    if not fields.get("topic_id"):
        raise LogCorrupt(f"{path} has no topic_id; {_REMEDY}")
    return fields["topic_id"]
