"""What a task reads of small files, asked for side by side before the task comes to it.

    items        [ a b c ]  [ d e ]  [ f ]      in stretches whose small files memory may hold
    stretch 1    a, b, c are asked for at once, then done one after the other; then stretch 2

On an object store a file is a request, and a task that asks for one after the other mostly waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from keptlog.engine.bundles import stretches
from keptlog.storage.files import HELD_BYTES, SMALL_BYTES, Files

Item = TypeVar("Item")
Inputs = Iterable[tuple[str, int]]
"""Paths and sizes in bytes."""


def in_stretches(
    files: Files, items: Iterable[Item], inputs_of: Callable[[Item], Inputs]
) -> Iterator[tuple[Files, tuple[Item, ...]]]:
    """Items in their order, stretch by stretch, each with the files that have what it reads."""

    def held_bytes(item: Item) -> int:
        return sum(size_bytes for _, size_bytes in inputs_of(item) if size_bytes <= SMALL_BYTES)

    for stretch in stretches(items, HELD_BYTES, held_bytes):
        with files.read_ahead([each for item in stretch for each in inputs_of(item)]) as held:
            yield held, stretch
