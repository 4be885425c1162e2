"""An erasure that ended more than 30 days ago, and that its topic has forgotten, is not asked for anew by its id."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.table.chain.sealed_receipts import CHAIN
from keptlog.table.namespaces import RECEIPTS
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World


def forgotten(world: World, request_id: str) -> None:
    """A request that was verified, and forgotten; the customer has come back since."""
    world.create()
    world.append((KEY, VALUE), (OTHER, VALUE))
    world.ask(id=request_id)
    world.bring_on()
    world.verified()
    world.later(31 * DAY_MS)
    world.append((KEY, b"came back"))
    world.purge()
    world.ask(OTHER, id="r2")


@pytest.mark.parametrize("request_id", ["r1", "r" * 50])
def test_an_id_that_was_verified_long_ago_is_refused_with_its_receipt(world: World, request_id: str) -> None:
    """A script asks again for all of its tickets: what the customer has written since was gone."""
    forgotten(world, request_id)
    [receipt] = world.receipts

    refused = world.ask(id=request_id).failed["users"]

    assert isinstance(refused, InvalidConfig)
    assert str(refused) == (
        f"topic users: request {request_id} was verified there, and the topic has forgotten it (keptlog receipt show "
        f"{receipt.sequence}): nothing is asked. What has come since is new: ask under another id"
    )
    assert [value for _, key, value in world.records() if key == KEY] == [b"came back"]
    for other in ("r", "r1-0", request_id[:-1] + "x"):
        assert not world.ask(id=other).failed


def test_a_topic_made_anew_is_asked_under_the_id_of_the_one_before(world: World) -> None:
    forgotten(world, "r1")
    world.store.delete_topic("users", now_ms=world.now_ms)
    world.create()
    world.append((KEY, VALUE))
    assert not world.ask().failed


def test_a_chain_that_is_lost_keeps_nobody_from_asking(world: World) -> None:
    forgotten(world, "r1")
    world.store.committer.catalog.drop_table(f"{RECEIPTS}.{CHAIN}")
    assert not world.ask().failed
