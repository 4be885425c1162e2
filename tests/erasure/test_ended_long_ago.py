"""An erasure that ended more than 30 days ago: its topic has forgotten it, and its receipt tells of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.log.words.iso_time import iso_time
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.chain.sealed_receipts import CHAIN
from keptlog.table.namespaces import RECEIPTS
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World
from tests.table.receipt_chains import chain_at, draft, stored


@pytest.mark.parametrize("happens", ["another request and a purge", "another request", "nothing"])
def test_an_id_that_ended_long_ago_is_never_asked_anew_by_mistake(world: World, happens: str) -> None:
    """A script asks again for all of its tickets, and the customer of one has come back since."""
    world.create()
    world.append((KEY, VALUE), (OTHER, VALUE))
    world.ask()
    world.bring_on()
    proved = world.verified().erasure
    world.later(31 * DAY_MS)
    world.append((KEY, b"came back"))
    if happens == "another request and a purge":
        world.purge()
    if happens != "nothing":
        world.ask(OTHER, id="r2")
    for deadline_ms in (None, world.now_ms + DAY_MS, world.now_ms - DAY_MS):
        again = world.ask(deadline_ms=deadline_ms)
        assert not again.failed
        assert again.repeated == {"users"}
        assert replace(again.erasures["users"], looked=(), gone=None) == replace(proved, looked=(), gone=None)
    assert str(world.ask(OTHER).failed["users"]) == (
        "topic users: request r1 was made for other keys; give this one another id"
    )
    assert [value for _, key, value in world.records() if key == KEY] == [b"came back"]
    assert world.ask(id="r").repeated == frozenset()


def test_of_an_id_that_ended_long_ago_its_receipt_is_told(world: World) -> None:
    world.create()
    world.ask()
    world.bring_on()
    ended_ms = world.verified().erasure.ended_ms
    world.later(31 * DAY_MS)
    world.ask(OTHER, id="r2")
    proposed = world.eraser.propose(ErasureRequest("r1", ("users",), (KEY,)), now_ms=world.now_ms).topics["users"]
    assert ended_ms
    assert proposed.repeated_told("r1") == (
        f"r1 was verified on {iso_time(ended_ms)}: receipt {world.receipts[0].sequence}; nothing is asked: ask under "
        "another id"
    )


def test_nothing_is_asked_where_the_receipt_of_an_id_that_ended_long_ago_cant_be_read(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask(id="r" * 50)
    world.bring_on()
    world.verified()
    world.later(31 * DAY_MS)
    world.ask(OTHER, id="r2")
    number = world.receipts[0].sequence
    (path,) = (each for each in stored(chain_at(world.home)) if each.name.startswith(f"{number:012d}"))
    path.write_bytes(b"{}")
    told = str(world.ask(id="r" * 50).failed["users"])
    assert told.startswith(f"topic users: request {'r' * 50} was verified before, and its receipt erasure-")
    assert f" can't be read (the file of receipt {number}, " in told
    assert told.endswith("): nothing is asked; ask under another id")


def test_a_request_that_ended_before_its_chain_was_lost_is_not_asked_anew(world: World) -> None:
    """The catalog has a new chain, and the receipts of the one before lie where they were."""
    world.create()
    world.ask()
    world.bring_on()
    world.verified()
    world.later(31 * DAY_MS)
    world.store.committer.catalog.drop_table(f"{RECEIPTS}.{CHAIN}")
    world.ask(OTHER, id="r2")
    for is_new in (False, True):
        if is_new:
            chain_at(world.home).append([draft("new")])
        told = str(world.ask().failed["users"])
        assert told.startswith("topic users: request r1 was verified before, and its receipt erasure-"), told
