"""PyIceberg's file access: what it writes gets the same fsync as our segments, if it is local, and a checksum.

Metadata files, manifest lists and manifests are small and read as a whole, so they are held until they are closed, and
looked at before anybody sees a byte of them (``metadata_checksums``).
"""

from __future__ import annotations

import io
import os
from pathlib import Path

from pyiceberg.io import InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import BUFFER_SIZE, ONE_MEGABYTE, PyArrowFile, PyArrowFileIO
from typing_extensions import override

from keptlog.storage.damage import damaged
from keptlog.table.files import TableFiles, local_path, make_folder, require_writable
from keptlog.table.metadata_checksums import has_checksum, with_checksum, without_checksum
from keptlog.whole_file import sync


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

    def __init__(self, location: str, sink: OutputStream) -> None:
        super().__init__()
        self._location = location
        self._sink = sink

    def close(self) -> None:
        if not self.closed:
            content = with_checksum(self._location, self.getvalue())
            super().close()
            with self._sink as sink:
                sink.write(content)


class _MetadataFile(PyArrowFile):
    """A file of a table's metadata."""

    @override
    def open(self, seekable: bool = True) -> InputStream:
        """Open the file for reading.

        Raises:
            FileNotFoundError: it is not there.
            LogCorrupt: it is not what was written.
        """
        if not has_checksum(self.location):
            return super().open(seekable)
        with super().open(seekable) as source:
            content = source.read()
        try:
            return io.BytesIO(without_checksum(self.location, content))
        except ValueError as error:
            raise damaged(self.location, str(error)) from None

    @override
    def create(self, overwrite: bool = False) -> OutputStream:
        """Open the file for writing; FileExistsError if it is there and may not be replaced."""
        if local_path(self.location) is None:
            sink = super().create(overwrite)
        elif not overwrite and self.exists():
            raise FileExistsError(f"Cannot create file, already exists: {self.location}")
        else:
            make_folder(Path(self._path).parent)
            sink = _DurableStream(Path(self._path))
        return _HeldStream(self.location, sink) if has_checksum(self.location) else sink


class DurableFileIO(PyArrowFileIO):
    """PyArrowFileIO, except that local files are fsynced on close and their paths are taken as they are."""

    @staticmethod
    def parse_location(location: str, properties: dict[str, str] | None = None) -> tuple[str, str, str]:
        """Scheme, authority and path; PyIceberg's own rule for all that is not local."""
        local = local_path(location)
        if local is not None:
            return "file", "", str(Path(local).absolute())
        return PyArrowFileIO.parse_location(location, properties or {})

    def new_input(self, location: str) -> PyArrowFile:
        """A file to be read from a location."""
        return self._file(location)

    def new_output(self, location: str) -> PyArrowFile:
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
        TableFiles(tuple(self.properties.items())).delete(path)

    def _file(self, location: str) -> _MetadataFile:
        scheme, authority, path = self.parse_location(location, self.properties)
        buffer_size = int(self.properties.get(BUFFER_SIZE, ONE_MEGABYTE))
        return _MetadataFile(location, path, self.fs_by_scheme(scheme, authority), buffer_size)
