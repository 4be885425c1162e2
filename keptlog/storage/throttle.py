"""``log.cleaner.io.max.bytes.per.second``: how fast the tasks of a clean read and write, all together.

The tasks run on many machines and don't know of each other, so each gets its share before it starts:

    share = bytes per second / tasks that run at once

A task counts the bytes that pass through its files, read or written, as Kafka does, and sleeps whenever it is ahead of
its share. When some tasks end earlier than others, their shares lie idle: the rate is a bound, not a target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from keptlog.storage.files import Files, StoredFile


@dataclass(frozen=True, slots=True)
class Throttle:
    """A rate, and the clock and the sleep (seconds) that hold it; travels to the executors by pickle."""

    bytes_per_second: float
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]

    def share_of(self, tasks: int) -> Throttle:
        """The rate of one of so many tasks."""
        return Throttle(self.bytes_per_second / tasks, self.monotonic, self.sleep)


class ThrottledFiles:
    """Files of one task, through which bytes pass no faster than the throttle allows."""

    def __init__(self, files: Files, throttle: Throttle) -> None:
        self._files = files
        self._throttle = throttle
        self._began = throttle.monotonic()
        self._passed_bytes = 0

    @property
    def task_modules(self) -> Sequence[str]:
        return self._files.task_modules

    def within(self, paths: Iterable[str]) -> ThrottledFiles:
        return ThrottledFiles(self._files.within(paths), self._throttle)

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        return pa.PythonFile(_Counted(self._files.open_input(path, size_bytes), self._count), mode="r")

    @contextmanager
    def read_ahead(self, inputs: Sequence[tuple[str, int]]) -> Iterator[ThrottledFiles]:
        with self._files.read_ahead(inputs) as files:
            yield ThrottledFiles(files, self._throttle)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        return self._open_output(path)

    @contextmanager
    def _open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with self._files.open_output(path) as sink:
            yield pa.PythonFile(_Counted(sink, self._count), mode="w")

    @contextmanager
    def durable_at_end(self) -> Iterator[ThrottledFiles]:
        with self._files.durable_at_end() as files:
            yield ThrottledFiles(files, self._throttle)

    def delete(self, path: str) -> None:
        self._files.delete(path)

    def list(self, folder: str) -> Iterator[StoredFile]:
        return self._files.list(folder)

    def _count(self, passed_bytes: int) -> None:
        self._passed_bytes += passed_bytes
        due = self._began + self._passed_bytes / self._throttle.bytes_per_second
        early = due - self._throttle.monotonic()
        if early > 0:
            self._throttle.sleep(early)


class _Counted:
    """A file as Python knows them, which tells how many bytes were read or written."""

    def __init__(self, file: pa.NativeFile, count: Callable[[int], None]) -> None:
        self._file = file
        self._count = count

    def read(self, size: int = -1) -> Any:
        read = self._file.read(size if size >= 0 else None)
        self._count(len(read))
        return read

    def write(self, data: Any) -> int:
        self._file.write(data)
        self._count(len(data))
        return len(data)

    def seek(self, position: int, whence: int = 0) -> int:
        return int(self._file.seek(position, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)
