"""The two ways to files, both to the simulated disk: ``Files`` of keptlog and ``FileIO`` of PyIceberg.

What is written is there, empty, from its beginning on, and whole and durable at its end; between the two lies
everything that can go wrong with it.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import pyarrow as pa
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from typing_extensions import override

from keptlog.storage.damage import damaged
from keptlog.storage.files import StoredFile
from keptlog.storage.leftover import discard
from keptlog.table.io.files import TableFiles
from keptlog.table.io.metadata_checksums import has_checksum, with_checksum, without_checksum
from tests.sim.disk import Disk, WatchedDisk
from tests.sim.faults import Fault
from tests.sim.world import World

READ = (Fault.EIO, Fault.CRASH_BEFORE)
OPEN = (Fault.EIO, Fault.FULL_DISK, Fault.CRASH_BEFORE)
CLOSE = (Fault.FULL_DISK, Fault.HALF_FILE, Fault.EIO, Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
SYNC = (Fault.CRASH_BEFORE, Fault.FULL_DISK, Fault.EIO)
DELETE = (Fault.EIO, Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


@dataclass
class Storage:
    """The disk as the programs of one world reach it."""

    world: World
    disk: Disk = field(default_factory=Disk)
    _full_for: int = 0
    """How many more writes find the disk full."""
    begun_ms: dict[str, int] = field(default_factory=dict)
    """When each file was created, by its path; a purge may have listed it before it was whole."""
    watchers: list[Watcher] = field(default_factory=list)

    def read(self, path: str) -> bytes:
        self._raise(self.world.seam("read", _short(path), READ))
        file = self.disk.files.get(path)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return file.content

    def begin(self, path: str, *, is_shown: bool = True) -> None:
        """A file is there, and empty; or nobody sees it before its end."""
        self._raise(self.world.seam("create", _short(path), OPEN), writes=True)
        self.begun_ms[path] = self.world.now_ms
        if is_shown:
            self.disk.write(path, b"", self.world.now_ms)

    def end(self, path: str, content: bytes, *, is_durable: bool = True, was_shown: bool = True) -> None:
        """A file is written and synced."""
        fault = self.world.seam("write", f"{_short(path)} {len(content)} bytes", CLOSE)
        if fault in {Fault.HALF_FILE, Fault.FULL_DISK}:
            self.disk.write(path, content[: len(content) // 2], self.world.now_ms)
        if fault is Fault.HALF_FILE:
            self.world.crash()
        self._raise(fault, writes=True)
        if was_shown and path not in self.disk.files:
            self._after(fault)
            return  # somebody has deleted it since it was begun: what is written has no name any more
        self.disk.write(path, content, self.world.now_ms)
        if is_durable:
            self.sync(path)
        self._after(fault)

    def has_half_of(self, path: str, content: bytes) -> bool:
        """Whether a beginning lies there, and not what another process has written under the same name."""
        file = self.disk.files.get(path)
        return file is not None and len(file.content) < len(content) and content.startswith(file.content)

    def sync(self, path: str) -> None:
        self.disk.sync(path)
        for watcher in self.watchers:
            watcher.written(path)

    def sync_all(self, paths: Iterable[str]) -> None:
        """What one task wrote is durable."""
        self._raise(self.world.seam("sync", "all", SYNC), writes=True)
        for path in paths:
            self.sync(path)

    def delete(self, path: str) -> None:
        """Gone, or it never was there."""
        fault = self.world.seam("delete", _short(path), DELETE)
        self._raise(fault)
        for watcher in self.watchers:
            watcher.deleting(path)
        if not self.disk.delete(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._after(fault)

    def exists(self, path: str) -> bool:
        self._raise(self.world.seam("exists", _short(path), READ))
        return path in self.disk.files

    def below(self, folder: str) -> list[StoredFile]:
        self._raise(self.world.seam("list", _short(folder), READ))
        return [StoredFile(path, len(file.content), file.modified_ms) for path, file in self.disk.below(folder)]

    def begun_at_ms(self, path: str) -> int:
        """When a file was created; 0 if nobody knows."""
        return self.begun_ms.get(path, 0)

    def _after(self, fault: Fault | None) -> None:
        if fault is Fault.CRASH_AFTER:
            self.world.crash()

    def _raise(self, fault: Fault | None, *, writes: bool = False) -> None:
        actor = self.world.current
        if writes and not self.world.dice.are_held and not (actor and actor.is_spared):
            if fault is Fault.FULL_DISK:
                self._full_for = self.world.dice.chance.randrange(1, 12)
            if self._full_for:
                self._full_for -= 1
                _os_error(errno.ENOSPC)
        if fault is Fault.EIO:
            _os_error(errno.EIO)


class WatchedStorage(Protocol):
    """What a history and its oracles ask of a storage, besides what the programs do."""

    world: World
    watchers: list[Watcher]

    @property
    def disk(self) -> WatchedDisk:
        """As it is, looked at past everything that goes wrong."""

    def begun_at_ms(self, path: str) -> int:
        """When a file was created; 0 if nobody knows."""


class Watcher:
    """Whoever wants to know what becomes of files: an oracle."""

    def written(self, path: str) -> None:
        """A file is there, whole and durable."""

    def deleting(self, path: str) -> None:
        """A file is about to go."""


def _os_error(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))


def _short(path: str) -> str:
    return path.removeprefix("file://").removeprefix(ROOT)


ROOT = "/sim/"
WAREHOUSE = f"file://{ROOT}warehouse"


@dataclass(frozen=True)
class SimulatedFiles(TableFiles):
    """``Files`` over the simulated disk."""

    storage: Storage = field(kw_only=True, repr=False)
    waiting: list[str] | None = None
    """What is to be durable at the end; null if all is at once."""

    @override
    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        return pa.BufferReader(self.storage.read(path))

    @override
    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with self._written(path, is_shown=True) as sink:
            yield sink

    @contextmanager
    def _written(self, path: str, *, is_shown: bool) -> Iterator[pa.NativeFile]:
        self.storage.begin(path, is_shown=is_shown)
        sink = pa.BufferOutputStream()
        content = b""
        try:
            yield sink
            content = sink.getvalue().to_pybytes()
            self.storage.end(path, content, is_durable=self.waiting is None, was_shown=is_shown)
        except BaseException:
            if is_shown or self.storage.has_half_of(path, content):
                with suppress(OSError):
                    self.delete(path)
            raise
        if self.waiting is not None:
            self.waiting.append(path)

    @override
    def write_bytes(self, path: str, content: bytes) -> None:
        # A small file is there whole or not at all. Cruel: a store that shows half of one when its writer died.
        with self._written(path, is_shown=False) as sink:
            sink.write(content)

    @override
    @contextmanager
    def durable_at_end(self) -> Iterator[TableFiles]:
        files = SimulatedFiles(storage=self.storage, waiting=[])
        yield files
        paths = files.waiting or []
        try:
            self.storage.sync_all(paths)
        except OSError:
            discard(self, paths)
            raise

    @override
    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.storage.delete(path)

    @override
    def make_deletions_durable(self, folder: str) -> None:
        self.storage.world.seam("sync", _short(folder), (Fault.CRASH_BEFORE, Fault.EIO))
        self.storage.disk.sync_deletions(folder)

    @override
    def exists(self, path: str) -> bool:
        return self.storage.exists(path)

    @override
    def list(self, folder: str) -> Iterator[StoredFile]:
        yield from self.storage.below(folder)


class _Input(InputFile):
    def __init__(self, location: str, storage: Storage) -> None:
        super().__init__(location)
        self._storage = storage

    def __len__(self) -> int:
        return len(self._storage.read(self.location))

    def exists(self) -> bool:
        return self._storage.exists(self.location)

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002  # PyIceberg's
        content = self._storage.read(self.location)
        try:
            return io.BytesIO(without_checksum(self.location, content) if has_checksum(self.location) else content)
        except ValueError as error:
            raise damaged(self.location, str(error)) from None


class _Stream(io.BytesIO):
    """A file that is written and synced when it is closed."""

    def __init__(self, path: str, storage: Storage) -> None:
        super().__init__()
        self._path, self._storage = path, storage

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            if has_checksum(self._path):
                content = with_checksum(self._path, content)
            super().close()
            self._storage.end(self._path, content)

    def __del__(self) -> None:
        """What is not closed was never written."""


class _Output(OutputFile):
    def __init__(self, location: str, storage: Storage) -> None:
        super().__init__(location)
        self._storage = storage

    def __len__(self) -> int:
        return len(self._storage.read(self.location))

    def exists(self) -> bool:
        return self._storage.exists(self.location)

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._storage)

    def create(self, overwrite: bool = False) -> OutputStream:
        if not overwrite and self.exists():
            raise FileExistsError(f"Cannot create file, already exists: {self.location}")
        self._storage.begin(self.location)
        return _Stream(self.location, self._storage)


class SimulatedIO(FileIO):
    """PyIceberg's way to the simulated disk; with checksums, as ``DurableFileIO`` has them."""

    def __init__(self, storage: Storage) -> None:
        super().__init__({})
        self._storage = storage

    def new_input(self, location: str) -> InputFile:
        return _Input(location, self._storage)

    def new_output(self, location: str) -> OutputFile:
        return _Output(location, self._storage)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._storage.delete(location if isinstance(location, str) else location.location)
