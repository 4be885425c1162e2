"""A restore whose position the brokers have forgotten sends nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Committed

from keptlog.errors import InvalidConfig
from keptlog.sinks.kafka_broker.target import Targets
from tests.restore.stand_in import Broker
from tests.restore.test_missed_deletions import NAME, Scene


def test_one_that_was_killed_before_its_end_is_not_begun_again(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader stands at the beginning until all is there, so it was taken for one that had sent nothing."""
    monkeypatch.setattr(Targets, "with_records", lambda *_: [0])
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"), ("b", "1"))
    scene.restore_one_transaction()
    assert (broker.sent, scene.standing().position) == ([0], 0)
    broker.committed = Committed("people", 0, -1001)
    with pytest.raises(InvalidConfig, match="has records of an earlier restore of users, whose position is gone there"):
        scene.restore()
    assert broker.sent == [0]
    scene.readers.remove("users", NAME)
    assert scene.restore() == [0, 1]
