"""Records that are live again behind a clean keep their request open, and it says what ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keptlog.log.record import NewRecord, Record
from keptlog.passes.erasures.erasure_request import ErasureRow
from keptlog.passes.repair import Repairer
from keptlog.storage.schema import to_arrow
from tests.erasure.world import KEY, OTHER, SECOND_MS, VALUE, World, new_id
from tests.table.foreign import table_of


def appended(world: World) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, VALUE))
    world.ask()


def dropped_here(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, VALUE)}, 2)
    world.ask(is_here=True)


def deleted_at_the_source(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, VALUE)}, 2)
    world.ask()
    world.ingest({2: (KEY, None)}, 3)


def live_again(world: World) -> ErasureRow:
    """As a verification finds it once another program's commit with the record was adopted."""
    assert world.to_deleted().erasure.state == "deleted"
    table_of(world.home, "users").append(to_arrow(0, [Record(0, KEY, VALUE, world.now_ms)]))
    repairer = Repairer(world.store)
    proposal = repairer.propose("users", is_adoption=True, now_ms=world.now_ms)
    assert proposal
    repairer.repair(proposal, new_id(), now_ms=world.now_ms)
    world.later(SECOND_MS)
    return world.verified()


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (appended, "erase with another id"),
        (dropped_here, "erase --here with another id"),
        (deleted_at_the_source, "erase --here with another id"),
    ],
)
def test_the_message_names_what_removes_them(world: World, begin: Callable[[World], None], again: str) -> None:
    begin(world)
    row = live_again(world)
    assert row.erasure.state == "deleted"
    [text] = row.blocked
    assert "(segment) has 1 record of 1 key; they are live again, by an adoption or another program" in text
    assert ("or by an altered compaction.strategy" in text) == (begin is not dropped_here)
    assert f": {again}, and both requests end once that one has removed them" in text


def test_a_record_that_wins_by_an_altered_strategy_is_told_by_its_cause_and_another_request_ends_both(
    world: World,
) -> None:
    """Another program was blamed. Who altered the strategy was told beforehand that deleted keys may be back."""
    world.create(settings={"keptlog.watermark.retention.ms": "0"})
    world.append_records([NewRecord(KEY, VALUE, world.now_ms + 1)])
    world.ask()
    world.store.alter_topic("users", {"compaction.strategy": "timestamp"})
    assert world.to_deleted().erasure.state == "deleted"
    [text] = world.verified().blocked
    assert "program, or by an altered compaction.strategy: erase with another id, and both requests end" in text
    another_request_ends_both(world)


def test_what_it_names_ends_both_requests(world: World) -> None:
    appended(world)
    assert live_again(world).erasure.is_open
    another_request_ends_both(world)


def another_request_ends_both(world: World) -> None:
    world.ask(id="r2")
    world.to_deleted()
    found = world.eraser.verify(now_ms=world.now_ms)
    assert {row.id: (row.erasure.state, row.blocked) for row in found.rows} == {
        "r1": ("verified", ()),
        "r2": ("verified", ()),
    }
