"""Where a resident is found: beside the file in which ``keptlog spark-server`` keeps its address.

So who has chosen a warm Spark for his commands, by ``KEPTLOG_SPARK_MASTER=file:…``, has chosen this with it, and nobody
else meets it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

SPARK_MASTER = "KEPTLOG_SPARK_MASTER"
_FILE = "file:"
_ENDING = ".commands"
_OF_OTHERS = 0o077


def address_file(environment: Mapping[str, str]) -> str | None:
    """The file that ``KEPTLOG_SPARK_MASTER`` names; null if it is an address, or not set."""
    master = environment.get(SPARK_MASTER, "")
    return master.removeprefix(_FILE).removeprefix("//") if master.startswith(_FILE) else None


def socket_beside(file: str) -> str:
    """The path of the socket of the resident that belongs to an address file."""
    return file + _ENDING


def is_own_socket(path: str) -> bool:
    """Whether there is a socket that this user alone can reach."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _OF_OTHERS
