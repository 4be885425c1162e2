"""Small local files that are there whole, and durably, or not at all, whenever a process is killed.

Content is written beside its place under another name, ``<name>.<something random>.part``, is brought to the disk, and
only then gets its name. Who is killed in between leaves the part, which nobody takes for the file.

Two ways to give the name: over what is there, or only if nothing is. With the second, several processes at once make
one file, and each of them sees it whole.

To give a name that is taken takes away what had it. So a device or a pipe is refused, a symbolic link is followed, and
the new file gets the permissions and the owner of the old one.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shlex
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import BinaryIO

_logger = logging.getLogger(__name__)

UNFINISHED = ".part"
_ATTEMPTS = 5
_OF_OTHERS = 0o077


def something_random() -> str:
    """For names of unfinished files, of which nothing is ever made; ``secrets`` imports more than most commands do."""
    return os.urandom(8).hex()  # noqa: TID251


def is_unfinished(path: str) -> bool:
    """Whether a file is such a part, of a writer who is at work or was killed."""
    return path.endswith(UNFINISHED)


def replaced_file(path: Path) -> Path:
    """The file that is replaced, or made, under this name: the one that it leads to, if it is a symbolic link.

    Raises:
        OSError: something is there that is no regular file, or it can't be looked at.
    """
    real = Path(os.path.realpath(path)) if path.is_symlink() else path
    with contextlib.suppress(FileNotFoundError):
        # What is open can have a name in /proc, and none where the link leads to.
        if not stat.S_ISREG(path.stat().st_mode) or not real.exists():
            raise OSError(errno.EINVAL, "no regular file is there, and one would take its place", str(path))
    return real


def replace_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file, over the one that is there; with these permissions, if some are given.

    Raises:
        OSError: it can't be written; what was there is as it was.
    """
    path = replaced_file(path)
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
    command = f"chmod 600 {shlex.quote(str(path))}"
    _logger.warning("%s holds a secret, and others can read or change it (mode %o): %s", path, mode, command)


def why_unread(path: Path, error: PermissionError, instead: str) -> str:
    """Why this user may not read a file that may be for its owner alone; ``instead`` is what to do without it.

    It is no damage: who put it back from a backup, or moved it away, would take it from its owner.
    """
    told = f"{path} can't be read by this user ({error.strerror})"
    try:
        owner_id = path.stat().st_uid
    except OSError:  # of its folder
        return f"{told}: see to the permissions of its folder, or {instead}"
    if owner_id == os.geteuid():
        return f"{told}: nothing is lost; chmod 600 {shlex.quote(str(path))}"
    try:
        owner = path.owner()
    except KeyError:
        owner = f"user {owner_id}"
    return f"{told}: it belongs to {owner}, and nothing is lost; run it as {owner}, or {instead}"


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, make_durable: Callable[[Path], None] = sync) -> None:
    """Create a folder and those above it, each durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent, make_durable)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        make_durable(folder.parent)


def make_home_folder(folder: Path) -> None:
    """Create a folder in a home; one that root makes belongs to whom the home belongs, who is to write there too.

    One that is there stays as it is: somebody may have given it to others.

    Raises:
        OSError: it can't be made.
    """
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
        return
    if os.geteuid() == 0:
        home = folder.parent.stat()
        with contextlib.suppress(PermissionError):  # root of a container need not be that of the disk
            os.chown(folder, home.st_uid, home.st_gid)


def open_part(part: Path, path: Path, mode: int | None = None) -> BinaryIO:
    """A new file, which is to take the place of another: with these permissions, or else with its own and its owner.

    Raises:
        OSError: it can't be made.
    """
    before = None
    if mode is None:
        with contextlib.suppress(FileNotFoundError):
            before = path.stat()
            mode = stat.S_IMODE(before.st_mode)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        if before:
            with contextlib.suppress(PermissionError):  # only root gives files away
                os.fchown(descriptor, before.st_uid, before.st_gid)
        if mode is not None:
            os.fchmod(descriptor, mode)  # whatever the umask takes away
        return os.fdopen(descriptor, "wb")
    except BaseException:
        os.close(descriptor)
        part.unlink(missing_ok=True)
        raise


def _write_part(path: Path, content: bytes, mode: int | None = None) -> Path:
    part = path.with_name(f"{path.name}.{something_random()}{UNFINISHED}")
    try:
        with open_part(part, path, mode) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            # Of a full disk there is no name in it, and the part's says nothing to anybody.
            error.filename = str(path)
        raise
    return part
