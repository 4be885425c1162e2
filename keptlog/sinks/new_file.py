"""A file that is there whole or not at all: it is written beside its name, made durable, and renamed, durably too.

A run that was killed leaves ``NAME.<run id>.part``, which nobody takes for the file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from keptlog.disk import out_of_reach, remedy_of
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.whole_file import UNFINISHED, open_part, replaced_file, sync


def place_for(path: Path) -> Path:
    """The file that is to be written under this name: the one that it leads to, if it is a symbolic link.

    Raises:
        InvalidConfig: something else is there, which a file would take the place of; or its folder does not exist.
    """
    if path.is_dir():
        raise InvalidConfig(f"{path} is a folder: give the name of a file in it")
    try:
        real = replaced_file(path)
    except OSError as error:
        raise InvalidConfig(f"{path} can't be written: {error.strerror}; give the name of a file") from None
    if not real.parent.is_dir():
        raise InvalidConfig(f"there is no folder {real.parent}: create it, or choose another one")
    return real


@contextmanager
def new_file(path: Path, run_id: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """A file to write; it gets its name once the block is left without an error.

    Raises:
        InvalidConfig: it exists and must not be overwritten, or can't be there (``place_for``).
        StorageUnavailable: it can't be written.
    """
    real = place_for(path)
    if real.exists() and not overwrite:
        raise InvalidConfig(f"{path} exists: choose another name, or have it replaced (--overwrite)")
    part = real.with_name(f"{real.name}.{run_id}{UNFINISHED}")
    is_named = False
    try:
        with open_part(part, real) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(real)
        is_named = True
        _sync_folder(real.parent)
    except OSError as error:
        left = "the file of before is as it was" if real.exists() else "nothing is there"
        left = "it has its name, which a loss of power may take from it" if is_named else left
        raise _unwritten(f"{path} can't be written: {error.strerror}; {left}", error) from error
    finally:
        part.unlink(missing_ok=True)


def _unwritten(told: str, error: OSError) -> StorageUnavailable:
    """The error, with what to do where it stays so until somebody does it."""
    remedy = remedy_of(error, "let this user write there")
    return out_of_reach(f"{told}: {remedy}, then run it again" if remedy else told, error)


def _sync_folder(folder: Path) -> None:
    try:
        sync(folder)
    except OSError as error:
        # Of a folder that this user may not list, or that its file system can't sync, nothing more can be done.
        if error.errno not in {errno.EACCES, errno.EINVAL}:
            raise
