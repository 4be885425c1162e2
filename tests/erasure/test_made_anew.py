"""A topic is deleted and created again while its erasures are verified: that proves no request of the new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from keptlog.engine.engine import Engine
from keptlog.errors import StalePlan
from keptlog.log.search import FileFindings
from keptlog.passes.erasures.erase_verify import Verification
from tests.erasure.world import KEY, OTHER, SECOND_MS, VALUE, World


@pytest.fixture
def deleted(world: World) -> World:
    """A topic whose request waits for nothing but its verification."""
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    return world


def make_anew(world: World) -> None:
    """The same id asks for the same key, behind the bound of the topic that was deleted."""
    world.later(SECOND_MS)
    world.store.delete_topic("users", world.now_ms)
    world.create()
    world.append(*[(OTHER, b"1")] * 5, (KEY, VALUE))
    world.ask()
    world.later(SECOND_MS)


def require_unproved(world: World) -> None:
    """Neither the old request nor the new one, and nothing is said of a topic that nobody has looked through."""
    found = world.eraser.list(now_ms=world.now_ms)
    assert [row.erasure.state for row in found.rows] == ["tombstoned"]
    new_id = world.store.describe_topic("users").id
    assert not [each for each in world.receipts if new_id in each.id]
    assert world.files_with(VALUE)


def require_refused(world: World, text: str) -> None:
    found = world.eraser.verify(now_ms=world.now_ms)
    assert [row.is_verified_now for row in found.rows] == [False]
    assert isinstance(found.failed["users"], StalePlan)
    assert text in str(found.failed["users"])
    require_unproved(world)


def test_before_its_files_are_looked_through(deleted: World, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = Verification.verify

    def and_before(verification: Verification, *given: Any) -> Any:
        make_anew(deleted)
        return verify(verification, *given)

    monkeypatch.setattr(Verification, "verify", and_before)
    require_refused(deleted, "request r1 of ")


def test_while_its_files_are_looked_through(deleted: World, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Engine.search

    def and_meanwhile(engine: Engine, *given: Any) -> Sequence[FileFindings]:
        make_anew(deleted)
        return search(engine, *given)

    monkeypatch.setattr(Engine, "search", and_meanwhile)
    require_refused(deleted, "deleted and created again")


def test_after_its_files_were_looked_through(deleted: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt is of the old topic, and true; the new one's request goes on."""
    eraser, old_id = deleted.eraser, deleted.store.describe_topic("users").id
    sealed, seal = list[str](), eraser.store.seal
    assert seal is not None

    def and_then(drafts: Any) -> Any:
        done = seal(drafts)
        make_anew(deleted)
        sealed.append(old_id)
        return done

    eraser.store.seal = and_then
    eraser.verify(now_ms=deleted.now_ms)
    assert sealed == [old_id]
    assert [each.content["table_uuid"] for each in deleted.receipts] == [old_id]
    require_unproved(deleted)


def test_an_erasure_that_somebody_else_has_verified_meanwhile_is_verified_once(
    deleted: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = Verification.verify

    def and_before(verification: Verification, *given: Any) -> Any:
        monkeypatch.undo()
        assert deleted.verified().is_verified_now
        return verify(verification, *given)

    monkeypatch.setattr(Verification, "verify", and_before)
    found = deleted.eraser.verify(now_ms=deleted.now_ms)
    assert (dict(found.failed), [row.erasure.state for row in found.rows]) == ({}, ["verified"])
    assert len(deleted.receipts) == 1
