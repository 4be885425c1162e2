"""The one door to storage. Whoever reads, writes or deletes a file does it through ``Files``.

Only the table layer knows which storage is behind a path (the catalog's FileIO tells); the tasks on the executors get
an object of this kind from it, pickled with them. Local disk or object store is then a matter of configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

SMALL_BYTES = 4 * 2**20
"""A file of an object store up to this size is asked for as a whole: one more request would take longer."""
HELD_BYTES = 32 * 2**20
"""Of small files that are read ahead."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it."""

    path: str
    size_bytes: int
    modified_ms: int


class Files(Protocol):
    """Storage by full path, such as ``file:///…/x.parquet`` or ``s3://bucket/x.parquet``.

    Instances pickle, and take to the tasks what storage needs, and no secret of the catalog's.
    """

    @property
    def task_modules(self) -> Sequence[str]:
        """What tasks must be able to import, beside pyarrow, to open such files."""
        ...

    def within(self, paths: Iterable[str]) -> Files:
        """The same files, for tasks that work at these paths and below: no credentials of other places go along."""
        ...

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        """Open a file for random reads; FileNotFoundError if it is gone.

        ``size_bytes`` is how long it should be, where that is known: an object store needn't be asked then.
        """
        ...

    def read_ahead(self, inputs: Sequence[tuple[str, int]]) -> AbstractContextManager[Files]:
        """The same files, for whoever is about to open these: path and size in bytes, in the order of their use.

        Where each open is a request, small ones are asked for at once, side by side, and held until the context is
        left; so they may be opened again at no cost. No more than ``HELD_BYTES`` are held.
        """
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
        """Delete a file; one that is already gone is no error.

        Who deletes what nobody refers to does it through ``leftover``, which fails nobody.

        Raises:
            OSError: it may not be deleted, or the storage does not answer.
        """
        ...

    def list(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder; nothing if the folder does not exist."""
        ...
