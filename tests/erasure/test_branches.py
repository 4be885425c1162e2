"""What others commit to a branch is as old as where it left main, for who asks what still shows erased records."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

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


def insert_behind(world: World, branch: str) -> int:
    """Another program's commit to a branch, whose base expires; gives the branch's snapshot."""
    base = table_of(world.home, "users").metadata.refs[branch].snapshot_id
    head = insert(world.home, HIGH_OFFSET, branch=branch, topic="users")
    world.append((OTHER, b"2"))
    purged(world)
    ids = {each.snapshot_id for each in table_of(world.home, "users").metadata.snapshots}
    assert (head in ids, base in ids) == (True, False)
    return head


def shown_by(world: World, branch: str) -> set[str]:
    return {each.file.file_path for each in table_of(world.home, "users").scan().use_ref(branch).plan_files()}


def until_gone(world: World) -> None:
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
    assert world.erasure().gone


@pytest.mark.parametrize("kept_by", ["branch work", "tag release"])
def test_what_was_made_after_the_records_were_gone_keeps_nothing_also_when_its_base_has_expired(
    world: World, kept_by: str
) -> None:
    """It blocked for as long as it lived, and was said to keep retired segments."""
    world.create(settings={"delete.retention.ms": "0"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    table_of(world.home, "users").manage_snapshots().create_tag(current_id(world.home, "users"), "old").commit()
    world.ask()
    until_gone(world)
    table_of(world.home, "users").manage_snapshots().create_branch(current_id(world.home, "users"), "work").commit()
    head = insert_behind(world, "work")
    if kept_by == "tag release":
        table_of(world.home, "users").manage_snapshots().create_tag(head, "release").remove_branch("work").commit()
    (told,) = world.row().blocked
    assert told.startswith("tag old of users keeps")
    table_of(world.home, "users").manage_snapshots().remove_tag("old").commit()
    purged(world)
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_a_branch_of_later_keeps_nothing_also_if_it_shows_older_segments_that_main_has_replaced(world: World) -> None:
    world.create(settings={"delete.retention.ms": "0"}, partitions=2)
    world.append((OTHER, b"1"), partition=1)
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    until_gone(world)
    (kept,) = world.store.logs("users")[1].segments
    table_of(world.home, "users").manage_snapshots().create_branch(current_id(world.home, "users"), "work").commit()
    insert_behind(world, "work")
    world.append((OTHER, b"2"), partition=1)
    world.later(2 * HOUR_MS)
    world.clean()
    purged(world)
    assert kept.path not in {each.path for each in world.store.logs("users")[1].segments}
    assert kept.path in shown_by(world, "work")
    assert world.row().erasure.state == "deleted"


@pytest.mark.parametrize("change", ["rewritten", "updated"])
def test_what_a_branch_from_before_has_written_anew_keeps_a_request_open(world: World, change: str) -> None:
    """Its files are newer than the moment at which the records were gone, and have them."""
    world.create(settings={"delete.retention.ms": "0"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    base = current_id(world.home, "users")
    table_of(world.home, "users").manage_snapshots().create_branch(base, "audit").commit()
    world.ask()
    assert world.to_deleted().erasure.gone
    insert_behind(world, "audit")
    rows = table_of(world.home, "users").scan().use_ref("audit").to_arrow()
    where = "offset >= 0" if change == "rewritten" else "offset < 2"
    table_of(world.home, "users").overwrite(
        rows if change == "rewritten" else rows.filter(pc.field("offset") < 2), where, branch="audit"
    )
    for _ in range(2):
        purged(world)
        row = world.row()
        assert row.erasure.state == "compacted"
        assert row.blocked[0].startswith("branch audit of users keeps")
    assert world.verified().erasure.state == "compacted"
    table_of(world.home, "users").manage_snapshots().remove_branch("audit").commit()
    purged(world)
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
