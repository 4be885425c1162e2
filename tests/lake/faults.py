"""What the proxies before a lake do to requests for a while: some drawn kinds of faults, at a drawn rate."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from examples.lake.fault_proxy import Decide, Fault, Request
from examples.lake.proxied_catalog import ProxiedCatalog

_FAULTS = (Fault.RESET, Fault.LOST_ANSWER, Fault.CUT, Fault.SLOW_DOWN)
_ONE_IN = (6, 15, 40)
_DELAYS_MS = (0, 0, 5, 20)


@contextmanager
def disturbed(
    ground: ProxiedCatalog, chance: Random, happened: Counter[str], when: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Faults in requests as long as the block lasts, ``when`` there may be some; ``happened`` counts them."""
    ground.store.fault, ground.store.delay_ms = _drawn(chance, when), chance.choice(_DELAYS_MS)
    if ground.rest:
        ground.rest.fault, ground.rest.delay_ms = _drawn(chance, when), ground.store.delay_ms
    if ground.sql:
        ground.sql.lose_answer_to, ground.sql.delay_ms = _drawn_bytes(chance, when), ground.store.delay_ms
    try:
        yield
    finally:
        for proxy in (ground.store, ground.rest):
            if proxy:
                proxy.fault, proxy.delay_ms = None, 0
                happened.update({fault.name: count for fault, count in proxy.injected.items()})
                proxy.injected.clear()
        if ground.sql:
            ground.sql.lose_answer_to, ground.sql.delay_ms = None, 0
            happened["LOST_ANSWER of Postgres"] += ground.sql.lost
            ground.sql.lost = 0


def _drawn(chance: Random, when: Callable[[], bool]) -> Decide:
    kinds, one_in = chance.sample(_FAULTS, 2), chance.choice(_ONE_IN)
    dice, lock = Random(chance.random()), threading.Lock()

    def decide(_: Request) -> Fault | None:
        with lock:
            return dice.choice(kinds) if when() and dice.random() * one_in < 1 else None

    return decide


def _drawn_bytes(chance: Random, when: Callable[[], bool]) -> Callable[[bytes], bool]:
    """Postgres's commits are what matters; now and then it is another answer."""
    dice = Random(chance.random())
    return lambda sent: when() and dice.random() < (0.3 if b"COMMIT" in sent else 0.02)
