"""A restore that begins while another one ends goes on from there, whatever it had seen of the log before."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.passes.restore import Restore
from keptlog.sinks.kafka_broker.target import Target
from tests.restore.stand_in import TARGET, Broker
from tests.restore.test_missed_deletions import Scene


def test_one_that_looked_before_another_one_sent_more_looks_again(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"))

    def overtaken(*_: object) -> tuple[Target, bool]:
        monkeypatch.setattr(Restore, "_target", lambda *_: (TARGET, False))
        scene.append(("b", "1"))
        assert scene.restore() == [0, 1]
        scene.append(("c", "1"))
        return TARGET, False

    monkeypatch.setattr(Restore, "_target", overtaken)
    assert scene.restore() == [0, 1, 2]
    assert scene.restore() == []
