"""A topic is deleted and created again while keys are dropped from it: the new one loses no record by that."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.engine.engine import Engine
from keptlog.errors import UnknownTopic
from tests.erasure.world import KEY, OTHER, VALUE, World


def test_the_new_topic_keeps_the_records_of_the_keys(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    drop = Engine.drop

    def and_meanwhile(engine: Engine, *given: Any) -> Any:
        monkeypatch.undo()
        world.store.delete_topic("users", world.now_ms)
        world.create()
        world.ingest({0: (KEY, b"new"), 1: (OTHER, b"2")}, 2)
        return drop(engine, *given)

    monkeypatch.setattr(Engine, "drop", and_meanwhile)
    failed = world.ask(is_here=True).failed
    assert world.records() == [(0, KEY, b"new"), (1, OTHER, b"2")]
    assert isinstance(failed["users"], UnknownTopic)
    assert "deleted and created again" in str(failed["users"])
