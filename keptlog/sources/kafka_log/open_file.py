"""A segment file that is read forward, a window at a time."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import BinaryIO

from keptlog.disk import LET_IT_ANSWER, NO_FILE, out_of_reach, remedy_of
from keptlog.errors import StorageUnavailable

READ_BYTES = 4 * 2**20
"""What is read of a file at once; more only for a batch that is larger."""


@dataclass
class OpenFile:
    """A file that is read forward, a window at a time."""

    file: BinaryIO
    size_bytes: int
    _window: bytes = b""
    _window_start: int = 0
    _window_end: int = 0

    def read(self, position: int, length: int) -> bytes:
        """Bytes that must lie inside of the file.

        Raises:
            StorageUnavailable: the file became shorter.
        """
        if position < self._window_start or position + length > self._window_end:
            self.file.seek(position)
            self._window = self.file.read(max(length, READ_BYTES))
            self._window_start, self._window_end = position, position + len(self._window)
            if len(self._window) < length:
                raise became_shorter(self.file.name)
        start = position - self._window_start
        return self._window[start : start + length]

    def peek(self, position: int, length: int) -> bytes:
        """A few bytes that must lie inside of the file; the window stays where it is.

        Raises:
            StorageUnavailable: the file became shorter.
        """
        if self._window_start <= position and position + length <= self._window_end:
            return self.read(position, length)
        self.file.seek(position)
        found = self.file.read(length)
        if len(found) < length:
            raise became_shorter(self.file.name)
        return found


def became_shorter(path: object) -> StorageUnavailable:
    """What is raised of a file that lost bytes while it was read."""
    return StorageUnavailable(f"{path} became shorter while it was read; read it again")


def unread(what: str, error: OSError, otherwise: str) -> StorageUnavailable:
    """What is raised of a file or folder that a disk does not give; a broker took it only where it is gone."""
    is_gone = isinstance(error, NO_FILE) or error.errno == errno.ESTALE
    remedy = remedy_of(error, "let this user read it") or (None if is_gone else LET_IT_ANSWER)
    todo = f"{remedy}, and" if remedy else f"{otherwise},"
    return out_of_reach(f"{what}: {error.strerror or error}; {todo} try again", error)
