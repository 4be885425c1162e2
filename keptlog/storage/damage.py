"""How a stored file that is not as it was written is told from storage that does not answer.

The first is corruption: the file is named, and nothing is tried again, because nothing changes by that. The second is
an outage: whoever asks later may get an answer. pyarrow has one ``OSError`` for both. So if what a file holds can't be
decoded, its bytes are asked for once more: an outage shows again, and bytes that come as before are damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from keptlog.errors import LogCorrupt
from keptlog.log.told.stored_files import damaged_text
from keptlog.regular_file import NotAFile
from keptlog.storage.files import Files

PIECE_BYTES = 8 * 2**20
"""Of a file that is read through, as much at once."""
T = TypeVar("T")


def damaged(path: str, what: str) -> LogCorrupt:
    """The error of a file that is not as it was written; ``what`` says how that shows, and has the file as subject."""
    return LogCorrupt(damaged_text(path, what))


def opened(files: Files, path: str, size_bytes: int | None = None) -> pa.NativeFile:
    """A file of a log, open; ``size_bytes`` is how long it should be, where that is known.

    Raises:
        FileNotFoundError: it is gone, also where a file has the place of its folder.
        LogCorrupt: a folder, a pipe or the like has its place. Nothing changes by trying again.
        OSError: the storage does not give it.
    """
    try:
        return files.open_input(path, size_bytes)
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror, path) from error
    except (IsADirectoryError, NotAFile) as error:
        raise damaged(path, f"can't be opened ({error.strerror})") from error


def decoded(source: pa.NativeFile, path: str, decode: Callable[[], T]) -> T:
    """What ``decode`` makes of a file that is open.

    Raises:
        LogCorrupt: what the file holds can't be decoded.
        OSError: the storage does not give its bytes.
    """
    try:
        return _decoded(path, decode)
    except OSError as error:
        if error.errno is not None:
            raise
    try:
        for position in range(0, source.size(), PIECE_BYTES):
            source.read_at(PIECE_BYTES, position)
    except OSError as error:
        # Arrow's errors over reads of an object store name no file.
        if error.errno is not None or path in str(error):
            raise
        raise OSError(f"{path} can't be read: {' '.join(str(error).split())}") from error
    try:
        return _decoded(path, decode)
    except OSError as error:
        raise _undecodable(path, error) from error


def _decoded(path: str, decode: Callable[[], T]) -> T:
    try:
        return decode()
    except MemoryError:
        raise
    except (pa.ArrowException, ValueError, LookupError) as error:
        raise _undecodable(path, error) from error


def _undecodable(path: str, error: Exception) -> LogCorrupt:
    return damaged(path, f"can't be decoded ({' '.join(str(error).split())})")
