"""Files of this machine, read only if they are files.

Who opens a pipe waits until somebody writes into it, which may be never, and a device may have no end. So what takes a
file's place in a home or in a topic's folder is told as what it is, before it is opened. A file that a person named may
be a pipe (``<(pass show kafka)``), and is not asked for here.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from contextlib import ExitStack
from pathlib import Path

_from_pipes: dict[tuple[int, int], bytes] = {}
"""By device and inode, what pipes gave that a person has named."""
_one_reader = threading.Lock()


class NotAFile(OSError):
    """What is there in the place of a file is none. To ask again gets the same answer, until somebody moves it away."""


_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_file(path: Path) -> bytes:
    """The whole of a file.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it can't be read, or is none.
    """
    require_file(str(path))
    return path.read_bytes()


def read_named(path: Path) -> bytes:
    """The whole of a file that a person has named, which may be a pipe.

    A pipe gives what it has once, and a command asks for its secret more than once: to tell what it would do, to do it,
    and for each topic. So what it gave is what it has, for as long as this process lives.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it can't be read.
    """
    status = path.stat()
    if not stat.S_ISFIFO(status.st_mode):
        return path.read_bytes()
    pipe = status.st_dev, status.st_ino
    with _one_reader:
        return _from_pipes.get(pipe) or _read_pipe(path, pipe)


def _read_pipe(path: Path, pipe: tuple[int, int]) -> bytes:
    """What it gives. It is kept, unless that is nothing, and so is the pipe: another one would get its number else."""
    with ExitStack() as until_read:
        if hasattr(os, "O_PATH"):  # by which nothing is read, and no writer is let in
            until_read.callback(os.close, os.open(path, os.O_PATH))
        content = path.read_bytes()
        if content:
            _from_pipes[pipe] = content
            until_read.pop_all()
    return content


def require_file(path: str) -> None:
    """Refuse what can't be opened as a file without harm; what is not there, and a folder, are told by who opens it.

    Raises:
        NotAFile: a pipe, a socket or a device is there, or a link that leads to itself.
        OSError: it can't be asked for.
    """
    try:
        kind = kind_instead(path)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotAFile(errno.ELOOP, "it is a link that leads to itself, and to no file", path) from error
    if kind:
        raise NotAFile(errno.EINVAL, f"it is {kind}, and no file", path)


def kind_instead(path: str) -> str | None:
    """What is there in the place of a file: a pipe, a socket or a device; null if none of these is.

    The null device is an empty file: people put it where they want a file to say nothing.

    Raises:
        OSError: that can't be told.
    """
    try:
        status = os.stat(path)  # noqa: PTH116  # a Path would take longer than the disk
    except FileNotFoundError:
        return None
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    return None if kind is None or os.path.samestat(status, os.stat(os.devnull)) else kind  # noqa: PTH116
