"""Whether Dagster still has what it was told: somebody may have wiped it, or deleted the run that told of it.

Who has told something remembers that, and does not ask again. That an asset was wiped is seen at once, as its key is
gone from Dagster. But a run that somebody launches next, before a sensor ticks, plans the asset and so brings the key
back; and a run that is deleted takes its materializations along and leaves the key. So once in a while Dagster is asked
of each asset what is left of it, a few a tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import dagster as dg

from keptlog.dagster.assets.mount import Tick
from keptlog.log.given.past import was_within

AGAIN_MS = 600_000
"""So long an asset is not asked for again."""
ASKED_AGAIN_PER_TICK = 6
"""Assets; two queries each, of about a ms together, and of 70 ms where there are 100,000 materializations of one."""
_TICK_MS = 30_000
"""About what is between two ticks."""
_GOLDEN_RATIO = 0.6180339887498949


@dataclass
class _Asked:
    """Of one mount."""

    at_ms: dict[dg.AssetKey, int] = field(default_factory=dict)


def stored_keys(tick: Tick) -> set[dg.AssetKey]:
    """The assets of the mount that Dagster has heard of; one that somebody has wiped is none."""
    return set(tick.context.instance.get_asset_keys(prefix=tick.keys.prefix or None))


def left_in_turn(
    tick: Tick, keys: Iterable[dg.AssetKey], unasked: AbstractSet[dg.AssetKey], now_ms: int
) -> dict[dg.AssetKey, set[str]]:
    """The topic-partitions of which Dagster has a materialization: of those of these assets whose turn it is.

    Of those that are ``unasked``, this process has only concluded that Dagster was told.
    """
    at_ms = tick.log_store.remembered(_Asked, lambda _: _Asked(), tick.mount.name_prefix).at_ms
    keys = sorted(keys, key=dg.AssetKey.to_user_string)  # the same in each process: the time says where one begins
    for key in keys:
        if key not in unasked:
            at_ms.setdefault(key, now_ms)  # Of what is new here, Dagster was asked or told just now.
    return {key: tick.context.instance.get_materialized_partitions(key) for key in in_turn(at_ms, keys, now_ms)}


def in_turn(at_ms: dict[dg.AssetKey, int], keys: Iterable[dg.AssetKey], now_ms: int) -> Iterator[dg.AssetKey]:
    """Those of these assets whose turn it is, at most ``ASKED_AGAIN_PER_TICK``: first who was never asked for.

    ``at_ms`` is when each was asked for. It is brought up to date once the caller is done with one, and asks for more.
    """
    keys = _from_now_on([*keys], now_ms)
    waiting = [key for key in keys if key not in at_ms or not was_within(AGAIN_MS, at_ms[key], now_ms)]
    for key in sorted(waiting, key=lambda key: at_ms.get(key, -1))[:ASKED_AGAIN_PER_TICK]:
        yield key
        at_ms[key] = now_ms


def _from_now_on(keys: list[dg.AssetKey], now_ms: int) -> list[dg.AssetKey]:
    """In an order that goes on with the time: one that began anew with each code server might never reach the last.

    Ticks that are further apart than is supposed pass over some. So each round begins elsewhere than the ones before:
    no interval of ticks keeps step with the golden ratio.
    """
    passed = now_ms // _TICK_MS * ASKED_AGAIN_PER_TICK
    rounds = passed // len(keys) if keys else 0
    first = (passed + int(rounds * _GOLDEN_RATIO % 1 * len(keys))) % len(keys) if keys else 0
    return keys[first:] + keys[:first]
