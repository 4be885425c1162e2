"""A restore whose topic becomes another one of its name meanwhile takes nothing of the one for the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, StalePlan
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.readers import Readers
from keptlog.passes.restore import Restore
from keptlog.sinks.kafka_broker.target import Target, Targets
from keptlog.table.namespaces import NAMESPACE
from tests.restore.stand_in import TARGET, Broker, StandIn
from tests.restore.test_missed_deletions import SETTINGS, Scene

ANOTHER = "topic users was deleted and created again meanwhile; nothing was done to the new one"
COUNT = 8


@pytest.fixture
def scene(tmp_path: Path, broker: Broker) -> Scene:
    scene = Scene(tmp_path, broker)
    scene.append(*[(f"old{i}", "1") for i in range(5)])
    return scene


def made(scene: Scene, name: str) -> None:
    scene.store.create_topic(name, 1, SETTINGS)
    records = [NewRecord(f"new{i}".encode(), b"1", scene.now_ms, 0) for i in range(COUNT)]
    scene.store.append(name, records, new_id(), scene.now_ms)


def renamed(scene: Scene) -> None:
    """As an engine replaces a table by another one."""
    made(scene, "users_new")
    catalog = scene.store.committer.catalog
    catalog.rename_table((NAMESPACE, "users"), (NAMESPACE, "users_old"))
    catalog.rename_table((NAMESPACE, "users_new"), (NAMESPACE, "users"))


def made_anew(scene: Scene) -> None:
    scene.store.delete_topic("users", scene.now_ms)
    made(scene, "users")


def at_the_target(scene: Scene, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Scene], None]) -> None:
    """Let it happen while the restore looks at its target, which takes minutes where that is to be created."""

    def meanwhile(*_: object) -> tuple[Target, bool]:
        monkeypatch.setattr(Restore, "_target", lambda *_: (TARGET, False))
        happens(scene)
        return TARGET, False

    monkeypatch.setattr(Restore, "_target", meanwhile)


def require_all_of_the_new_one(scene: Scene) -> None:
    assert scene.broker.sent == []
    assert scene.readers.list(["users"], now_ms=scene.now_ms) == []
    assert scene.restore() == list(range(COUNT))


@pytest.mark.parametrize("happens", [renamed, made_anew])
def test_the_new_one_is_restored_whole_by_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Scene], None]
) -> None:
    """The end of the old log became the position in the new one, whose first records never came."""
    if happens is made_anew:  # with records it would be missed by the look at them
        scene.store.delete_records(TopicPartition("users", 0), -1, None)
    at_the_target(scene, monkeypatch, happens)
    with pytest.raises(StalePlan, match=ANOTHER):
        scene.restore()
    require_all_of_the_new_one(scene)


def test_so_it_is_where_it_came_while_it_was_asked_whether_the_target_takes_the_records(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Readers.standing

    def standing(readers: Readers, topic: str, name: str) -> object:
        found = really(readers, topic, name)
        monkeypatch.setattr(Readers, "standing", really)
        renamed(scene)
        return found

    monkeypatch.setattr(Readers, "standing", standing)
    with pytest.raises(StalePlan, match=ANOTHER):
        scene.restore()
    require_all_of_the_new_one(scene)


def test_so_it_is_where_it_came_before_the_second_look_of_one_that_was_overtaken(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.restore()
    scene.append(("old5", "1"))

    def overtaken(_: Scene) -> None:
        scene.append(("old6", "1"))
        scene.restore()
        positions = StandIn.positions

        def looked(writer: StandIn) -> object:
            monkeypatch.setattr(StandIn, "positions", positions)
            renamed(scene)
            return positions(writer)

        monkeypatch.setattr(StandIn, "positions", looked)

    at_the_target(scene, monkeypatch, overtaken)
    with pytest.raises(StalePlan, match=ANOTHER):
        scene.restore()
    assert scene.broker.sent == list(range(7))
    with pytest.raises(InvalidConfig, match="was restored from another topic users"):
        scene.restore()


def test_what_was_sent_of_the_old_one_by_then_is_no_position_in_the_new_one(scene: Scene) -> None:
    scene.broker.transaction_records = 1
    waiting = [renamed]

    def meanwhile(_line: str) -> None:
        if waiting:
            waiting.pop()(scene)

    with pytest.raises(StalePlan, match=ANOTHER):
        scene.restore(progress=meanwhile)
    assert scene.broker.sent == list(range(5))
    assert scene.readers.list(["users"], now_ms=scene.now_ms) == []
    with pytest.raises(InvalidConfig, match="was restored from another topic users"):
        scene.restore()


def test_no_target_is_created_from_the_one_for_the_other(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    created: list[str] = []

    def find(_targets: Targets, _name: str) -> None:
        renamed(scene)

    monkeypatch.setattr(Targets, "__init__", lambda *_: None)
    monkeypatch.setattr(Targets, "find", find)
    monkeypatch.setattr(Targets, "as_created", lambda *_: TARGET)
    monkeypatch.setattr(Targets, "create", lambda _, name, *__: created.append(name))
    with pytest.raises(StalePlan, match=ANOTHER):
        scene.restore()
    assert created == []
