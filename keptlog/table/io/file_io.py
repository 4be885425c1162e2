"""PyIceberg's file access: what it writes gets the same fsync as our segments, if it is local, and a checksum.

Local files are opened by the operating system, so that PyIceberg's own access through Arrow, whose import takes longer
than most commands, is only imported for what lies elsewhere.

Metadata files, manifest lists and manifests are small and read as a whole, so they are held until they are closed, and
looked at before anybody sees a byte of them (``metadata_checksums``).
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from typing_extensions import override

from keptlog.regular_file import require_file
from keptlog.storage.damage import damaged
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.io.metadata_checksums import has_checksum, with_checksum, without_checksum
from keptlog.table.io.read_only import require_writable
from keptlog.whole_file import make_folder, sync

if TYPE_CHECKING:
    from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

_TRIES = 5
_read_before: ContextVar[dict[str, bytes] | None] = ContextVar("read before", default=None)
"""Metadata that was read, whole, by its location; null outside of ``metadata_read_once``."""


@contextmanager
def metadata_read_once() -> Iterator[None]:
    """Within it an object store is asked for each file of metadata once, by this thread.

    A name is never used for other content, and which file is the current one is asked of the catalog each time. For one
    change, not for longer: whoever looks for damage is to see what is there.
    """
    if _read_before.get() is not None:
        yield
        return
    outside = _read_before.set({})
    try:
        yield
    finally:
        _read_before.reset(outside)


class _DurableStream(io.BufferedWriter):
    """A local file that is on the disk once it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self._folder = path.parent

    def close(self) -> None:
        if not self.closed:
            self.flush()
            os.fsync(self.fileno())
            super().close()
            sync(self._folder)


class _HeldStream(io.BytesIO):
    """A file that is written, with its checksum, when it is closed."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            super().close()
            self._write(content)


class _MetadataFile(InputFile, OutputFile):
    """A file of a table's metadata, of ``files``; ``far`` reaches it if it is not local."""

    def __init__(self, files: TableFiles, location: str, far: PyArrowFile | None) -> None:
        super().__init__(location)
        self._files, self._far = files, far
        self._path = Path(local_path(location) or "").absolute()
        self._written_bytes: int | None = None

    @override
    def __len__(self) -> int:
        """Its length in bytes; of one that was written here without asking."""
        if self._written_bytes is not None:
            return self._written_bytes
        return len(self._far) if self._far is not None else self._path.stat().st_size

    @override
    def exists(self) -> bool:
        """Whether it is there."""
        return self._far.exists() if self._far is not None else self._path.exists()

    @override
    def open(self, seekable: bool = True) -> InputStream:
        """Open the file for reading.

        Raises:
            FileNotFoundError: it is not there.
            LogCorrupt: it is not what was written.
        """
        if not has_checksum(self.location):
            return self._far.open(seekable) if self._far is not None else self._opened()
        held = _read_before.get()
        if held is not None and self.location in held:
            return io.BytesIO(held[self.location])
        content = self._files.read_bytes(self.location)
        try:
            checked = without_checksum(self.location, content)
        except ValueError as error:
            raise damaged(self.location, str(error)) from None
        if held is not None and self._far is not None:
            held[self.location] = checked
        return io.BytesIO(checked)

    @override
    def create(self, overwrite: bool = False) -> OutputStream:
        """Open the file for writing; FileExistsError if it is there and may not be replaced.

        An object store is not asked whether it is there: no name is used twice (I2), and the answer would not hold.
        """
        if self._far is None and not overwrite and self.exists():
            raise FileExistsError(f"Cannot create file, already exists: {self.location}")
        if has_checksum(self.location):
            return _HeldStream(self._write)
        return self._far.create(overwrite=True) if self._far is not None else self._created()

    @override
    def to_input_file(self) -> InputFile:
        """The same file."""
        return self

    def _write(self, content: bytes) -> None:
        content = with_checksum(self.location, content)
        if self._far is not None:
            self._send(content)
        else:
            self._keep(content)
        self._written_bytes = len(content)

    def _keep(self, content: bytes) -> None:
        """Write it; nothing is left of what could not be written, for nobody would delete it where no table is made."""
        made = list(itertools.takewhile(_is_missing, (self._path, *self._path.parents)))
        try:
            with self._created() as sink:
                sink.write(content)
        except OSError as error:
            # That of a write does not say which file it was.
            error.filename = error.filename or str(self._path)
            with contextlib.suppress(OSError):  # as of a folder that was not made, or that has another's file by now
                if made:
                    self._path.unlink(missing_ok=True)
                for folder in made[1:]:
                    folder.rmdir()
            raise

    def _send(self, content: bytes) -> None:
        try:
            self._files.write_bytes(self.location, content)
        except OSError:
            # An answer may have been lost, and the file be there: no other one has this name (I2).
            with contextlib.suppress(OSError):
                self._files.delete(self.location)
            raise

    def _opened(self) -> BinaryIO:
        require_file(str(self._path))
        return self._path.open("rb")

    def _created(self) -> _DurableStream:
        tries_left = _TRIES
        while True:
            tries_left -= 1
            try:
                make_folder(self._path.parent)
                return _DurableStream(self._path)
            except FileNotFoundError:
                # Whoever could write nothing takes back the folders that are empty yet (``_keep``): also ours.
                if not tries_left:
                    raise


def _is_missing(path: Path) -> bool:
    return not os.path.lexists(path)


class DurableFileIO(FileIO):
    """PyIceberg's own, except that local files are fsynced on close and their paths are taken as they are."""

    def __getstate__(self) -> dict[str, Any]:
        """What another process makes the same of: clients stay here."""
        return {"properties": self.properties}

    @override
    def new_input(self, location: str) -> InputFile:
        """A file to be read from a location."""
        return self._file(location)

    @override
    def new_output(self, location: str) -> OutputFile:
        """A file to be written at a location; refused where the home is read-only."""
        require_writable(self.properties.items())
        return self._file(location)

    @override
    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file as all others are deleted: where a bucket keeps versions, with all of them.

        Raises:
            OSError: it can't be deleted; one that is already gone is no error.
        """
        path = location if isinstance(location, str) else location.location
        self._files.delete(path)

    def _file(self, location: str) -> _MetadataFile:
        far = self._elsewhere.new_input(location) if local_path(location) is None else None
        return _MetadataFile(self._files, location, far)

    @cached_property
    def _elsewhere(self) -> PyArrowFileIO:
        from keptlog.table.io.s3_filesystem import PatientFileIO  # noqa: PLC0415  # not on the way of a local path

        return PatientFileIO(self.properties)

    @property
    def _files(self) -> TableFiles:
        return TableFiles(tuple(self.properties.items()))
