"""Where a resident is found: beside the address of a warm Spark, or in a folder of its user's alone.

    FILE.commands                          that of ``keptlog spark-server --address-file FILE``: whoever has chosen it,
                                           by ``KEPTLOG_SPARK_MASTER=file:FILE``, has chosen this with it
    $XDG_RUNTIME_DIR/keptlog/commands      that of ``keptlog resident``: whoever has started it
    ~/.cache/keptlog/resident/commands     the same, where no session gives a folder for the time that it lasts

``KEPTLOG_RESIDENT=off`` leaves both alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

SPARK_MASTER = "KEPTLOG_SPARK_MASTER"
RESIDENT = "KEPTLOG_RESIDENT"
_OFF = "off"
_FILE = "file:"
_ENDING = ".commands"
_OF_OTHERS = 0o077
_LONGEST_BYTES = 100
"""A system takes no socket's path of more than some hundred bytes, macOS 103, and there folders may be deep."""


def address_file(environment: Mapping[str, str]) -> str | None:
    """The file that ``KEPTLOG_SPARK_MASTER`` names; null if it is an address, or not set."""
    master = environment.get(SPARK_MASTER, "")
    return master.removeprefix(_FILE).removeprefix("//") if master.startswith(_FILE) else None


def socket_beside(file: str) -> str:
    """The path of the socket of the resident that belongs to an address file."""
    return file + _ENDING


def own_folder(environment: Mapping[str, str]) -> str | None:
    """The folder of a user's own resident, whether it is there or not; null if the environment names none."""
    places = (
        ("XDG_RUNTIME_DIR", "keptlog"),
        ("XDG_CACHE_HOME", "keptlog/resident"),
        ("HOME", ".cache/keptlog/resident"),
    )
    given = (f"{environment[name]}/{below}" for name, below in places if environment.get(name, "").startswith("/"))
    return next(given, None)


def socket_in(folder: str) -> str:
    """The path of the socket of a user's own resident."""
    return f"{folder}/commands"


@contextmanager
def as_short(path: str) -> Iterator[str]:
    """A path of the same socket that a system takes, until the block ends; the folder is there.

    Raises:
        OSError: the folder can't be opened.
    """
    folder, _, name = path.rpartition("/")
    if len(os.fsencode(path)) <= _LONGEST_BYTES:
        yield path
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{name}"
    finally:
        os.close(opened)


def is_off(environment: Mapping[str, str]) -> bool:
    """Whether no resident is to carry anything out."""
    return environment.get(RESIDENT, "").lower() == _OFF


def is_own_socket(path: str) -> bool:
    """Whether there is a socket that this user alone can reach."""
    return _is_own(path, stat.S_ISSOCK)


def is_own_folder(path: str) -> bool:
    """Whether there is a folder, and no link to one, in which this user alone can put anything."""
    return _is_own(path, stat.S_ISDIR)


def _is_own(path: str, is_kind: Callable[[int], bool]) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return is_kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _OF_OTHERS
