"""The one door to storage. Whoever reads, writes or deletes a file does it through ``Files``.

Only the table layer knows which storage is behind a path (the catalog's FileIO tells); the tasks on the executors get
an object of this kind from it, pickled with them. Local disk or object store is then a matter of configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it."""

    path: str
    size_bytes: int
    modified_ms: int


class Files(Protocol):
    """Storage by full path, such as ``file:///…/x.parquet`` or ``s3://bucket/x.parquet``. Instances pickle."""

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random reads; FileNotFoundError if it is gone."""
        ...

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Create a file. It exists whole, and durably, once the context is left without an error."""
        ...

    def durable_at_end(self) -> AbstractContextManager[Files]:
        """The same files, but what is created through them is durable only when the context is left without an error.

        For whoever creates many files, of which none counts before all are there.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file; one that is already gone is no error."""
        ...

    def list(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder; nothing if the folder does not exist."""
        ...
