"""Of what nobody has thought of in one topic others hear nothing: a request goes on, and what is remembered is told."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from keptlog.passes.erasures.erase_look import TopicLook
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.store import LogStore
from tests.erasure.world import KEY, OTHER, World


def test_a_topic_that_can_not_be_looked_at_keeps_no_other_from_being_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("orders", "people"):
        world.create(topic)
    really = LogStore.load_table

    def load(store: LogStore, topic: str, *more: Any) -> Any:
        if topic == "orders":
            raise IndexError("list index out of range")
        return really(store, topic, *more)

    monkeypatch.setattr(LogStore, "load_table", load)
    request = ErasureRequest("r1", ("orders", "people"), (KEY,))
    proposal = world.eraser.propose(request, now_ms=world.now_ms)
    assert ([*proposal.topics], [*proposal.failed]) == (["people"], ["orders"])
    assert [*world.eraser.request(proposal, now_ms=world.now_ms).erasures] == ["people"]


@pytest.mark.parametrize("error", [IndexError("list index out of range"), OSError("gone")], ids=["strange", "outage"])
def test_what_is_remembered_of_open_requests_is_told_of_a_topic_whose_look_stops_at_whatever_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.create()
    world.append((KEY, b"1"), (OTHER, b"1"))
    world.ask(KEY)
    [known] = world.eraser.list(now_ms=world.now_ms).rows

    def stops(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(TopicLook, "look", stops)
    found = world.eraser.list(now_ms=world.now_ms)
    assert [row.erasure for row in found.rows] == [known.erasure]
    assert [*found.failed] == ["users"]
    assert "users" in str(found.failed["users"])
