"""keptlog's own code, as one file that Spark's workers import it from, and a mark by which the same code is known.

    keptlog-1f2e3d4c5b6a.zip            keptlog/errors.py, keptlog/engine/tasks.py …

All of it is Python, so one archive fits every machine. The same code gives the same archive to the byte, whoever packs
it. What is left out is Dagster's, which no task imports.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import BinaryIO

_PACKAGE = "keptlog"
_NOT_IN_TASKS = ("dagster", "__pycache__")
_CODE = (".py", ".properties", ".typed")
_SAME_TIME = (1980, 1, 1, 0, 0, 0)
"""The first one that a zip file can say."""


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Twelve digits that differ as soon as the code of this process's keptlog does."""
    seen = hashlib.sha256()
    for name, content in _code():
        seen.update(f"{name} {len(content)}\n".encode())
        seen.update(content)
    return seen.hexdigest()[:12]


def archive_name() -> str:
    """What an archive of this code is called. Two that differ may lie in one folder, and in one session of Spark."""
    return f"{_PACKAGE}-{fingerprint()}.zip"


def write_archive(sink: BinaryIO) -> None:
    """Write the archive into an open file: where one may be that is in use, it has to be there whole or not at all.

    Raises:
        OSError: the file can't be written.
    """
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _code():
            archive.writestr(zipfile.ZipInfo(name, _SAME_TIME), content, zipfile.ZIP_DEFLATED)


def _code() -> Iterator[tuple[str, bytes]]:
    """Names and contents of all files, sorted; this may itself run from an archive."""
    yield from sorted(_files_in(resources.files(_PACKAGE), _PACKAGE))


def _files_in(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.name in _NOT_IN_TASKS:
            continue
        if each.is_dir():
            yield from _files_in(each, f"{name}/{each.name}")
        elif each.name.endswith(_CODE):
            yield f"{name}/{each.name}", each.read_bytes()
