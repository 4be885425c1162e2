"""What a process remembers of a home's lag from tick to tick, so that a tick reads only what has changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.ingest.lag import LagScanner
from keptlog.ingest.lag_news import LagNews


@dataclass(frozen=True)
class LagMemory:
    """Of one home: what its topics remember of their sources, and what was told of them."""

    scanner: LagScanner
    news: LagNews = field(default_factory=LagNews)


def lag_memory_of(log_store: LogStoreResource) -> LagMemory:
    """That of a home, one in a process."""
    return log_store.remembered(LagMemory, lambda store: LagMemory(LagScanner(store)))
