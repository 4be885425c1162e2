"""An erasure that ended more than 30 days ago, and that its topic has forgotten, is not asked for anew by its id."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest

from keptlog.errors import Action, InvalidConfig
from keptlog.home import open_home
from keptlog.passes.erasures.erasure_request import ErasureRequest
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
        f"topic users: request {request_id} was verified there before, and is not among its erasures any more (keptlog "
        f"receipt show {receipt.sequence}): nothing is asked. Ask under another id for what is there now"
    )
    assert [value for _, key, value in world.records() if key == KEY] == [b"came back"]
    for other in ("r", "r1-0", request_id[:-1] + "x"):
        assert not world.ask(id=other).failed


def test_an_id_that_is_forgotten_between_proposal_and_request_is_refused(world: World) -> None:
    """It was told as repeated, and took what the customer had written since."""
    world.create()
    world.append((KEY, VALUE), (OTHER, VALUE))
    world.ask()
    world.bring_on()
    world.verified()
    world.later(31 * DAY_MS)
    world.append((KEY, b"came back"))
    proposal = world.eraser.propose(ErasureRequest("r1", ("users",), (KEY,)), now_ms=world.now_ms)
    assert proposal.topics["users"].is_repeated
    world.purge()
    world.ask(OTHER, id="r2")

    failed = world.eraser.request(proposal, now_ms=world.now_ms).failed

    assert str(failed["users"]).endswith("nothing is asked. Ask under another id for what is there now")
    assert [value for _, key, value in world.records() if key == KEY] == [b"came back"]


def test_a_request_that_is_asked_for_again_commits_nothing(world: World) -> None:
    """It had taken itself out of the list, 30 days after it had ended, and was told as damage."""
    world.create(settings={"cleanup.policy": "delete"})
    world.append((KEY, VALUE))
    world.ask()
    commits = world.commits()
    world.later(31 * DAY_MS)
    assert world.ask().repeated == {"users"}
    assert world.commits() == commits


def test_a_home_asks_its_own_receipts(world: World) -> None:
    forgotten(world, "r1")
    asked = open_home(world.home).eraser.propose(ErasureRequest("r1", ("users",), (KEY,)), now_ms=world.now_ms)
    assert "was verified there before" in str(asked.failed["users"])


@pytest.mark.parametrize("error", [PermissionError(13, "no right"), TimeoutError("no answer")], ids=["right", "outage"])
def test_who_can_not_see_the_receipts_asks_nothing_and_is_told_after_one_question(world: World, error: OSError) -> None:
    """Whose right was missing asked anew, and took what the customer had written since."""
    forgotten(world, "r1")
    world.create("orders")
    listing = Mock(side_effect=error)
    eraser = replace(world.eraser, list_receipts=listing)
    proposal = eraser.propose(ErasureRequest("r1", ("users", "orders"), (KEY,)), now_ms=world.now_ms)
    failed = eraser.request(proposal, now_ms=world.now_ms).failed
    assert failed.keys() == {"users", "orders"}
    assert listing.call_count == 1
    assert all("can't be told, so nothing is asked: " in str(each) for each in failed.values())
    is_refused = isinstance(error, PermissionError)
    assert [each.action is Action.FIX_STORAGE for each in failed.values()] == [is_refused] * 2
    assert ("see to its permissions" in str(failed["users"])) == is_refused
    assert [value for _, key, value in world.records() if key == KEY] == [b"came back"]


def test_of_an_id_that_was_made_just_now_no_receipt_is_looked_for(world: World) -> None:
    world.create()
    listing = Mock(side_effect=PermissionError(13, "no right"))
    eraser = replace(world.eraser, list_receipts=listing)
    asked = eraser.propose(ErasureRequest("r1", ("users",), (KEY,)), now_ms=world.now_ms, is_new=True)
    assert not asked.failed
    assert not listing.called


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
