"""Files of one task, which waits for what it has written at its end alone.

    task     [ write a ][ write b ][ write c ] wait
    disk, or store      [ a ......... ]
                                   [ b ......... ]
                                              [ c ......... ]

A disk takes as long for one fsync as for several at once; a store takes as long for one upload as for several, and what
waits to be sent is in memory, so no more than ``AT_ONCE`` wait. Whoever reads or deletes such a file waits for it.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from keptlog.storage.leftover import discard
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.io.remote_files import told_why
from keptlog.table.waiting.side_by_side import AT_ONCE
from keptlog.whole_file import sync


@dataclass(frozen=True)
class DurableAtEnd(TableFiles):
    """Files that other threads make durable: local ones are fsynced, those of a store uploaded; folders at the end."""

    _is_durable_later: ClassVar[bool] = True
    pool: ThreadPoolExecutor = field(kw_only=True)
    _syncs: dict[str, Future[None]] = field(default_factory=dict)
    _uploads: dict[str, Future[None]] = field(default_factory=dict)
    _folders: set[Path] = field(default_factory=set)

    def wait(self) -> None:
        """Return when all is durable; if that fails nothing is left, as nobody hears of these files."""
        folders = [self.pool.submit(sync, each) for each in self._folders]
        try:
            for done in [*self._uploads.values(), *self._syncs.values(), *folders]:
                done.result()
        except BaseException:
            discard(self, [*self._uploads, *self._syncs])
            raise

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        self._upload(path)
        return super().open_input(path, size_bytes)

    def delete(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._upload(path)
        local = local_path(path)
        if local in self._syncs:
            # It need not be durable any more, and one that is gone can't be fsynced.
            self._syncs.pop(local).cancel()
        super().delete(path)

    def finish(self, sink: pa.NativeFile, path: str) -> None:
        if local_path(path) is not None:
            super().finish(sink, path)
            return
        under_way = [each for each in self._uploads.values() if not each.done()]
        if len(under_way) >= AT_ONCE:
            # What waits to be sent is in memory.
            under_way[0].result()
        self._uploads[path] = self.pool.submit(self._closed, sink, path)

    def make_durable(self, path: Path) -> None:
        if path.is_dir():
            self._folders.add(path)
        else:
            self._syncs[str(path)] = self.pool.submit(sync, path)

    def _closed(self, sink: pa.NativeFile, path: str) -> None:
        try:
            with told_why(path):
                sink.close()
        except BaseException:
            TableFiles(self.properties).take_back(sink, path)
            raise

    def _upload(self, path: str) -> None:
        """Wait until a file that was written is there."""
        if path in self._uploads:
            self._uploads[path].result()
