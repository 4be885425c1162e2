"""Storage by path, for driver and executors alike.

A local path is opened by the operating system, so that a task on an executor needs no catalog library. Whatever else
the catalog's warehouse lies on is opened through PyIceberg's own filesystems, configured by the catalog's properties.

A local file is durable once it is closed: the file and its folder are fsynced, because the catalog's database is, and
after a power loss a committed snapshot must not name files that never reached the disk. A disk takes as long for one
fsync as for several at once, so a task, which writes many files, has them go on while it works and waits at its end.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from keptlog.errors import InvalidConfig
from keptlog.storage.files import StoredFile

Properties = tuple[tuple[str, Any], ...]
READ_ONLY = "keptlog.read-only"
"""Of a catalog's properties: why no file may be changed through it. Tasks take it along."""
_NS_PER_MS = 1_000_000
_SYNCS_AT_ONCE = 8


@dataclass(frozen=True)
class TableFiles:
    """The ``Files`` of one catalog; ``properties`` are the catalog's, and may hold credentials."""

    properties: Properties = field(default=(), repr=False)

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random reads; FileNotFoundError if it is gone."""
        local = local_path(path)
        if local is not None:
            return pa.OSFile(local, "rb")
        filesystem, inner = self._remote(path)
        return filesystem.open_input_file(inner)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """Create a file. It exists whole, and durably, once the context is left without an error.

        Raises:
            InvalidConfig: the home is read-only.
        """
        require_writable(self.properties)
        local = local_path(path)
        if local is not None:
            make_folder(Path(local).parent, self._make_durable)
            sink = pa.OSFile(local, "wb")
        else:
            filesystem, inner = self._remote(path)
            sink = filesystem.open_output_stream(inner)
        try:
            yield sink
            sink.close()
            if local is not None:
                self._make_durable(Path(local))
                self._make_durable(Path(local).parent)
        except BaseException:
            # Each by itself: on a full disk to close fails too.
            with contextlib.suppress(OSError):
                sink.close()
            with contextlib.suppress(OSError):
                self.delete(path)
            raise

    @contextlib.contextmanager
    def durable_at_end(self) -> Iterator[TableFiles]:
        """The same files; what is created through them is durable once the context is left without an error."""
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            files = _DurableAtEnd(self.properties, pool=pool)
            yield files
            files.wait()

    def delete(self, path: str) -> None:
        """Delete a file; one that is already gone is no error.

        Raises:
            InvalidConfig: the home is read-only.
        """
        require_writable(self.properties)
        local = local_path(path)
        with contextlib.suppress(FileNotFoundError):
            if local is not None:
                Path(local).unlink()
            else:
                filesystem, inner = self._remote(path)
                filesystem.delete_file(inner)

    def make_deletions_durable(self, folder: str) -> None:
        """Wait until what was deleted below a folder stays gone in a power loss; a deletion alone may be taken back."""
        local = local_path(folder)
        for parent, _, _ in os.walk(local) if local is not None else ():
            with contextlib.suppress(FileNotFoundError):
                self._make_durable(Path(parent))

    def exists(self, path: str) -> bool:
        """Whether a file is there now."""
        local = local_path(path)
        if local is not None:
            return Path(local).exists()
        filesystem, inner = self._remote(path)
        return bool(filesystem.get_file_info(inner).is_file)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder; nothing if the folder does not exist."""
        folder = folder.rstrip("/")
        local = local_path(folder)
        if local is not None:
            yield from _list_local(folder, local)
            return
        filesystem, inner = self._remote(folder)
        for info in filesystem.get_file_info(pafs.FileSelector(inner, allow_not_found=True, recursive=True)):
            if info.is_file:
                yield StoredFile(folder + info.path[len(inner) :], info.size, (info.mtime_ns or 0) // _NS_PER_MS)

    def read_bytes(self, path: str) -> bytes:
        """The whole of a small file; FileNotFoundError if it is gone."""
        with self.open_input(path) as source:
            return bytes(source.read())

    def write_bytes(self, path: str, content: bytes) -> None:
        """Create a small file, durably."""
        with self.open_output(path) as sink:
            sink.write(content)

    def _make_durable(self, path: Path) -> None:
        sync(path)

    def _remote(self, path: str) -> tuple[pafs.FileSystem, str]:
        from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415  # not on the way of a local path

        scheme, authority, inner = PyArrowFileIO.parse_location(path, dict(self.properties))
        return _filesystem(self.properties, scheme, authority), inner


@dataclass(frozen=True)
class _DurableAtEnd(TableFiles):
    """Files that are fsynced by other threads; their folders once, at the end."""

    pool: ThreadPoolExecutor = field(kw_only=True)
    _syncs: list[Future[None]] = field(default_factory=list)
    _folders: set[Path] = field(default_factory=set)

    def wait(self) -> None:
        """Return when all is durable."""
        for done in [*self._syncs, *(self.pool.submit(sync, folder) for folder in self._folders)]:
            done.result()

    def _make_durable(self, path: Path) -> None:
        if path.is_dir():
            self._folders.add(path)
        else:
            self._syncs.append(self.pool.submit(sync, path))


@lru_cache(maxsize=16)
def _filesystem(properties: Properties, scheme: str, authority: str) -> pafs.FileSystem:
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415  # not on the way of a local path

    return PyArrowFileIO(dict(properties)).fs_by_scheme(scheme, authority)


def require_writable(properties: Iterable[tuple[str, Any]]) -> None:
    """Refuse to change a file where the catalog's properties forbid it.

    Raises:
        InvalidConfig: with the reason.
    """
    for name, why in properties:
        if name == READ_ONLY:
            raise InvalidConfig(why)


def local_path(path: str) -> str | None:
    """The operating system's path of a local location (``/…``, ``file:/…`` or ``file:///…``), null for any other.

    Taken as it is, not as a URL: a folder may be called ``50%`` or ``a#b``.
    """
    if path.startswith("file://"):
        return path.removeprefix("file://")
    if path.startswith("file:"):
        return path.removeprefix("file:")
    return None if "://" in path else path


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, make_durable: Callable[[Path], None] = sync) -> None:
    """Create a folder and those above it, each durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent, make_durable)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        make_durable(folder.parent)


def _list_local(folder: str, local: str) -> Iterator[StoredFile]:
    for parent, _, names in os.walk(local):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = Path(parent, name).stat()
                path = f"{folder}{parent.removeprefix(local)}/{name}"
                yield StoredFile(path, status.st_size, status.st_mtime_ns // _NS_PER_MS)
