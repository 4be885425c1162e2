"""A topic is deleted and created again while keys are dropped from it: the new one loses no record by that."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.engine.engine import Engine
from keptlog.errors import UnknownTopic
from keptlog.passes.drop import Dropper
from tests.erasure.world import KEY, OTHER, VALUE, World


def make_anew(world: World) -> None:
    world.store.delete_topic("users", world.now_ms)
    world.create()
    world.ingest({0: (KEY, b"new"), 1: (OTHER, b"2")}, 2)


def require_kept(world: World) -> None:
    failed = world.ask(is_here=True).failed
    assert world.records() == [(0, KEY, b"new"), (1, OTHER, b"2")]
    assert isinstance(failed["users"], UnknownTopic)
    assert "deleted and created again" in str(failed["users"])


def test_the_new_topic_keeps_the_records_of_the_keys(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    drop = Engine.drop

    def and_meanwhile(engine: Engine, *given: Any) -> Any:
        monkeypatch.undo()
        make_anew(world)
        return drop(engine, *given)

    monkeypatch.setattr(Engine, "drop", and_meanwhile)
    require_kept(world)


def test_so_it_does_where_it_is_created_before_the_keys_are_looked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    drop = Dropper.drop

    def and_before(dropper: Dropper, *given: Any, **how: Any) -> Any:
        make_anew(world)
        return drop(dropper, *given, **how)

    monkeypatch.setattr(Dropper, "drop", and_before)
    require_kept(world)
