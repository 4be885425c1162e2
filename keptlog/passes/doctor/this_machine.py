"""What lies on this machine's disks, may be of any topic, and is deleted by nobody: keys and values may be in it.

Looks have put aside what they have seen (``keptlog.table.reading.cache``), and it outlives its topic. And there is what
Sparks that are gone have left.

A Spark keeps shuffled records and what it spills in folders of its own, ``blockmgr-…`` and ``spark-…``, below
``SPARK_LOCAL_DIRS`` or the system's folder for temporary files. It deletes them when it ends. One that is killed can't.

A folder's name does not say whose it is. So it is certain to be left over only if no Spark that is running was there
when the folder was last changed. Any other may be in use; then it is told without a deadline, and not taken for gone.
Other users' folders can't be read, and are none of ours.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from keptlog.log.holder import Held, HolderKind, Holdings, Terms
from keptlog.table.reading.cache import TopicCache

_OURS = ("blockmgr-", "spark-")
_MS = 1000
_SLACK_MS = 2_000
"""Start times are in whole seconds since the machine's own start."""


def held_here(home: Path, interval_ms: int, locations: Mapping[str, str] | None = None) -> Holdings:
    """What lies here, and may lie for ``interval_ms``.

    What looks have put aside is only told if ``locations`` says where each topic of the home is.
    """
    outdated = [] if locations is None else TopicCache(home).outdated(locations)
    return Holdings("", Terms(0, interval_ms), (*left_folders(), *outdated))


def left_folders(environment: Mapping[str, str] = os.environ) -> list[Held]:
    """The folders of Sparks that have files in them; ``since_ms`` is when one was last changed.

    What runs is looked up only if there is any folder at all.
    """
    folders = [folder for root in _roots(environment) for folder in _folders_in(root)]
    started_ms = _running_since_ms() if folders else None
    return [held for folder in folders if (held := _held(folder, started_ms)).files]


def _roots(environment: Mapping[str, str]) -> list[Path]:
    named = [Path(name.strip()) for name in environment.get("SPARK_LOCAL_DIRS", "").split(",") if name.strip()]
    return named or [Path(tempfile.gettempdir())]


def _folders_in(root: Path) -> Iterator[Path]:
    try:
        with os.scandir(root) as entries:
            found = [entry for entry in entries if entry.name.startswith(_OURS)]
            yield from sorted(Path(entry.path) for entry in found if _is_own_folder(entry))
    except OSError:
        # No Spark has ever been here.
        return


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:
        return False


def _held(folder: Path, started_ms: int | None) -> Held:
    files, size_bytes, changed_ms = 0, 0, 0
    for parent, _, names in os.walk(folder):
        for path in (Path(parent), *(Path(parent, name) for name in names)):
            try:
                status = path.lstat()
            except OSError:
                continue
            changed_ms = max(changed_ms, status.st_mtime_ns // 1_000_000)
            if str(path) != parent:
                files, size_bytes = files + 1, size_bytes + status.st_size
    is_gone = started_ms is None or changed_ms < started_ms
    kind = HolderKind.SPARK if is_gone else HolderKind.RUNNING_SPARK
    return Held(kind, changed_ms, files, size_bytes, str(folder))


def _running_since_ms() -> int | None:
    """When the first of the Sparks that run here was started, null if none runs; 0 where that can't be told."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
        booted_ms = _MS * next(int(line.split()[1]) for line in lines if line.startswith("btime "))
        processes = [path for path in Path("/proc").iterdir() if path.name.isdecimal()]
    except (OSError, ValueError, StopIteration):
        return 0
    started = [_started_ms(path, booted_ms) for path in processes]
    return min((each for each in started if each is not None), default=None)


def _started_ms(process: Path, booted_ms: int) -> int | None:
    """When a process was started, if it is a Spark; null if it is none, or has ended."""
    try:
        if b"org.apache.spark" not in (process / "cmdline").read_bytes():
            return None
        # The name of the command, in brackets, may have spaces.
        ticks = int((process / "stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
    return booted_ms + ticks * _MS // os.sysconf("SC_CLK_TCK") - _SLACK_MS
