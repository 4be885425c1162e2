"""Where tests write: into memory, if this machine has a file system there with room enough.

They write, sync and delete some hundred thousand files that nobody reads an hour later. Of those that run Dagster that
is a seventh of the CPU on a disk, and a fifth of the time. Nothing that they say is less true: what a sync is for, a
machine that loses its power, no test can try.

They are gone with the process. Who names a folder by TMPDIR finds them there after a test has failed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
_ENOUGH_BYTES = 4 << 30
"""More than twice what the files of all tests take. A container has 64 MB there, unless it was given more."""


def folder_in_memory() -> tempfile.TemporaryDirectory[str] | None:
    """For all files of this process and of those that it starts, until it ends; nothing where TMPDIR is set."""
    if "TMPDIR" in os.environ or not SHARED_MEMORY.is_dir():
        return None
    if shutil.disk_usage(SHARED_MEMORY).free < _ENOUGH_BYTES:
        return None
    # Short, since a socket's path may take no more than 108 bytes.
    folder = tempfile.TemporaryDirectory(prefix="k-", dir=SHARED_MEMORY, ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o711)  # as one goes through /tmp: a server that root starts runs as somebody else
    os.environ["TMPDIR"] = tempfile.tempdir = folder.name
    return folder
