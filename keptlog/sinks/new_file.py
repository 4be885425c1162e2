"""A file that is there whole or not at all: it is written beside its name, made durable, and renamed.

A run that was killed leaves ``NAME.<run id>.part``, which nobody takes for the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from keptlog.errors import InvalidConfig, StorageUnavailable


@contextmanager
def new_file(path: Path, run_id: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """A file to write; it gets its name once the block is left without an error.

    Raises:
        InvalidConfig: it exists and must not be overwritten, or its folder does not exist.
        StorageUnavailable: it can't be written.
    """
    if path.is_dir():
        raise InvalidConfig(f"{path} is a folder: give the name of a file in it")
    if path.exists() and not overwrite:
        raise InvalidConfig(f"{path} exists: choose another name, or have it replaced (--overwrite)")
    if not path.parent.is_dir():
        raise InvalidConfig(f"there is no folder {path.parent}: create it, or choose another one")
    part = path.with_name(f"{path.name}.{run_id}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StorageUnavailable(f"{path} can't be written: {error.strerror}; nothing is there") from error
    finally:
        part.unlink(missing_ok=True)
