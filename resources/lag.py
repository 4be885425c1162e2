"""What a process remembers of a home's lag from tick to tick, so that a tick reads only what has changed."""

from __future__ import annotations

from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.home import monotonic_ms
from keptlog.ingest.lag import LagScanner


def lag_scanner_of(log_store: LogStoreResource) -> LagScanner:
    """That of a home, one in a process."""
    return log_store.remembered(LagScanner, lambda store: LagScanner(store, monotonic_ms))
