"""Small local files that are there whole, and durably, or not at all, whenever a process is killed.

Content is written beside its place under another name, ``<name>.<something random>.part``, is brought to the disk, and
only then gets its name. Who is killed in between leaves the part, which nobody takes for the file.

Two ways to give the name: over what is there, or only if nothing is. With the second, several processes at once make
one file, and each of them sees it whole.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets  # noqa: TID251  # for the names of parts, of which nothing is ever made
from functools import cache
from pathlib import Path

_logger = logging.getLogger(__name__)

UNFINISHED = ".part"
_ATTEMPTS = 5
_OF_OTHERS = 0o077


def is_unfinished(path: str) -> bool:
    """Whether a file is such a part, of a writer who is at work or was killed."""
    return path.endswith(UNFINISHED)


def replace_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file, over the one that is there; with these permissions, if some are given.

    Raises:
        OSError: it can't be written; what was there is as it was.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        part = _write_part(path, content, mode)
        try:
            part.replace(path)
            break
        except FileNotFoundError:
            # A purge that gives no grace takes the part for left behind.
            if attempt == _ATTEMPTS:
                raise
        except OSError:
            part.unlink(missing_ok=True)
            raise
    sync(path.parent)


def create_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file of these permissions, unless it is there: then it stays as it is.

    Raises:
        OSError: it can't be written.
    """
    part = _write_part(path, content, mode)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def warn_of_readers(path: Path) -> None:
    """Log a warning, once a process, if a file that holds a secret can be read or changed by others."""
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode & 0o777
        if mode & _OF_OTHERS:
            _warn_of_readers(path.absolute(), mode)


@cache
def _warn_of_readers(path: Path, mode: int) -> None:
    _logger.warning("%s holds a secret, and others can read or change it (mode %o): chmod 600 %s", path, mode, path)


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_part(path: Path, content: bytes, mode: int | None = None) -> Path:
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{UNFINISHED}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(part, flags, 0o666 if mode is None else mode), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)  # whatever the umask takes away
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part
