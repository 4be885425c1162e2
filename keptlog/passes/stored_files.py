"""Whether the files of logs are in storage, by name and size: what a clean would fail of, before one is tried.

There are two looks. ``explain`` asks the storage of one log, whatever it is. ``status`` looks at very many logs, so it
asks only a disk, where a file takes two microseconds; an object store it leaves to ``explain`` and ``verify``. Mostly
all is as it should be: so it first asks that of a topic's files together, and what is wrong only if it is not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from keptlog.errors import StorageUnavailable
from keptlog.folders import is_not_there
from keptlog.log.sections import Sections
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.told.stored_files import FilesOnDisk, WrongFile, live_paths, wrong_files
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.units import size

if TYPE_CHECKING:
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore


def wrong_in_storage(store: LogStore | UnopenedStore, log: Log) -> list[WrongFile]:
    """What is wrong with the files of a log that is not cleaned meanwhile.

    Raises:
        OSError, KeptlogError: the storage can't be listed.
    """
    sizes: dict[str, int] = {}
    for folder in sorted({path.rpartition("/")[0] for path in live_paths(log)}):
        sizes |= {_plain(each.path): each.size_bytes for each in store.files.list(folder)}
    wrong = wrong_files(log, lambda path: sizes.get(_plain(path)))
    if not wrong:
        return []
    topic, partition = log.topic_partition.topic, log.topic_partition.partition
    return still_wrong(wrong, store.observe(topic).logs[partition])


def wrong_on_disk(logs: Iterable[Log]) -> dict[TopicPartition, list[WrongFile] | StorageUnavailable]:
    """Topic-partition to what is wrong with its files, or why they can't be looked at.

    Only of logs that lie on a disk of this machine. What can't be looked at is neither missing nor fine.
    """
    here = (log for log in logs if log.segments and _on_disk(log.segments[0].path))
    found = {log.topic_partition: _wrong_on_disk(log) for log in here}
    return {name: wrong for name, wrong in found.items() if wrong}


def _wrong_on_disk(log: Log) -> list[WrongFile] | StorageUnavailable:
    try:
        return wrong_files(log, _size_on_disk)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        todo = "check that its disk can be read, and look again"
        return StorageUnavailable(f"{log.topic_partition}: its files could not be looked at: {why}; {todo}")


def files_on_disk(logs: Iterable[Log]) -> FilesOnDisk | None:
    """The files of these logs that ``wrong_on_disk`` looks for; null if they can't be asked for together."""
    here = [log for log in logs if log.segments and _on_disk(log.segments[0].path)]
    sizes = {segment.path: segment.size_bytes for log in here for segment in log.segments}
    # Of a file of watermarks the table keeps no size.
    listed: dict[str, int | None] = {**dict.fromkeys(path for log in here for path in live_paths(log)), **sizes}
    paths = [_on_disk(path) for path in listed]
    if not paths:
        return FilesOnDisk("", (), ())
    known = [path for path in paths if path]
    folder = os.path.commonprefix(known).rpartition("/")[0]  # noqa: RUF071  # what is left begins behind a slash
    if len(known) < len(paths) or not folder:
        return None
    return FilesOnDisk(folder, [path[len(folder) + 1 :] for path in known], list(listed.values()))


def are_on_disk(files: FilesOnDisk) -> bool:
    """Whether each of these files is there, in its size; of those that have none, whether it is there."""
    if not files.names:
        return True
    stat = os.stat
    try:
        # From an open folder on the disk finds a file with half the work.
        folder = os.open(files.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            found = [stat(name, dir_fd=folder) for name in files.names]
        finally:
            os.close(folder)
    except OSError:
        return False
    return all(
        S_ISREG(each.st_mode) and known in {each.st_size, None} for each, known in zip(found, files.sizes, strict=True)
    )


def still_wrong(wrong: Iterable[WrongFile], now: Log) -> list[WrongFile]:
    """What is left of it in the log as it is now: who replaced and purged a file meanwhile has done no harm."""
    live = set(live_paths(now))
    return [each for each in wrong if each.path in live]


def no_room(log: Log, sections: Sections) -> str | None:
    """One sentence if the disk on which a log lies has no room for its clean; null if it has, or it is no disk."""
    judged = sections.clean + sections.cleanable
    folder = folder_on_disk(judged)
    if folder is None:
        return None
    needed_bytes = total_bytes(judged)
    with suppress(OSError):
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < needed_bytes:
            return room_text(str(log.topic_partition), str(folder), free_bytes, needed_bytes)
    return None


def folder_on_disk(segments: Sequence[Segment]) -> Path | None:
    """Where segments of a log lie on a disk of this machine; null if there are none, or they lie elsewhere."""
    file = _on_disk(segments[0].path) if segments else None
    return Path(file).parent if file else None


def room_text(name: str, folder: str, free_bytes: int, needed_bytes: int) -> str:
    """What people are told of a disk that is too full."""
    disk = f"the disk of {folder} has {size(free_bytes)} left"
    return f"{name}: {disk}, and a clean may write up to {size(needed_bytes)}: make room"


def _on_disk(path: str) -> str | None:
    """The path on a disk of this machine; null if it leads elsewhere."""
    if path.startswith("file:"):
        return path.removeprefix("file:").removeprefix("//")
    return None if "://" in path else path


def _plain(path: str) -> str:
    """Without its scheme: what a listing calls a file may have another one, or none."""
    return _on_disk(path) or path.partition("://")[2]


def _size_on_disk(path: str) -> int | None:
    """Null if it is gone, or what is there is no file; OSError if that can't be told."""
    try:
        found = os.stat(_plain(path))  # noqa: PTH116  # a Path would take longer than the disk
    except OSError as error:
        if is_not_there(error, _plain(path)):
            return None
        raise
    return found.st_size if S_ISREG(found.st_mode) else None
