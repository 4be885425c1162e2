"""What others commit to a branch is as old as where it left main, for who asks what still shows erased records."""

from __future__ import annotations

import pytest

from keptlog.table.removal.erasure_look import unplaced
from tests.erasure.world import HOUR_MS, KEY, OTHER, SECOND_MS, VALUE, World
from tests.table.foreign import current_id, insert, table_of

HIGH_OFFSET = 1000


def purged(world: World) -> None:
    world.later(SECOND_MS)
    world.purge()


def test_a_branch_that_is_committed_to_keeps_a_request_open_also_when_its_base_has_expired(world: World) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    base = current_id(world.home, "users")
    table_of(world.home, "users").manage_snapshots().create_branch(base, "audit").commit()
    world.ask()
    assert world.to_deleted().erasure.state == "compacted"
    head = insert(world.home, HIGH_OFFSET, branch="audit", topic="users")
    for _ in range(2):
        purged(world)
        row = world.row()
        assert row.erasure.state == "compacted"
        assert row.blocked[0].startswith("branch audit of users keeps retired segments")
    metadata = table_of(world.home, "users").metadata
    ids = {each.snapshot_id for each in metadata.snapshots}
    assert (head in ids, base in ids) == (True, False)
    table_of(world.home, "users").manage_snapshots().remove_branch("audit").commit()
    purged(world)
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_a_tag_of_later_and_a_branch_that_leaves_main_there_keep_nothing_from_a_request(world: World) -> None:
    world.create(settings={"delete.retention.ms": "0"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    table = table_of(world.home, "users")
    table.manage_snapshots().create_branch(current_id(world.home, "users"), "audit").commit()
    assert world.to_deleted().erasure.gone
    later = current_id(world.home, "users")
    table = table_of(world.home, "users")
    table.manage_snapshots().create_tag(later, "later").create_branch(later, "work").remove_branch("audit").commit()
    insert(world.home, HIGH_OFFSET, branch="work", topic="users")
    world.append((OTHER, b"2"))
    purged(world)
    world.append((OTHER, b"3"))
    purged(world)
    assert world.row().erasure.state == "deleted"


def test_of_two_tags_only_the_one_from_before_the_records_were_gone_is_named(world: World) -> None:
    """Who is told to drop the other one too loses it for nothing."""
    world.create(settings={"delete.retention.ms": "0"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    table_of(world.home, "users").manage_snapshots().create_tag(current_id(world.home, "users"), "old").commit()
    world.ask()
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
    gone = world.erasure().gone
    assert gone
    table = table_of(world.home, "users")
    (on_gone,) = [each for each in table.metadata.snapshots if each.sequence_number == gone.sequence_number]
    table.manage_snapshots().create_tag(on_gone.snapshot_id, "after-erasure").commit()
    world.append((OTHER, b"2"))
    world.later(2 * HOUR_MS)
    world.clean()
    purged(world)
    (told,) = world.row().blocked
    assert told.startswith("tag old of users keeps 1 retired segment, to be gone by")
    table_of(world.home, "users").manage_snapshots().remove_tag("old").commit()
    purged(world)
    assert world.row().erasure.state == "deleted"


@pytest.mark.parametrize("kept_by", ["branch work", "tag release"])
def test_what_was_made_after_the_records_were_gone_keeps_nothing_also_when_its_base_has_expired(
    world: World, kept_by: str
) -> None:
    """It blocked for as long as it lived, and was said to keep retired segments."""
    world.create(settings={"delete.retention.ms": "0"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    table_of(world.home, "users").manage_snapshots().create_tag(current_id(world.home, "users"), "old").commit()
    world.ask()
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
    assert world.erasure().gone
    base = current_id(world.home, "users")
    table_of(world.home, "users").manage_snapshots().create_branch(base, "work").commit()
    head = insert(world.home, HIGH_OFFSET, branch="work", topic="users")
    if kept_by == "tag release":
        table_of(world.home, "users").manage_snapshots().create_tag(head, "release").remove_branch("work").commit()
    world.append((OTHER, b"2"))
    purged(world)
    table = table_of(world.home, "users")
    ids = {each.snapshot_id for each in table.metadata.snapshots}
    assert (head in ids, base in ids, unplaced(table)) == (True, False, frozenset({kept_by}))
    (told,) = world.row().blocked
    assert told.startswith("tag old of users keeps")
    table.manage_snapshots().remove_tag("old").commit()
    purged(world)
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_what_a_branch_from_before_has_written_anew_is_found_at_the_end(world: World) -> None:
    """The file came later, so nobody knows of its records before it is looked through."""
    world.create(settings={"delete.retention.ms": "0"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    base = current_id(world.home, "users")
    table_of(world.home, "users").manage_snapshots().create_branch(base, "audit").commit()
    world.ask()
    world.to_deleted()
    insert(world.home, HIGH_OFFSET, branch="audit", topic="users")
    purged(world)
    rows = table_of(world.home, "users").scan().use_ref("audit").to_arrow()
    table_of(world.home, "users").overwrite(rows, branch="audit")
    purged(world)
    assert unplaced(table_of(world.home, "users")) == {"branch audit"}
    assert world.row().erasure.state == "deleted"
    row = world.verified()
    assert row.erasure.state == "deleted"
    assert "branch audit of users keeps" in row.blocked[0]
    assert world.receipts == []
