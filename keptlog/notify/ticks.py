"""When the sensors ticked last: small files in the home that they leave, and that the command reads.

A Dagster whose daemon has died can tell nobody. Who has no Dagster leaves no such file, and nothing is missed then.

All cleaning sensors of a mount share one file, for one that is turned off is not missed. One may fail at each tick
while the others tick. So each begins a tick with a file of its own, and a tick that ends well takes it away.
"""

from __future__ import annotations

import json
import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.folders import NOT_THERE
from keptlog.foreign_json import json_value
from keptlog.notify.folder import FOLDER
from keptlog.regular_file import read_file
from keptlog.whole_file import make_home_folder, replace_file

_logger = logging.getLogger(__name__)
_FILE = re.compile(r"ticks-(\w+)\.json")
_BEGUN_FILE = re.compile(r"ticks-(\w+)-(\w+)\.json")


@dataclass(frozen=True, slots=True)
class LastTick:
    """When the cleaning sensors of a mount ticked last, and how often they do."""

    sensors: str
    """Whose they are, in words."""
    at_ms: int
    interval_ms: int


@dataclass(frozen=True, slots=True)
class UnendedTicks:
    """Ticks of one cleaning sensor that began, and of which none has ended well since."""

    sensor: str
    """Its name in Dagster."""
    sensors: str
    """Those of its mount, as in ``LastTick``."""
    since_ms: int
    begun_ms: int
    """When the last of them began."""
    interval_ms: int


def begin_tick(home: Path, mount: str, sensor: str, now_ms: int, interval_ms: int) -> None:
    """Say that a sensor of this name in Dagster begins a tick; ``leave_tick`` says that it has ended well."""
    path = _begun_path(home, mount, sensor)
    before = _unended(path, mount, sensor) if path.exists() else None
    # What a clock that was ahead has left would hide for as long that the sensor fails.
    since_ms = min(before.since_ms, now_ms) if isinstance(before, UnendedTicks) else now_ms
    with suppress(OSError):  # leave_tick says so where nothing can be written
        _write(path, {"since_ms": since_ms, "begun_ms": now_ms, "interval_ms": interval_ms})


def leave_tick(home: Path, mount: str, now_ms: int, interval_ms: int, sensor: str | None = None) -> None:
    """Say that sensors tick; ``mount`` is the prefix of their names. Where that can't be written, a line says so.

    ``sensor`` is the one that does, by its name in Dagster.
    """
    path = home / FOLDER / f"ticks-{_mount_name(mount)}.json"
    try:
        _write(path, {"at_ms": now_ms, "interval_ms": interval_ms})
        if sensor:
            _begun_path(home, mount, sensor).unlink(missing_ok=True)
    except OSError as error:
        _logger.warning(
            "%s can't be written (%s): keptlog notify will take it that no sensor ticks", path, error.strerror
        )


def _mount_name(mount: str) -> str:
    return mount.rstrip("_") or "keptlog"


def _begun_path(home: Path, mount: str, sensor: str) -> Path:
    return home / FOLDER / f"ticks-{_mount_name(mount)}-{sensor}.json"


def _write(path: Path, told: dict[str, int]) -> None:
    """Write a file of a home that is there."""
    if path.parent.parent.is_dir():
        make_home_folder(path.parent)
        replace_file(path, json.dumps(told).encode())


def last_ticks(home: Path) -> list[LastTick | KeptlogError]:
    """What was left, one a mount; of a mount whose file can't be read or understood the error.

    Raises:
        StorageUnavailable: the folder can't be read.
    """
    return [_last_tick(path, name[1]) for path, name in _named(home, _FILE)]


def unended_ticks(home: Path) -> list[UnendedTicks | KeptlogError]:
    """What sensors have begun and not ended, one a sensor; where that can't be read or understood the error.

    Raises:
        StorageUnavailable: the folder can't be read.
    """
    return [_unended(path, name[1], name[2]) for path, name in _named(home, _BEGUN_FILE)]


def _named(home: Path, names: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    try:
        return [(path, name) for path in _files(home / FOLDER) if (name := names.fullmatch(path.name))]
    except OSError as error:
        raise _unreadable(home / FOLDER, error) from None


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except NOT_THERE:
        return []


def _last_tick(path: Path, mount: str) -> LastTick | KeptlogError:
    told = _numbers(path, "at_ms", "interval_ms")
    return told if isinstance(told, KeptlogError) else LastTick(_sensors_of(mount), *told)


def _unended(path: Path, mount: str, sensor: str) -> UnendedTicks | KeptlogError:
    told = _numbers(path, "since_ms", "begun_ms", "interval_ms")
    return told if isinstance(told, KeptlogError) else UnendedTicks(sensor, _sensors_of(mount), *told)


def _sensors_of(mount: str) -> str:
    return f"the cleaning sensors of {_mount_name(mount)}"


def _numbers(path: Path, *names: str) -> list[int] | KeptlogError:
    """The whole numbers of these names in such a file."""
    try:
        told = json_value(read_file(path))
        numbers = [told[name] for name in names]
        if all(type(each) is int for each in numbers):
            return numbers
    except OSError as error:
        return _unreadable(path, error)
    except (ValueError, LookupError, TypeError):
        pass
    return LogCorrupt(f"{path} is damaged: whether sensors tick is not known before the next tick")


def _unreadable(path: Path, error: OSError) -> StorageUnavailable:
    why = error.strerror or type(error).__name__
    return StorageUnavailable(f"{error.filename or path} can't be read ({why}): whether sensors tick is not known")
