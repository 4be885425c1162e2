"""Files of a disk of this machine, by the operating system's paths."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.storage.files import StoredFile

if TYPE_CHECKING:
    import pyarrow as pa


def open_local(local: str, mode: str) -> pa.OSFile:
    """Open a file, as Arrow takes it."""
    import pyarrow as pa  # noqa: PLC0415  # who reads small files, or lists, needs none

    return pa.OSFile(local, mode)


def list_local(folder: str, local: str) -> Iterator[StoredFile]:
    """All files below a folder, which is called so on the disk."""
    for parent, _, names in os.walk(local):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = Path(parent, name).stat()
                path = f"{folder}{parent.removeprefix(local)}/{name}"
                yield StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)
