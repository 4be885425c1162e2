"""Small files of an object store, asked for before somebody comes to them.

    asked     [ a ][ b ][ c ]                    side by side, as soon as it is known what will be read
    task            [ judge a, b, c ][ write ]   opens each twice or three times, at no request more

They are held until whoever asked is done, at most ``HELD_BYTES``; what is more is read when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from keptlog.storage.files import HELD_BYTES, SMALL_BYTES, Files, StoredFile

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def asked_at_once(files: Files, inputs: Sequence[tuple[str, int]], at_once: int) -> Iterator[Files]:
    """The same files, with the small ones of these (path, size in bytes) asked for, so many at once, and held."""
    small: list[tuple[str, int]] = []
    room_bytes = HELD_BYTES
    for path, size_bytes in inputs:
        if size_bytes <= min(SMALL_BYTES, room_bytes):
            small.append((path, size_bytes))
            room_bytes -= size_bytes
    if not small:
        yield files
        return

    def content(path: str, size_bytes: int) -> pa.Buffer:
        with files.open_input(path, size_bytes) as source:
            return source.read_buffer()

    with ThreadPoolExecutor(at_once) as pool:
        held = {path: pool.submit(content, path, size_bytes) for path, size_bytes in small}
        try:
            yield _WithHeld(files, held)
        finally:
            for each in held.values():
                each.cancel()


class _WithHeld:
    """Files of which some are held, or are on their way."""

    def __init__(self, files: Files, held: Mapping[str, Future[pa.Buffer]]) -> None:
        self._files = files
        self._held = held

    @property
    def task_modules(self) -> Sequence[str]:
        return self._files.task_modules

    def within(self, paths: Iterable[str]) -> Files:
        return _WithHeld(self._files.within(paths), self._held)

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        if path in self._held:
            import pyarrow as pa  # noqa: PLC0415  # who asks for nothing ahead may need no Arrow

            return pa.BufferReader(self._held[path].result())
        return self._files.open_input(path, size_bytes)

    @contextmanager
    def read_ahead(self, inputs: Sequence[tuple[str, int]]) -> Iterator[Files]:
        with self._files.read_ahead([each for each in inputs if each[0] not in self._held]) as files:
            yield _WithHeld(files, self._held)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        return self._files.open_output(path)

    def durable_at_end(self) -> AbstractContextManager[Files]:
        return self._files.durable_at_end()

    def delete(self, path: str) -> None:
        self._files.delete(path)

    def list(self, folder: str) -> Iterator[StoredFile]:
        return self._files.list(folder)
