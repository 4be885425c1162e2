"""Whether the files of logs are in storage, by name and size: what a clean would fail of, before one is tried.

There are two looks. ``explain`` asks the storage of one log, whatever it is. ``status`` looks at very many logs, so it
asks only a disk, where a file takes a microsecond; an object store it leaves to ``explain`` and ``verify``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.log.sections import Sections
from keptlog.log.segment import Log, total_bytes
from keptlog.log.stored_files import WrongFile, live_paths, wrong_files
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.units import size

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


def wrong_on_disk(logs: Iterable[Log]) -> dict[TopicPartition, list[WrongFile]]:
    """Topic-partition to what is wrong with its files, of logs that lie on a disk of this machine."""
    here = (log for log in logs if log.segments and _on_disk(log.segments[0].path))
    found = {log.topic_partition: wrong_files(log, _size_on_disk) for log in here}
    return {name: wrong for name, wrong in found.items() if wrong}


def still_wrong(wrong: Iterable[WrongFile], now: Log) -> list[WrongFile]:
    """What is left of it in the log as it is now: who replaced and purged a file meanwhile has done no harm."""
    live = set(live_paths(now))
    return [each for each in wrong if each.path in live]


def no_room(log: Log, sections: Sections) -> str | None:
    """One sentence if the disk on which a log lies has no room for its clean; null if it has, or it is no disk."""
    judged = sections.clean + sections.cleanable
    file = _on_disk(judged[0].path) if judged else None
    if file is None:
        return None
    needed_bytes, folder = total_bytes(judged), Path(file).parent
    with suppress(OSError):
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < needed_bytes:
            return room_text(str(log.topic_partition), str(folder), free_bytes, needed_bytes)
    return None


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
    try:
        return os.stat(_plain(path)).st_size  # noqa: PTH116  # a Path would take longer than the disk
    except (FileNotFoundError, NotADirectoryError):
        return None
