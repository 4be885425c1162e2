"""PyIceberg's file access, made durable for local files: its metadata gets the same fsync as our segments."""

from __future__ import annotations

import io
import os
from pathlib import Path

from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from typing_extensions import override

from keptlog.table.files import local_path, make_folder, sync


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


class _DurableFile(PyArrowFile):
    """A local file of a table's metadata."""

    @override
    def create(self, overwrite: bool = False) -> OutputStream:
        """Open the file for writing; FileExistsError if it is there and may not be replaced."""
        if not overwrite and self.exists():
            raise FileExistsError(f"Cannot create file, already exists: {self.location}")
        make_folder(Path(self._path).parent)
        return _DurableStream(Path(self._path))


class DurableFileIO(PyArrowFileIO):
    """PyArrowFileIO, except that local files are fsynced on close and their paths are taken as they are."""

    @staticmethod
    def parse_location(location: str, properties: dict[str, str] | None = None) -> tuple[str, str, str]:
        """Scheme, authority and path; PyIceberg's own rule for all that is not local."""
        local = local_path(location)
        if local is not None:
            return "file", "", str(Path(local).absolute())
        return PyArrowFileIO.parse_location(location, properties or {})

    def new_output(self, location: str) -> PyArrowFile:
        """A file to be written at a location."""
        if local_path(location) is None:
            return super().new_output(location)
        scheme, authority, path = self.parse_location(location)
        return _DurableFile(location, path, self.fs_by_scheme(scheme, authority))
