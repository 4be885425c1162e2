"""How many things become few tasks of about equal weight: neighbours in stretches, or anything in bundles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Protocol, TypeVar


class HasBytes(Protocol):
    """A file of which the size is known."""

    @property
    def size_bytes(self) -> int: ...


_File = TypeVar("_File", bound=HasBytes)
_Item = TypeVar("_Item")


def _size_bytes(file: HasBytes) -> int:
    return file.size_bytes


def contiguous_runs(
    segments: Iterable[_File], target: int, weight: Callable[[_File], int] = _size_bytes
) -> list[tuple[_File, ...]]:
    """Neighbours in stretches of about the target weight (``stretches``)."""
    return stretches(segments, target, weight)


def stretches(items: Iterable[_Item], target: int, weight: Callable[[_Item], int]) -> list[tuple[_Item, ...]]:
    """Neighbours in stretches of about the target weight: one begins with an item whose middle is in a new share.

    weight     30    50    40    20    60       target 70
    middle     15    55   100   130   170
    share       0     0     1     1     2       [30, 50] [40, 20] [60]

    Shares are laid out from the start, 0..69, 70..139, and so on, so that what one stretch has too much the next has
    less: errors don't add up, and there are never more stretches than shares. A stretch weighs at most the target and
    an item. A share in which no middle lies has no stretch, and no stretch is empty.
    """
    runs: list[list[_Item]] = []
    position, share = 0, -1
    for item in items:
        # The middle and not the start: a heavy item goes where most of it lies.
        middle = position + weight(item) // 2
        if middle // max(target, 1) != share:
            share = middle // max(target, 1)
            runs.append([])
        runs[-1].append(item)
        position += weight(item)
    return [tuple(run) for run in runs]


def shared_out(
    items: Sequence[_Item], wanted: Sequence[int], weight: Callable[[_Item], int]
) -> list[tuple[_Item, ...]]:
    """Neighbours in one stretch for each number that is wanted, of weights that are to each other as these numbers.

    weight     10    10    10      wanted 50, 25
    middle      5    15    25
    share       0     0     1      0..19, 20..29

    An item goes where its middle lies, as with ``stretches``. A stretch may be empty.
    """
    ends = list(accumulate(wanted))
    whole = sum(map(weight, items))
    runs: list[list[_Item]] = [[] for _ in wanted]
    position = 0
    for item in items:
        middle = position + weight(item) // 2
        share = bisect_right(ends, middle * ends[-1] // max(whole, 1))
        runs[min(share, len(runs) - 1)].append(item)
        position += weight(item)
    return [tuple(run) for run in runs]


def bundled(items: Sequence[_Item], bundles: int, weight: Callable[[_Item], int]) -> list[tuple[_Item, ...]]:
    """Items in at most so many bundles of about equal weight: the heaviest left goes to the lightest bundle.

    weights 90, 80, 40, 30, 20 in 2 bundles: [90, 30, 20] [80, 40]
    """
    filled: list[list[_Item]] = [[] for _ in range(min(bundles, len(items)))]
    weights = [0] * len(filled)
    for item in sorted(items, key=weight, reverse=True):
        lightest = weights.index(min(weights))
        filled[lightest].append(item)
        weights[lightest] += weight(item)
    return [tuple(bundle) for bundle in filled]
