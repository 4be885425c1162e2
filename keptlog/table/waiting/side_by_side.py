"""Things that wait for the network, done side by side: so many at once, begun in order, and none begun too late."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from keptlog.errors import KeptlogError
from keptlog.table.waiting.reaching import apart

Item = TypeVar("Item")
Done = TypeVar("Done")

AT_ONCE = 16
"""Of what is mostly waiting for a catalog, a store or a disk: so many hide a far one, and are not many for one."""


@dataclass(frozen=True)
class Patience:
    """How long somebody waits, by a clock for durations; by default as long as it takes."""

    monotonic_ms: Callable[[], int] = lambda: 0
    until_ms: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.until_ms is not None and self.monotonic_ms() >= self.until_ms


def side_by_side(
    do: Callable[[Item], Done], items: Iterable[Item], at_once: int = AT_ONCE, patience: Patience | None = None
) -> dict[Item, Done]:
    """What became of each item that was begun, in their order; with ``at_once`` of 1 in this thread.

    What ``do`` raises ends it all: nothing more is begun, and it is raised when what was begun has ended.
    """
    waiting = list(dict.fromkeys(items))
    patience = patience or Patience()
    done: dict[Item, Done] = {}
    left = iter(waiting)
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                # Who has none left did not come too late.
                item = next(left, left) if not patience.is_over else left
            if item is left:
                return
            try:
                done[item] = do(item)  # type: ignore[index, arg-type]  # it is no item only if it is the iterator
            except BaseException:
                with lock:
                    for _ in left:
                        pass
                raise

    workers = min(at_once, len(waiting))
    if workers <= 1:
        work()
    else:
        with ThreadPoolExecutor(workers) as pool:
            for each in [pool.submit(work) for _ in range(workers)]:
                each.result()
    return {item: done[item] for item in waiting if item in done}


def each_apart(
    look: Callable[[str], Done], topics: Iterable[str], at_once: int = AT_ONCE, patience: Patience | None = None
) -> dict[str, Done | KeptlogError]:
    """What a look at each of these topics gives, or why it gives nothing; else as ``side_by_side``."""
    return side_by_side(lambda topic: apart(topic, partial(look, topic)), topics, at_once, patience)
