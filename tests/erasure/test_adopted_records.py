"""Records that an adoption takes in below the bound of a verified request: it is named before anybody agrees."""

from __future__ import annotations

import json

import pytest

from keptlog.log.record import Record
from keptlog.passes.repair import Repairer, RepairProposal
from keptlog.storage.schema import to_arrow
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.world import KEY, OTHER, VALUE, World
from tests.table.foreign import insert, table_of

__all__ = ["home", "keptlog"]


@pytest.fixture
def erased(world: World) -> World:
    """Offsets 0 to 2, of which the last is the tombstone of a request that is verified."""
    world.create(partitions=2)
    world.append((KEY, VALUE), (OTHER, VALUE))
    world.ask()
    world.to_deleted()
    assert world.verified().erasure.state == "verified"
    return world


def adoption(world: World) -> RepairProposal:
    proposal = Repairer(world.store).propose("users", is_adoption=True, now_ms=world.now_ms)
    assert proposal is not None
    return proposal


def bring_back(world: World, offset: int) -> None:
    table_of(world.home, "users").append(to_arrow(0, [Record(offset, KEY, VALUE, world.now_ms)]))


def test_a_verified_request_is_named_where_an_adoption_brings_records_below_its_bound(erased: World) -> None:
    bring_back(erased, 0)
    assert adoption(erased).ended_erasures == ("r1",)


def test_one_is_not_named_for_records_behind_its_bound_or_in_a_partition_of_which_it_has_none(erased: World) -> None:
    bring_back(erased, 7)
    insert(erased.home, 0, partition=1, topic="users")
    proposal = adoption(erased)
    assert (len(proposal.foreign_segments), proposal.ended_erasures) == (2, ())


def test_an_open_one_is_not_named_for_its_verification_finds_them(erased: World) -> None:
    erased.ask(id="r2")
    bring_back(erased, 0)
    assert adoption(erased).ended_erasures == ("r1",)


def test_the_command_says_so_before_it_asks(erased: World, keptlog: Run) -> None:
    bring_back(erased, 0)
    command = ("repair", "users", "--adopt", "--dry-run")
    told = keptlog(*command)
    assert told.code == 0
    assert "request r1 is verified, and adopted files begin below its bound" in told.out
    assert json.loads(keptlog(*command, "--json").out)["ended_erasures"] == ["r1"]


def test_a_register_that_is_gone_refuses_no_adoption_and_is_told(erased: World, keptlog: Run) -> None:
    bring_back(erased, 0)
    for path in erased.register_files:
        path.unlink()
    command = ("repair", "users", "--adopt", "--dry-run")
    assert (
        "whether it brings records back that were erased is not known: topic users: its erasures"
        in keptlog(*command).out
    )
    assert json.loads(keptlog(*command, "--json").out)["ended_erasures"] is None
