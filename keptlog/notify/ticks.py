"""When the sensors ticked last: a small file in the home that they leave, and that the command reads.

A Dagster whose daemon has died can tell nobody. Who has no Dagster leaves no such file, and nothing is missed then.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path

from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.folders import NOT_THERE
from keptlog.notify.folder import FOLDER
from keptlog.regular_file import read_file
from keptlog.whole_file import replace_file

_logger = logging.getLogger(__name__)
_FILE = re.compile(r"ticks-(\w+)\.json")


@dataclass(frozen=True, slots=True)
class LastTick:
    """When the cleaning sensors of a mount ticked last, and how often they do."""

    sensors: str
    """Whose they are, in words."""
    at_ms: int
    interval_ms: int


def leave_tick(home: Path, mount: str, now_ms: int, interval_ms: int) -> None:
    """Say that sensors tick; ``mount`` is the prefix of their names. Where that can't be written, a line says so."""
    path = home / FOLDER / f"ticks-{mount.rstrip('_') or 'keptlog'}.json"
    try:
        if not home.is_dir():
            return
        path.parent.mkdir(exist_ok=True)
        replace_file(path, json.dumps({"at_ms": now_ms, "interval_ms": interval_ms}).encode())
    except OSError as error:
        _logger.warning(
            "%s can't be written (%s): keptlog notify will take it that no sensor ticks", path, error.strerror
        )


def last_ticks(home: Path) -> list[LastTick | KeptlogError]:
    """What was left, one a mount; of a mount whose file can't be read or understood the error.

    Raises:
        StorageUnavailable: the folder can't be read.
    """
    try:
        names = [(path, name[1]) for path in _files(home / FOLDER) if (name := _FILE.fullmatch(path.name))]
    except OSError as error:
        raise _unreadable(home / FOLDER, error) from None
    return [_last_tick(path, mount) for path, mount in names]


def _unreadable(path: Path, error: OSError) -> StorageUnavailable:
    why = error.strerror or type(error).__name__
    return StorageUnavailable(f"{error.filename or path} can't be read ({why}): whether sensors tick is not known")


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except NOT_THERE:
        return []


def _last_tick(path: Path, mount: str) -> LastTick | KeptlogError:
    try:
        told = json.loads(read_file(path))
        at_ms, interval_ms = told["at_ms"], told["interval_ms"]
        if type(at_ms) is type(interval_ms) is int:
            return LastTick(f"the cleaning sensors of {mount}", at_ms, interval_ms)
    except OSError as error:
        return _unreadable(path, error)
    except (ValueError, LookupError, TypeError):
        pass
    return LogCorrupt(f"{path} is damaged: whether sensors tick is not known before the next tick")
