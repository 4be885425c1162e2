"""A restore that begins while another one ends goes on from there, whatever it had seen of the log before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, StalePlan
from keptlog.passes.readers import Readers
from keptlog.passes.restore import Restore
from keptlog.passes.restore_position import Standing
from keptlog.sinks.kafka_broker.target import Target
from tests.erasure.test_overtaken import add_partitions
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


def test_one_that_sleeps_until_another_one_has_ended_takes_nothing_from_its_reader(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw a reader further than its own position, and registered it anew: what had been held counted no more."""
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"))
    scene.restore()
    scene.append(("b", "1"))
    really = Readers.standing

    def slowly(readers: Readers, topic: str, name: str) -> Standing | None:
        monkeypatch.setattr(Readers, "standing", really)
        assert scene.restore() == [1]
        scene.after(2)
        return really(readers, topic, name)

    monkeypatch.setattr(Readers, "standing", slowly)
    with pytest.raises(StalePlan):
        scene.restore()
    scene.append(("a", None))
    scene.clean()
    scene.after(2 * 24).clean()
    assert scene.tombstones() == [2]
    assert scene.restore() == [2]


def test_one_that_looked_before_partitions_were_added_looks_again(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in a traceback."""
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"))

    def meanwhile(*_: object) -> tuple[Target, bool]:
        add_partitions(scene.store, "users", 2)
        scene.append(("b", "1"))
        return replace(TARGET, partitions=2), False

    monkeypatch.setattr(Restore, "_target", meanwhile)
    assert scene.restore() == [0, 1]


def test_one_whose_topic_has_other_partitions_than_its_target_after_all_is_refused(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"))
    monkeypatch.setattr(Restore, "_target", lambda *_: (replace(TARGET, partitions=2), False))
    with pytest.raises(InvalidConfig, match="people has 2 partitions and users here has 1: records keep"):
        scene.restore()
    assert broker.sent == []
