"""A request that waits for its source ends with a later one that has dropped the records of its keys ``here``.

    offset      0      1      2         r1 waits for the source: its bound is 2
    key         a      b      a         r2, here: its bound is 3, and all of a below it was dropped
                       ^----- r1 waits no more: below 3 there is nothing left of a

Nothing arrives from the source then: the log is the same as before to whoever waits, and so the register is asked. A
request here drops every record below its own bound. So it has dropped all that was there when an earlier request was
made. One that stands before it in the register did not know of that; its drop may have been over by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ErasureWay

_Drops = Mapping[str, Sequence[Erasure]]
"""By hash of a key, who has dropped its records, the latest first."""


def dropped_here(known: Sequence[Erasure]) -> list[Erasure]:
    """All erasures of a topic, oldest first as the register has them: none waits for what was dropped since it asked.

    Bounds are those of the first request that has dropped it: what came behind that is new.
    """
    drops: dict[str, dict[str, list[Erasure]]] = {}
    found = []
    for erasure in reversed(known):
        found.append(_answered(erasure, drops.get(erasure.fingerprint, {})))
        if erasure.way == ErasureWay.HERE and erasure.has_reached(ErasureState.COMPACTED):
            mine = drops.setdefault(erasure.fingerprint, {})
            for key_hash in erasure.key_hashes:
                mine.setdefault(key_hash, []).append(erasure)
    return found[::-1]


def _answered(erasure: Erasure, drops: _Drops) -> Erasure:
    """An erasure that does not wait any more for what one of these has dropped."""
    if erasure.way != ErasureWay.SOURCE or not drops:
        return erasure
    asked_to = _log_ends(erasure)
    bounds, waiting, dropped_by = list(erasure.bounds), [], dict.fromkeys(erasure.dropped_by)
    for each in erasure.waiting:
        # A log that was cut back at its source since has other offsets: what was asked for may lie behind the drop.
        drop = _first_drop(drops.get(each.key_hash, ()), each.partition, asked_to.get(each.partition))
        if drop is None:
            waiting.append(each)
        else:
            end_offset = _log_ends(drop)[each.partition]
            bounds.append(ErasureBound(each.partition, end_offset, end_offset, each.key_hash))
            dropped_by[drop.id] = None
    return replace(erasure, bounds=tuple(bounds), waiting=tuple(waiting), dropped_by=tuple(dropped_by))


def _first_drop(drops: Sequence[Erasure], partition: int, asked_to: int | None) -> Erasure | None:
    """The first that has dropped all that was there when it was asked for; null if none has, or if nobody can tell."""
    if asked_to is None:
        return None
    return next((each for each in reversed(drops) if _log_ends(each).get(partition, -1) >= asked_to), None)


def _log_ends(erasure: Erasure) -> Mapping[int, int]:
    """Where each log ended when it was asked for: the bounds that are not of one key alone."""
    return {each.partition: each.end_offset for each in erasure.bounds if not each.key_hash}
