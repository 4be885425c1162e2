"""What a disk refuses for good: it is full, no quota is left, it can't be written to.

To try again would not help, and would leave one more unfinished file each time. So whoever writes says so at once, and
takes back what is there already.
"""

from __future__ import annotations

import errno

_WHY = {errno.ENOSPC: "is full", errno.EDQUOT: "has no quota left", errno.EROFS: "can't be written to"}


def refusal_of(error: BaseException) -> str | None:
    """Why a disk refuses, in words that follow its name; null if something else is wrong."""
    number = error.errno if isinstance(error, OSError) else None
    return _WHY.get(number) if number is not None else None


def refusal_text(what: str, path: str, why: str) -> str:
    """One line about a disk that refuses; ``what`` begins it, ``why`` is from ``refusal_of``."""
    return f"{what}: the disk of {path.removeprefix('file://')} {why}; nothing landed: make room, then run it again"
