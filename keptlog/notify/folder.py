"""The home's folder ``notify``, and one at work in it at a time.

    notify/state.json       conditions, and by adapter what it was told (``memory``)
    notify/checks.json      what verify has found broken (``checks``)
    notify/ticks-*.json     when the sensors ticked last, and which ticks have not ended (``ticks``)
    notify/lock             held while somebody looks and sends

A process that is killed gives the lock back.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keptlog.disk import out_of_reach
from keptlog.settings import require_entry
from keptlog.whole_file import make_home_folder

FOLDER = "notify"


@dataclass(frozen=True, slots=True)
class NotifyFolder:
    """The folder in a home."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / FOLDER

    @contextlib.contextmanager
    def locked(self, name: str = "lock", *, waits: bool = False) -> Iterator[bool]:
        """Whether nobody else is at work; until the end, nobody else is. Who ``waits`` does so for the others' end.

        Raises:
            StorageUnavailable: the folder can't be written.
        """
        with self.telling_why():
            self.home.mkdir(parents=True, exist_ok=True)
            make_home_folder(self.path)
            descriptor = _opened(self.path / name)
        try:
            with self.telling_why():
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
                    is_mine = True
                except BlockingIOError:
                    is_mine = False
            yield is_mine
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def telling_why(self) -> Iterator[None]:
        """Turn what the disk says into an error that names the folder."""
        try:
            yield
        except OSError as error:
            require_entry(self.home)
            why = error.strerror or type(error).__name__
            raise out_of_reach(
                f"{error.filename or self.path} can't be read or written ({why}), so it is not known what was told, "
                "and nothing is sent: mend that, or set KEPTLOG_HOME to a folder that can be written",
                error,
            ) from None


def _opened(lock: Path) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError as refused:
        try:
            # Another user has left it. A disk of this machine locks what may only be read, too.
            return os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise refused from None
