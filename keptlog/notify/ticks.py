"""When the sensors ticked last: a small file in the home that they leave, and that the command reads.

A Dagster whose daemon has died can tell nobody. Who has no Dagster leaves no such file, and nothing is missed then.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path

from keptlog.errors import LogCorrupt, StorageUnavailable
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


def last_ticks(home: Path) -> list[LastTick]:
    """What was left, one a mount.

    Raises:
        LogCorrupt: one of them can't be understood, so that nobody knows.
        StorageUnavailable: they can't be read.
    """
    try:
        return [_last_tick(path, name[1]) for path in _files(home / FOLDER) if (name := _FILE.fullmatch(path.name))]
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StorageUnavailable(
            f"{error.filename or home / FOLDER} can't be read ({why}): whether sensors tick is not known"
        ) from None


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except NOT_THERE:
        return []


def _last_tick(path: Path, mount: str) -> LastTick:
    content = read_file(path)
    try:
        told = json.loads(content)
        return LastTick(f"the cleaning sensors of {mount}", int(told["at_ms"]), int(told["interval_ms"]))
    except (ValueError, LookupError, TypeError):
        raise LogCorrupt(f"{path} is damaged: whether sensors tick is not known before the next tick") from None
