"""Files that nobody refers to, and nobody ever will: deleted at once where that can be done, left to a purge where not.

To delete them only saves room. So it fails nobody: what was done beside them counts all the same, and an error that
led here is the one to be raised. Who cleans or appends need not even be allowed to delete (docs/lake.md).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from keptlog.errors import KeptlogError, first_line
from keptlog.storage.files import Files

_logger = logging.getLogger(__name__)

_CANT_BE_DONE = (OSError, KeptlogError)
"""The store refuses or does not answer; or nobody can even ask it, as where no client can be made for it."""


def discard(files: Files, paths: Iterable[str]) -> None:
    """Delete files that nobody refers to; one that can't be deleted now is left for a purge."""
    for path in paths:
        try:
            files.delete(path)
        except _CANT_BE_DONE as error:
            _logger.info("staged file %s is left for a purge: %s", path, first_line(error))


def discard_below(files: Files, folder: str) -> None:
    """The same of all files below a folder; where they can't be listed now all are left for a purge."""
    try:
        paths = [file.path for file in files.list(folder)]
    except _CANT_BE_DONE as error:
        _logger.info("staged files below %s are left for a purge: %s", folder, first_line(error))
    else:
        discard(files, paths)
