"""Files of a disk of this machine, by the operating system's paths.

What can't be looked at is not taken for what is not there: a folder that can't be listed, or a file that can't be asked
for, is an error, as it is of an object store. Who deletes, or says that something is gone, relies on it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.disk import FolderShut
from keptlog.folders import entries_below, is_not_there
from keptlog.regular_file import require_file
from keptlog.storage.files import StoredFile
from keptlog.whole_file import make_folder

if TYPE_CHECKING:
    import pyarrow as pa

_LINKED = "it is a link to a folder, in which nobody looks: put its files here, or move it out of the topic's folder"


def open_local(local: str, mode: str) -> pa.OSFile:
    """Open a file, as Arrow takes it.

    Raises:
        IsADirectoryError, NotAFile: it is none.
        OSError: it can't be opened.
    """
    import pyarrow as pa  # noqa: PLC0415  # who reads small files, or lists, needs none

    require_file(local)
    try:
        return pa.OSFile(local, mode)
    except OSError as error:
        # Arrow has no number for it, and without one nobody can tell it from a disk that fails.
        if error.errno is None and os.path.isdir(local):  # noqa: PTH112  # a Path takes some errors for no
            why = _LINKED if Path(local).is_symlink() else "it is a folder"
            raise IsADirectoryError(errno.EISDIR, why, local) from error
        raise


def create_local(local: str, make_durable: Callable[[Path], None]) -> pa.OSFile:
    """Create a file, and its folder if need be.

    Raises:
        FolderShut: this user may not.
        OSError: it can't be.
    """
    try:
        make_folder(Path(local).parent, make_durable)
        return open_local(local, "wb")
    except PermissionError as error:
        # Arrow's error has the file's path twice, and no word of the folder whose right is missing.
        shut = next(str(each) for each in Path(local).parents if os.path.isdir(each))  # noqa: PTH112  # as above
        number = error.errno or errno.EACCES
        raise FolderShut(number, os.strerror(number), shut) from error


def delete_local(local: str) -> None:
    """Delete a file; what is already gone is no error. Empty folders go too whose names have a value of a record.

    Raises:
        OSError: it can't be; or it is a link, and what it leads to would stay, also where its disk is not mounted now.
    """
    path = Path(local)
    if path.is_symlink():
        where = path.resolve() if path.exists() else f"{path.readlink()}, which is not there now (is its disk mounted?)"
        why = f"it is a link to {where}: delete both by hand if nobody needs them"
        raise PermissionError(errno.EPERM, why)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    with contextlib.suppress(OSError):  # not empty, or gone
        for folder in itertools.takewhile(_is_named_by_value, path.parents):
            folder.rmdir()


def _is_named_by_value(folder: Path) -> bool:
    """Whether it is called as Iceberg's of a partition field are, ``key=YWRh``; the number of a log tells nothing."""
    name, is_value, _ = folder.name.partition("=")
    return bool(is_value) and name != "partition"


def local_exists(local: str) -> bool:
    """Whether a file is there now; a folder in its place is none, and neither is a pipe, or a link to itself.

    Raises:
        OSError: that can't be told.
    """
    try:
        return stat.S_ISREG(os.stat(local).st_mode)  # noqa: PTH116  # a Path takes some errors for no
    except OSError as error:
        if is_not_there(error, local):
            return False
        raise


def list_local(folder: str, local: str) -> Iterator[StoredFile]:
    """All files below a folder, which is called so on the disk; and links to folders, for bytes may lie behind them.

    Raises:
        OSError: a folder below it can't be listed, or a file can't be asked for.
    """
    for parent, names in entries_below(local):
        for name in names:
            status = _status(Path(parent, name))
            if status:
                path = f"{folder}{parent.removeprefix(local)}/{name}"
                yield StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)


def lost_links(folder: str, local: str) -> Iterator[str]:
    """Links below a folder that lead nowhere now: a disk that is not mounted may have their bytes.

    Raises:
        OSError: a folder below it can't be listed.
    """
    for parent, names in entries_below(local):
        for name in names:
            path = Path(parent, name)
            if path.is_symlink() and not path.exists():
                yield f"{folder}{parent.removeprefix(local)}/{name}"


def lost_link_above(local: str) -> Path | None:
    """The link on the way to a file that leads nowhere now: a disk that is not mounted may have the file."""
    return next((parent for parent in Path(local).parents if parent.is_symlink() and not parent.exists()), None)


def _status(path: Path) -> os.stat_result | None:
    """Null if nothing is there: it went meanwhile, or is a link that leads nowhere, or to itself."""
    try:
        return path.stat()
    except OSError as error:
        if is_not_there(error, path):
            return None
        raise
