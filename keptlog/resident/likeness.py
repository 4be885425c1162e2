"""What a process fixes once for all when it starts and imports: two that have it alike would import the same.

A client tells its own, and a resident does only what comes from one like it was when it began. So a changed file of
keptlog's, another Python, or another configuration of PyIceberg's is never ignored: that client does its command
itself. All else is handed over, or is read when it is needed.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120  # pathlib takes longer
_READ_ONCE = ("PYTHON", "LD_", "PYICEBERG_", "ARROW_", "OMP_", "MALLOC_", "GRPC_")
"""How variables begin that Python, or a library, reads when it starts."""
_CONFIGURATION = ".pyiceberg.yaml"


def likeness() -> list[object]:
    """This process's; it can be written as JSON. It takes a few milliseconds."""
    return [
        [sys.version, sys.prefix, list(sys.flags), sys.warnoptions, sorted(map(str, sys._xoptions.items()))],  # noqa: SLF001
        [sys.getfilesystemencoding(), *([each.encoding, each.errors] for each in (sys.stdin, sys.stdout, sys.stderr))],
        code_likeness(),
        [_stamp(folder) for folder in sys.path if folder.endswith("-packages")],
        sorted([name, value] for name, value in os.environ.items() if name.upper().startswith(_READ_ONCE)),
        [_stamp(os.path.join(folder, _CONFIGURATION)) for folder in _configured_in()],  # noqa: PTH118
        [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), sorted(os.getgroups())],
        [_namespace(name) for name in ("mnt", "pid", "net", "user", "ipc", "uts")],
        _stamp("/", is_dated=False),
    ]


def code_likeness() -> list[object]:
    """Where this keptlog's modules are, and a number that changes when one of them does.

    Raises:
        OSError: they are not files in folders, or can't be listed.
    """
    return [_PACKAGE, zlib.crc32(repr(sorted(_files(_PACKAGE))).encode())]


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, time and size of each module; links lead to Dagster's code, which no command imports."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size


def _configured_in() -> list[str]:
    """Where PyIceberg looks for its configuration."""
    return [os.environ.get("PYICEBERG_HOME", ""), os.path.expanduser("~"), os.getcwd()]  # noqa: PTH109, PTH111


def _stamp(path: str, *, is_dated: bool = True) -> list[int] | None:
    """Which file it is, and when it was changed; null if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return [status.st_dev, status.st_ino, status.st_mtime_ns if is_dated else 0]


def _namespace(name: str) -> str | None:
    """What else this process sees than others, as in a container; null where the system does not tell."""
    try:
        return os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115
    except OSError:
        return None
