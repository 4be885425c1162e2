"""A restore to a target that stands in for a broker's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from keptlog.kafka_client.settings import ClientSettings
from keptlog.passes import restore
from keptlog.passes.restore import Restore
from keptlog.sinks.kafka_broker.position import Pair, Trail
from tests.restore.stand_in import TARGET, Broker, StandIn


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    there = Broker()

    @contextmanager
    def open_writer(_settings: ClientSettings, pair: Pair, _trail: Trail) -> Iterator[StandIn]:
        there.writers += 1
        yield StandIn(there, pair, there.writers)

    monkeypatch.setattr(restore, "open_writer", open_writer)
    monkeypatch.setattr(Restore, "_target", lambda *_: (TARGET, False))
    monkeypatch.setattr(Restore, "_require_empty", lambda *_: None)
    return there
