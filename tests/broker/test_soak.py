"""A short form of ``make soak-broker``, and that it would find a deletion that was missed."""

from __future__ import annotations

from collections import Counter
from functools import partialmethod
from pathlib import Path
from random import Random

import pytest

from tests.broker.broker import Broker
from tests.broker.ingesting import Ingesting
from tests.broker.soak import play
from tests.broker.soak_topic import Differs, SoakTopic


def test_what_is_alive_there_is_alive_here_and_nothing_else(broker: Broker) -> None:
    happened = Counter[str]()
    play(broker, seed=3, happened=happened, actions=30, kills=0.03)
    assert happened["records"] > 50
    assert happened["compared"] > 5


def test_a_deletion_that_was_missed_would_be_found(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = SoakTopic(broker, tmp_path, Random(1), Counter(), tombstones_kept_ms=0)
    while not topic.told:
        topic._produce()
    topic._ingest()
    monkeypatch.setattr(Ingesting, "bring", partialmethod(Ingesting.bring, skip_lost=True))
    with pytest.raises(Differs, match="here, right after an ingest"):
        _forget_until_it_shows(topic)


def _forget_until_it_shows(topic: SoakTopic) -> None:
    for _ in range(20):
        topic._forget()
        topic._ingest()
