"""Where the topics of a home lie to which nobody has opened the catalog: a disk, and nothing is changed on it."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import override

from keptlog.regular_file import read_file
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.io.read_only import READ_ONLY


class UnopenedFiles(TableFiles):
    """Small files are read by the operating system, so that nobody imports Arrow for them."""

    @override
    def read_bytes(self, path: str) -> bytes:
        local = local_path(path)
        return super().read_bytes(path) if local is None else read_file(Path(local))


def unopened_files() -> UnopenedFiles:
    """Those of any embedded catalog, to be looked at."""
    return UnopenedFiles(((READ_ONLY, "this was opened to look alone"),))
