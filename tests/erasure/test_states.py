"""A request goes through its states as cleans and purges come, on a real store, and what keeps it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.erasures.erasure import ErasureState
from keptlog.log.uncleanable import Backoff
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.changes.mark import Failure
from tests.erasure.world import HOUR_MS, KEY, OTHER, SECOND_MS, VALUE, World
from tests.storage_errors import unlisted
from tests.table.foreign import table_of


def states(world: World) -> list[str]:
    return [each.state for each in world.erasure().reached]


def test_an_appended_topic_gets_its_tombstone_at_once_and_the_request_ends_verified(world: World) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.records()[-1] == (2, KEY, None)
    assert states(world) == ["requested", "tombstoned"]
    assert [(each.partition, each.base_offset, each.end_offset) for each in world.erasure().bounds] == [(0, 2, 3)]

    world.clean()
    assert world.erasure().state == "tombstoned"  # the active segment is not cleaned
    world.later(2 * HOUR_MS)
    world.clean()
    assert world.erasure().state == "compacted"
    assert world.erasure().gone is None

    world.later(2 * HOUR_MS)
    world.clean()
    erasure = world.erasure()
    assert (erasure.state, erasure.gone is not None) == ("compacted", True)  # older snapshots show the tombstone

    world.later(SECOND_MS)
    world.purge()
    assert world.erasure().state == "deleted"
    assert world.files_with(KEY, VALUE) == []
    row = world.verified()
    assert (row.erasure.state, row.blocked, row.next_ms) == ("verified", (), None)
    assert [each.state for each in row.erasure.reached] == [each.value for each in ErasureState]
    assert [receipt.content["request"] for receipt in world.receipts] == ["r1"]
    assert world.records() == [(1, OTHER, b"1")]


def test_a_request_that_has_ended_is_looked_at_no_more(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    world.verified()
    commits = world.commits()
    assert world.erasure().state == "verified"
    assert world.verified().erasure.state == "verified"
    assert (world.commits(), len(world.receipts)) == (commits, 1)


def test_a_look_that_finds_nothing_new_commits_nothing(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    commits = world.commits()
    for _ in range(3):
        world.later(SECOND_MS)
        world.erasure()
    assert world.commits() == commits


def test_each_state_keeps_the_time_at_which_it_was_first_seen(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    asked_ms = world.now_ms
    world.ask()
    world.later(2 * HOUR_MS)
    world.clean()
    seen_ms = world.now_ms
    world.erasure()
    world.later(SECOND_MS)
    reached = {each.state: each.at_ms for each in world.erasure().reached}
    assert reached == {"requested": asked_ms, "tombstoned": asked_ms, "compacted": seen_ms}


def test_a_record_that_is_appended_later_is_new_and_stays(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    world.append((KEY, b"came back"))
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert world.records() == [(2, KEY, b"came back")]


def test_a_key_that_is_not_there_gets_a_tombstone_all_the_same(world: World) -> None:
    world.create()
    world.append((OTHER, b"1"))
    world.ask()
    assert world.records()[-1] == (1, KEY, None)
    assert world.to_deleted().erasure.state == "deleted"


def test_a_key_gets_its_tombstone_in_every_log_that_has_it(world: World) -> None:
    world.create(partitions=3)
    for partition in (0, 2):
        world.append((KEY, VALUE), partition=partition)
    world.ask()
    at = [(number, each.offset) for number, each in world.store.read("users") if each.value is None]
    assert at == [(0, 1), (2, 1)]
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_a_key_given_as_its_hash_is_found_in_the_log(world: World) -> None:
    world.create(partitions=2)
    world.append((OTHER, b"1"), (KEY, VALUE), partition=1)
    world.ask(OTHER, key_hashes=(world.eraser.hash_of(KEY),), id="both")
    tombstones = sorted(each.key or b"" for _, each in world.store.read("users") if each.value is None)
    assert tombstones == [KEY, OTHER]


def test_a_hash_of_no_key_of_the_topic_asks_for_nothing_to_go(world: World) -> None:
    world.create()
    world.append((OTHER, b"1"))
    only_hash = ErasureRequest("r1", ("users",), key_hashes=(world.eraser.hash_of(KEY),))
    result = world.eraser.request(world.eraser.propose(only_hash, now_ms=world.now_ms), now_ms=world.now_ms)
    assert [each.way for each in result.erasures.values()] == ["tombstone"]
    assert world.records() == [(0, OTHER, b"1")]
    world.purge()
    world.later(SECOND_MS)
    world.purge()
    assert world.erasure().state == "deleted"
    assert world.verified().erasure.state == "verified"


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_tag_or_branch_keeps_a_request_from_unreferenced_and_is_named(world: World, kind: str) -> None:
    world.create()
    world.append((KEY, VALUE))
    table = table_of(world.home, "users")
    snapshot_id = table.metadata.current_snapshot_id
    assert snapshot_id is not None
    snapshots = table.manage_snapshots()
    (snapshots.create_tag if kind == "tag" else snapshots.create_branch)(snapshot_id, "audit").commit()
    world.ask()
    row = world.to_deleted()
    assert row.erasure.state == "compacted"
    [text] = row.blocked
    assert text.startswith(f"{kind} audit of users keeps 1 retired segment")
    assert f"DROP {kind.upper()} `audit`" in text
    snapshots = table_of(world.home, "users").manage_snapshots()
    (snapshots.remove_tag if kind == "tag" else snapshots.remove_branch)("audit").commit()
    world.later(SECOND_MS)
    world.purge()
    assert world.row().erasure.state == "deleted"


def test_a_young_orphan_keeps_a_request_from_deleted_and_is_named(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    live = world.store.logs("users")[0].segments[0].path.removeprefix("file://")
    orphan = f"{live.removesuffix('.parquet')}-copy.parquet"
    with open(live, "rb") as one, open(orphan, "wb") as other:  # noqa: PTH123
        other.write(one.read())
    world.ask()
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        world.purge(grace_ms=10**12)
    row = world.row()
    assert row.erasure.state == "unreferenced"
    assert orphan in row.blocked[0]
    world.purge()
    assert world.row().erasure.state == "deleted"


def test_a_folder_that_can_not_be_listed_keeps_a_request_where_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    world.append((KEY, VALUE))
    live = Path(world.store.logs("users")[0].segments[0].path.removeprefix("file://"))
    content = live.read_bytes()
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    orphan = live.with_name("orphan.parquet")
    orphan.write_bytes(content)
    with monkeypatch.context() as patch:
        unlisted(patch, live.parent.name)
        found = world.eraser.verify(topics=["users"], now_ms=world.now_ms)
        assert live.parent.name in str(found.failed["users"])
        assert [row.erasure.state for row in found.rows] == ["deleted"]
    assert world.receipts == []
    orphan.unlink()
    assert world.verified().erasure.state == "verified"


def test_an_erasure_is_not_deleted_before_every_folder_was_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    world.append((KEY, VALUE))
    live = Path(world.store.logs("users")[0].segments[0].path.removeprefix("file://"))
    world.ask()
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        world.purge()
    world.later(SECOND_MS)
    world.purge()
    with monkeypatch.context() as patch:
        unlisted(patch, live.parent.name)
        found = world.eraser.list(["users"], now_ms=world.now_ms)
        assert live.parent.name in str(found.failed["users"])
        assert found.rows[0].erasure.is_open
        assert found.rows[0].erasure.state != "deleted"
    assert world.row().erasure.state == "deleted"


def test_an_uncleanable_log_is_named_as_what_blocks(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    log = world.store.logs("users")[0]
    failure = Failure(log.topic_partition, "segment x is damaged", log.checkpoint)
    world.store.mark_uncleanable("users", [failure], world.now_ms, Backoff(1, 1))
    assert world.row().blocked == ("users-0 is uncleanable: segment x is damaged",)
    # No clean comes any more, whatever is mended: retention takes it.
    world.store.alter_topic("users", {"cleanup.policy": "delete"})
    assert world.row().blocked == ()


def test_what_was_verified_is_forgotten_after_a_month_and_its_receipt_alone_tells(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    world.to_deleted()
    world.verified()
    world.later(31 * 24 * HOUR_MS)
    world.ask(OTHER, id="r2")
    assert [row.id for row in world.eraser.list(now_ms=world.now_ms).rows] == ["r2"]


def test_a_file_that_a_search_finds_a_record_in_is_told_with_who_keeps_it(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    live = world.store.logs("users")[0].segments[0].path.removeprefix("file://")
    content = Path(live).read_bytes()
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    planted = Path(live).with_name("planted.parquet")
    planted.write_bytes(content)
    row = world.verified()
    assert row.erasure.state == "deleted"
    [text] = row.blocked
    assert text.startswith(f"file://{planted} (segment) has 1 record of 1 key; runs that ")
    assert "keptlog purge users deletes what is older than the grace" in text
    planted.unlink()
    assert world.verified().erasure.state == "verified"


def test_a_journal_keeps_a_request_from_deleted_and_is_named(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        world.purge()
    world.later(SECOND_MS)
    world.purge()
    unreadable = f"{world.store.describe_topic('users').location}/metadata/receipts/unreadable/x.json"
    world.store.files.write_bytes(unreadable, b"{")
    row = world.row()
    assert row.erasure.state == "unreferenced"
    [text] = row.blocked
    assert text.startswith("purges or deletions that were not finished of users keep 1 journal")
    assert unreadable in text
    world.store.files.delete(unreadable)
    assert world.row().erasure.state == "deleted"


def test_retired_segments_that_wait_for_a_purge_are_named_with_their_time(world: World) -> None:
    world.create(settings={"file.delete.delay.ms": str(HOUR_MS)})
    world.append((KEY, VALUE))
    world.ask()
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
        world.row()
    [text] = world.row().blocked
    assert text.startswith("older snapshots of users keep ")
    assert " until 20" in text


def test_a_damaged_file_of_the_history_is_swept_and_keeps_no_request_open(world: World) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    file = max(world.home.rglob("metadata/receipts/history/*.json"))  # one a day, and these are hours
    file.write_bytes(file.read_bytes()[:200])
    row = world.verified()
    assert row.erasure.state == "deleted"
    assert f"{file.name} was not looked through" in row.blocked[0]
    world.later(SECOND_MS)
    world.purge(grace_ms=30 * 24 * HOUR_MS)
    assert file.exists(), "it may be on its way to the disk"
    world.purge()
    assert world.verified().erasure.state == "verified"
