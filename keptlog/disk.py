"""What a disk refuses for good: it is full, no quota is left, a file is too large, it can't be written to.

A process that may open no more files is told likewise. That is no word of the disk, and comes of reading too: it says
nothing of what was done before (``is_of_reading_too``).

To try again would not help, and would leave one more unfinished file each time. So whoever writes says so at once, and
takes back what is there already. Where a change may have been made before, it is looked for first.
"""

from __future__ import annotations

import errno
import os
import pwd
from pathlib import Path
from typing import NamedTuple

from keptlog.errors import StorageUnavailable
from keptlog.regular_file import NotAFile

NO_FILE: tuple[type[OSError], ...] = (FileNotFoundError, IsADirectoryError, NotADirectoryError, NotAFile)
"""What a storage says that does answer: there is no file at this path."""
_NO_PATH = {errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO}
"""No file can lie there, or a socket does."""
IN_THE_WAY: tuple[type[OSError], ...] = (IsADirectoryError, NotADirectoryError, NotAFile)
"""Something else has the place of a file or of a folder: nothing was done, and nothing changes by trying again."""

LET_IT_ANSWER = "see that its disk answers"
"""What helps where nothing else does, and what is wrong may pass."""


class DiskRefusal(NamedTuple):
    """Why a disk refuses, in words that follow its name, and what to do about it."""

    why: str
    remedy: str


class FolderShut(PermissionError):
    """This user may not make files in a folder of a disk, which is the error's ``filename``."""

    @property
    def told(self) -> str:
        """What is missing, and to whom: a task may work as another user than who has asked for it."""
        return f"user {user_name()} may not write to {self.filename} ({self.strerror})"


def user_name() -> str:
    """As whom this process works; by number where this machine has no name for him."""
    user_id = os.geteuid()
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


_FULL = "make room"
FULL = DiskRefusal("is full", _FULL)
TOO_LARGE = DiskRefusal("takes no file as large as that", "raise the limit (ulimit -f), or take another disk")
_REFUSALS = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: DiskRefusal("has no quota left", f"{_FULL}, or raise the quota"),
    errno.EFBIG: TOO_LARGE,
    errno.EROFS: DiskRefusal("can't be written to", "mount it for writing"),
    errno.EMFILE: DiskRefusal("has as many files open for this process as it may have", "raise that limit (ulimit -n)"),
}


def refusal_of(error: BaseException) -> DiskRefusal | None:
    """What a disk refuses; null if something else is wrong."""
    number = error.errno if isinstance(error, OSError) else None
    return _REFUSALS.get(number) if number is not None else None


def stays_so(error: OSError) -> bool:
    """Whether a disk says so until somebody mends it: it refuses for good, or this user has not the right."""
    return refusal_of(error) is not None or isinstance(error, PermissionError)


def remedy_of(error: OSError, right: str) -> str | None:
    """What helps where a disk says so until somebody mends it, ``right`` where that is missing; null if it may pass."""
    refusal = refusal_of(error)
    return refusal.remedy if refusal else right if isinstance(error, PermissionError) else None


def out_of_reach(told: str, error: OSError) -> StorageUnavailable:
    """The error of a disk, which tells a program to try again only where that may help."""
    unavailable = StorageUnavailable(told)
    return unavailable.for_good() if stays_so(error) or _is_in_the_way(error) else unavailable


def _is_in_the_way(error: OSError) -> bool:
    """Whether a file's place has something else, which stays there until somebody moves it."""
    return isinstance(error, IN_THE_WAY) or error.errno in _NO_PATH


def is_no_file(error: OSError) -> bool:
    """Whether a disk that does answer says that no file is there; what else it says is no word on the file."""
    return isinstance(error, NO_FILE) or error.errno in _NO_PATH


def not_read(what: str, error: OSError, otherwise: str = LET_IT_ANSWER) -> StorageUnavailable:
    """The error of a file that a disk does not give, for another reason than a missing right."""
    return out_of_reach(f"{what} can't be read ({error.strerror}): {remedy_of(error, '') or otherwise}", error)


def not_listed(folder: Path, error: OSError, follows: str, instead: str = "") -> StorageUnavailable:
    """The error of a folder that can't be listed; ``follows`` is what that means, ``instead`` what else may be done."""
    todo = remedy_of(error, "let this user list it") or LET_IT_ANSWER
    what = f"{error.filename or folder} can't be listed ({error.strerror}), {follows}"
    return out_of_reach(f"{what}: {todo}{instead}", error)


def is_of_reading_too(error: BaseException) -> bool:
    """Whether this refusal may also have met a read, after a change was made."""
    return isinstance(error, OSError) and error.errno == errno.EMFILE


def refusal_text(what: str, path: str, refusal: DiskRefusal, *, is_sure: bool = True) -> str:
    """One line about a disk that refuses; ``what`` begins it, ``is_sure`` is whether nothing landed."""
    place, landed = path.removeprefix("file://"), "; nothing landed" if is_sure else ""
    return f"{what}: the disk of {place} {refusal.why}{landed}: {refusal.remedy}, then run it again"
