"""A proposal asks the catalog for its topic as seldom as it can: to describe it, for its logs, and for all the rest."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.store import LogStore
from tests.erasure.world import KEY, VALUE, World


@pytest.mark.parametrize("has_segments", [True, False])
def test_a_proposal_loads_its_topic_three_times(
    world: World, monkeypatch: pytest.MonkeyPatch, *, has_segments: bool
) -> None:
    world.create()
    if has_segments:
        world.append((KEY, VALUE))
    loaded, really = [], LogStore.load_table

    def counted(store: LogStore, topic: str) -> Any:
        loaded.append(topic)
        return really(store, topic)

    monkeypatch.setattr(LogStore, "load_table", counted)
    request = ErasureRequest("r1", ("users",), (KEY,))
    proposal = world.eraser.propose(request, now_ms=world.now_ms, is_new=True)
    assert not proposal.failed
    assert loaded == ["users"] * 3
