"""Brokers that come to Kafka 2.8 give each topic there an id: a restore that was under way stays the reader it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.kafka_client.topic_ids import NO_ID
from keptlog.passes.restore import Restore, reader_name_of
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
