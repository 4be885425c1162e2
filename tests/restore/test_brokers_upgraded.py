"""Brokers that come to Kafka 2.8 give each topic there an id: a restore that was under way stays the reader it was.

Another one does not become that reader.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Committed

from keptlog.errors import InvalidConfig
from keptlog.kafka_client.topic_ids import NO_ID
from keptlog.passes.restore import Restore, reader_name_of
from keptlog.sinks.kafka_broker.target import Targets
from tests.restore.stand_in import TARGET, Broker
from tests.restore.test_missed_deletions import Scene


def test_what_waited_for_it_is_sent(tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was another reader by its name, for which nothing had waited: it was refused after delete.retention.ms."""
    without_id = replace(TARGET, id=NO_ID)
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"), ("b", "1"))
    with monkeypatch.context() as before:
        before.setattr(Restore, "_target", lambda *_: (without_id, False))
        assert scene.restore() == [0, 1]
    scene.after(1).append(("a", None))
    scene.after(1).clean()
    scene.after(2 * 24).clean()
    assert scene.restore() == [2]
    standing = scene.standing()
    assert (standing.reader, standing.position) == (reader_name_of(without_id), 3)


def test_a_reader_of_a_topic_of_that_name_at_older_brokers_is_left_alone(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where two clusters have one: the first restore to the newer took it over, and nothing waited for the older."""
    without_id = replace(TARGET, id=NO_ID)
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"), ("b", "1"))
    with monkeypatch.context() as there:
        there.setattr(Restore, "_target", lambda *_: (without_id, False))
        assert scene.restore() == [0, 1]
    scene.append(("c", "1"))
    broker.committed = Committed("people", 0, -1001)
    monkeypatch.setattr(Targets, "with_records", lambda *_: [])
    assert scene.restore() == [0, 1, 2]
    found = {each.reader: each.position for each in scene.readers.list(["users"], now_ms=scene.now_ms)}
    assert found == {reader_name_of(without_id): 2, reader_name_of(TARGET): 3}


def test_one_whose_position_is_forgotten_by_then_sends_nothing_twice(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader alone tells of it, under the name of before."""
    without_id = replace(TARGET, id=NO_ID)
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"), ("b", "1"))
    with monkeypatch.context() as before:
        before.setattr(Restore, "_target", lambda *_: (without_id, False))
        assert scene.restore() == [0, 1]
    broker.committed = Committed("people", 0, -1001)
    monkeypatch.setattr(Targets, "with_records", lambda *_: [0])
    with pytest.raises(InvalidConfig, match=rf"keptlog reader remove users {reader_name_of(without_id)}, and then"):
        scene.restore(append_to_existing=True)
    assert broker.sent == [0, 1]
