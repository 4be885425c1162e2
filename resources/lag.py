"""What a process remembers of a home's lag from tick to tick, so that a tick reads only what has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.ingest.lag import LagScanner
from keptlog.ingest.lag_news import LagNews


@dataclass(frozen=True)
class LagMemory:
    """Of one home: what its topics remember of their sources, and what was told of them."""

    scanner: LagScanner
    news: LagNews = field(default_factory=LagNews)


_memories: dict[Path, LagMemory] = {}


def lag_memory_of(log_store: LogStoreResource) -> LagMemory:
    """That of a home, one in a process; a home that was opened anew begins anew."""
    store = log_store.store
    memory = _memories.get(log_store.path)
    if memory is None or memory.scanner.store is not store:
        memory = _memories[log_store.path] = LagMemory(LagScanner(store))
    return memory
