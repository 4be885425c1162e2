"""A request for several topics goes on with the others where one meets what nobody has thought of."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.store import LogStore
from tests.erasure.world import KEY, World


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
