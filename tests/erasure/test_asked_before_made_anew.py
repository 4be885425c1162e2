"""A topic is deleted and created again while keys are asked for: the request was of the one before, and all is well."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.errors import StalePlan
from keptlog.table.changes.append import Append
from keptlog.table.changes.erasures import RegisterChange
from keptlog.table.commits.commit import Committer
from tests.erasure.world import KEY, OTHER, VALUE, World

TOLD = (
    "topic users was deleted and created again meanwhile, and request r1 was of the one before: ask again with the "
    "same id if it is meant for the new one"
)


def make_anew(world: World) -> None:
    world.store.delete_topic("users", world.now_ms)
    world.create()


@pytest.mark.parametrize("is_ingested", [False, True])
def test_after_the_request_has_landed(world: World, monkeypatch: pytest.MonkeyPatch, is_ingested: bool) -> None:
    world.create()
    if is_ingested:
        world.ingest({0: (KEY, VALUE)}, 1)
    else:
        world.append((KEY, VALUE))
    commit = Committer.commit

    def and_then(committer: Committer, *given: Any) -> Any:
        monkeypatch.undo()
        landed = commit(committer, *given)
        make_anew(world)
        return landed

    monkeypatch.setattr(Committer, "commit", and_then)
    failed = world.ask(KEY, is_here=is_ingested).failed["users"]
    assert (type(failed), str(failed)) == (StalePlan, TOLD)
    assert world.eraser.list(now_ms=world.now_ms).rows == ()
    assert world.ask(KEY).failed == {}


def test_before_it_has_landed_where_the_new_one_has_a_request_of_that_id(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the new topic has is not the answer to what the old one was asked."""
    world.create()
    world.append((KEY, VALUE))
    append = RegisterChange.append

    def and_before(change: RegisterChange, *given: Any) -> Any:
        monkeypatch.undo()
        make_anew(world)
        world.append((OTHER, VALUE))
        assert world.ask(KEY).failed == {}
        return append(change, *given)

    monkeypatch.setattr(RegisterChange, "append", and_before)
    failed = world.ask(KEY).failed["users"]
    assert (type(failed), str(failed)) == (StalePlan, TOLD)
    assert len(world.eraser.list(now_ms=world.now_ms).rows) == 1


def test_while_its_tombstones_are_appended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create()
    world.append((KEY, VALUE))
    append = Append.append

    def and_before(batch: Append, *given: Any) -> Any:
        monkeypatch.undo()
        make_anew(world)
        return append(batch, *given)

    monkeypatch.setattr(Append, "append", and_before)
    failed = world.ask(KEY).failed["users"]
    assert isinstance(failed, StalePlan)
    assert "deleted and created again" in str(failed)
    assert world.records() == []
