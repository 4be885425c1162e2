"""Asks the stores of all topics whether they answer, for whoever looks again and again.

What nobody has changed is not read again, so a look needs nothing of a store that is gone: ``table.reading.away``.
Dagster's sensors look one after the other. So what was waited for in vain is left alone for ``TRIED_AGAIN_MS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keptlog.errors import StorageUnavailable
from keptlog.passes.observable import Observable
from keptlog.table.reading.away import AwayStore, stores_away
from keptlog.table.waiting.rest import rests_until_ms


@dataclass
class StoresAsked:
    """Which stores have not answered. ``monotonic_ms`` tells how long they were waited for."""

    store: Observable
    monotonic_ms: Callable[[], int]
    _away: list[AwayStore] = field(default_factory=list)
    _rest_until_ms: int | None = None

    def away(self, locations: Mapping[str, str], now_ms: int) -> dict[str, StorageUnavailable]:
        """Topic to why its store does not answer, of topics whose metadata lies at these locations."""
        began_ms = self.monotonic_ms()
        if self._rest_until_ms is None or began_ms >= self._rest_until_ms:
            self._away = stores_away(self.store, locations, now_ms // 1000)
            ended_ms = self.monotonic_ms()
            rests = [rests_until_ms(each.why, began_ms, ended_ms) for each in self._away]
            self._rest_until_ms = max((each for each in rests if each is not None), default=None)
        return {topic: each.why for each in self._away for topic in each.topics if topic in locations}
