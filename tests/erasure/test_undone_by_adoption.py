"""An open request whose tombstone, or drop, an adoption takes away is named; it ends when another has done it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from keptlog.home import new_id
from keptlog.log.erasures.erasure import ErasureState
from keptlog.log.segment import Segment
from keptlog.passes import undone_erasures
from keptlog.passes.repair import Repairer, RepairProposal
from keptlog.storage.files import Files
from keptlog.storage.segment_reader import read_row_groups
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import current_id, delete_rows, insert, roll_back, table_of, update_rows

__all__ = ["home", "keptlog"]


def proposed(world: World) -> RepairProposal:
    found = Repairer(world.store).propose("users", is_adoption=True, now_ms=world.now_ms)
    assert found is not None
    return found


def asked(world: World) -> int:
    """The snapshot before a request whose tombstone is at offset 2."""
    world.create()
    world.append((KEY, VALUE), (OTHER, VALUE))
    before = current_id(world.home, "users")
    world.ask()
    return before


def test_the_request_is_named_and_ends_when_one_with_another_id_has_done_its_work(world: World) -> None:
    roll_back(world.home, asked(world), "users")
    proposal = proposed(world)
    assert (proposal.undone_erasures, proposal.ended_erasures) == (("r1",), ())
    Repairer(world.store).repair(proposal, new_id(), now_ms=world.now_ms)
    world.append((OTHER, b"2"))
    world.to_deleted()
    row = world.verified()
    assert (row.erasure.state, len(row.blocked)) == ("deleted", 1)
    world.ask(id="r2")
    world.to_deleted()
    found = world.eraser.verify(now_ms=world.now_ms)
    assert [(each.id, each.erasure.state) for each in found.rows] == [("r1", "verified"), ("r2", "verified")]
    assert world.files_with(KEY, VALUE) == []


def test_so_is_one_whose_tombstone_was_deleted_or_given_a_value(world: World) -> None:
    asked(world)
    world.ask(OTHER, id="r2")
    update_rows(world.home, [2], b"changed", "users")
    assert proposed(world).undone_erasures == ("r1",)
    delete_rows(world.home, "offset = 3", "users")
    assert proposed(world).undone_erasures == ("r1", "r2")


def test_so_is_one_here_whose_drop_was_rolled_back(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, VALUE)}, 2)
    before = current_id(world.home, "users")
    world.ask(is_here=True)
    assert world.erasure().has_reached("compacted")  # type: ignore[arg-type]
    roll_back(world.home, before, "users")
    assert proposed(world).undone_erasures == ("r1",)


def cleaned(world: World) -> int:
    """The snapshot before a request whose records are gone, and its tombstone too; files go only days later."""
    world.create(settings={"file.delete.delay.ms": str(9 * DAY_MS)})
    world.append((KEY, VALUE), (OTHER, VALUE))
    before = current_id(world.home, "users")
    world.ask()
    for _ in range(2):
        world.later(DAY_MS)
        world.clean()
    assert world.records() == [(1, OTHER, VALUE)]
    return before


def compacted(world: World) -> int:
    """The same, once somebody has looked."""
    before = cleaned(world)
    assert world.erasure().has_reached(ErasureState.COMPACTED)
    return before


def test_so_is_one_whose_tombstone_had_gone_when_its_records_come_back(world: World) -> None:
    roll_back(world.home, compacted(world), "users")
    assert proposed(world).undone_erasures == ("r1",)


def test_so_is_one_of_which_nobody_has_looked_how_far_it_is_since_its_tombstone_went(world: World) -> None:
    roll_back(world.home, cleaned(world), "users")
    assert proposed(world).undone_erasures == ("r1",)


def test_one_that_has_done_its_work_is_not_named_for_files_in_which_nothing_is_back(world: World) -> None:
    compacted(world)
    update_rows(world.home, [1], b"changed", "users")
    assert proposed(world).undone_erasures == ()


def test_one_whose_tombstone_comes_back_with_the_records_is_not_named_for_the_next_clean_removes_them(
    world: World,
) -> None:
    before, snapshots = compacted(world), table_of(world.home, "users").metadata.snapshots
    [asked_for] = [each.snapshot_id for each in snapshots if each.parent_snapshot_id == before]
    roll_back(world.home, asked_for, "users")
    proposal = proposed(world)
    assert proposal.undone_erasures == ()
    Repairer(world.store).repair(proposal, new_id(), now_ms=world.now_ms)
    world.clean()
    assert (0, KEY, VALUE) not in world.records()


def test_while_its_tombstone_is_there_no_other_file_is_read_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a large log may be back, as after a compaction by another engine."""
    asked(world)
    update_rows(world.home, [0, 1], b"changed", "users")
    read = set[int]()

    def noted(files: Files, segment: Segment, columns: Sequence[str]) -> Iterator[pa.Table]:
        read.add(segment.base_offset)
        return read_row_groups(files, segment, columns)

    monkeypatch.setattr(undone_erasures, "read_row_groups", noted)
    assert proposed(world).undone_erasures == ()
    assert read == {2}


def test_one_that_keeps_its_tombstone_is_not_named(world: World) -> None:
    asked(world)
    delete_rows(world.home, "offset = 1", "users")
    insert(world.home, 7, topic="users")
    assert proposed(world).undone_erasures == ()


def test_the_command_says_so_before_it_asks(world: World, keptlog: Run) -> None:
    roll_back(world.home, asked(world), "users")
    command = ("repair", "users", "--adopt", "--dry-run")
    assert "request r1 is open, and what it did is undone, so records of its keys stay" in keptlog(*command).out
    assert json.loads(keptlog(*command, "--json").out)["undone_erasures"] == ["r1"]
