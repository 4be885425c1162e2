"""By when an erasure is promised, and what is told of a deadline that can't be kept."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.log.erasures.erasure import ErasureWay
from keptlog.log.given.partitioner import partition_for_key
from keptlog.log.record import NewRecord
from keptlog.log.retention import retention_of
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.erasures.erasure_request import ErasureRequest, TopicProposal
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer
from keptlog.table.metadata.state import read_open_erasures
from tests.erasure.remembered import deleted_before, proposed_and_asked, require_verified_at
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import table_of

PURGES_MS, GRACE_MS = 2 * DAY_MS, DAY_MS


def proposed(world: World, **how: object) -> TopicProposal:
    request = ErasureRequest("r1", ("users",), (KEY,), **how)  # type: ignore[arg-type]
    return world.eraser.propose(request, now_ms=world.now_ms).topics["users"]


def test_the_promise_is_the_lag_the_tombstone_and_two_purges(world: World) -> None:
    world.create(settings={"file.delete.delay.ms": "1000"})
    assert proposed(world).deadline_ms == world.now_ms + HOUR_MS + HOUR_MS + PURGES_MS + 2000


def test_a_topic_without_a_maximum_lag_promises_nothing_and_says_so(world: World) -> None:
    world.create(settings={"max.compaction.lag.ms": str(2**63 - 1)})
    found = proposed(world)
    assert (found.deadline_ms, found.hindrances) == (None, ())
    assert "max.compaction.lag.ms is not set" in str(found.no_promise)


@pytest.mark.parametrize("name", ["delete.retention.ms", "file.delete.delay.ms"])
def test_a_topic_whose_maximum_lag_is_set_is_not_told_to_set_it(world: World, name: str) -> None:
    world.create(settings={name: str(2**63 - 1)})
    found = proposed(world)
    assert (found.deadline_ms, found.no_promise) == (
        None,
        "what the settings of the topic add up to ends after the year 9999: lower them, or give --by",
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"cleanup.policy": ""}, "cleanup.policy is empty, so that nothing ever goes: delete its records"),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, "retention.ms=-1, so that nothing ever goes by its age"),
    ],
)
def test_a_topic_of_which_nothing_ever_goes_promises_nothing_and_takes_no_request(
    world: World, settings: dict[str, str], why: str
) -> None:
    """With an empty policy it promised ``retention.ms``, and retention never took anything."""
    world.create(settings=settings)
    world.append((KEY, VALUE))
    found = world.eraser.propose(ErasureRequest("r1", ("users",), (KEY,)), now_ms=world.now_ms)
    assert found.topics == {}
    assert why in str(found.failed["users"])


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("delete", {"cleanup.policy": ""}, "waits for retention, and cleanup.policy is empty"),
        ("delete", {"cleanup.policy": "compact"}, "waits for retention, and cleanup.policy is compact"),
        ("delete", {"retention.ms": "-1"}, "waits for retention, and retention.ms is -1"),
        ("compact", {"cleanup.policy": ""}, "waits for a clean, and cleanup.policy is empty"),
        ("compact", {"cleanup.policy": "delete"}, None),
        ("delete", {"cleanup.policy": "compact,delete"}, None),
    ],
)
def test_a_request_that_nothing_brings_on_any_more_is_blocked(
    world: World, before: str, after: dict[str, str], why: str | None
) -> None:
    world.create(settings={"cleanup.policy": before, "retention.ms": str(HOUR_MS)})
    world.append((KEY, VALUE))
    world.ask()
    assert world.row().blocked == ()
    world.store.alter_topic("users", after)
    assert [text.partition(":")[0] for text in world.row().blocked] == ([why] if why else [])


def test_a_topic_with_versions_promises_its_watermarks_besides(world: World) -> None:
    world.create(settings={"compaction.strategy": "timestamp", "keptlog.watermark.retention.ms": str(5 * HOUR_MS)})
    assert proposed(world).deadline_ms == world.now_ms + 7 * HOUR_MS + GRACE_MS + PURGES_MS


def test_here_and_by_retention_promise_what_they_take(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE)}, 1)
    assert proposed(world, is_here=True).deadline_ms == world.now_ms + PURGES_MS
    world.create("old", {"cleanup.policy": "delete", "retention.ms": str(HOUR_MS)})
    request = ErasureRequest("r1", ("old",), (KEY,))
    found = world.eraser.propose(request, now_ms=world.now_ms).topics["old"]
    assert (found.way, found.deadline_ms) == (ErasureWay.RETENTION, world.now_ms + HOUR_MS + PURGES_MS)


def test_here_a_replaced_file_of_watermarks_has_its_day_and_is_told_where_the_deadline_is_earlier(world: World) -> None:
    world.create(settings={"compaction.strategy": "timestamp"})
    world.ingest({0: (KEY, VALUE), 1: (KEY, None)}, 2)
    assert proposed(world, is_here=True, deadline_ms=world.now_ms + HOUR_MS).hindrances == ()
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
    assert world.store.logs("users")[0].watermarks_path
    often = replace(world.eraser, purge_interval_ms=HOUR_MS // 6)
    found = often.propose(ErasureRequest("r1", ("users",), (KEY,), is_here=True), now_ms=world.now_ms).topics["users"]
    assert (found.deadline_ms, found.hindrances) == (world.now_ms + GRACE_MS + 2 * (HOUR_MS // 6), ())
    (told,) = proposed(world, is_here=True, deadline_ms=world.now_ms + HOUR_MS).hindrances
    assert (told.until_ms, told.remedy) == (world.now_ms + GRACE_MS, "give a later --by")


def test_a_deadline_that_can_be_kept_has_nothing_in_its_way(world: World) -> None:
    world.create()
    found = proposed(world, deadline_ms=world.now_ms + DAY_MS)
    assert (found.hindrances, found.earliest_ms) == ((), world.now_ms + 2 * HOUR_MS + 1)


@pytest.mark.parametrize(
    ("settings", "name", "until_hours"),
    [
        ({"min.compaction.lag.ms": str(HOUR_MS), "segment.ms": "1"}, "min.compaction.lag.ms=3600000", 1),
        ({"delete.retention.ms": str(30 * DAY_MS)}, "delete.retention.ms=2592000000", 30 * 24 + 1),
        ({"segment.ms": str(HOUR_MS // 2)}, "segment.ms=1800000", 0.5),
    ],
)
def test_what_makes_a_deadline_impossible_is_told_with_what_could_be_done(
    world: World, settings: dict[str, str], name: str, until_hours: float
) -> None:
    world.create(settings=settings)
    found = proposed(world, deadline_ms=world.now_ms + HOUR_MS // 4)
    (told,) = [each for each in found.hindrances if name in each.what]
    assert told.until_ms == pytest.approx(world.now_ms + until_hours * HOUR_MS, abs=2)
    assert "lower" in told.remedy
    assert "behind the deadline" in str(found.hindrances[-1])
    world.ask(deadline_ms=world.now_ms + HOUR_MS // 4)  # told, and asked for all the same
    assert world.erasure().state == "tombstoned"


def test_the_active_segment_that_is_there_is_what_has_to_close(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    made_ms = world.now_ms
    world.later(HOUR_MS // 2)
    assert proposed(world).earliest_ms == made_ms + 2 * HOUR_MS + 1


def test_a_log_that_never_had_a_record_makes_no_deadline_impossible(world: World) -> None:
    """A new active segment and a tombstone were reckoned for each partition, also for one that the key is not in."""
    world.create(partitions=2)
    home = partition_for_key(KEY, 2)
    world.append((KEY, VALUE), partition=home)
    made_ms = world.now_ms
    world.later(HOUR_MS // 2)
    found = proposed(world, deadline_ms=made_ms + 2 * HOUR_MS + 1)
    assert (found.earliest_ms, found.latest_ms) == (made_ms + 2 * HOUR_MS + 1,) * 2
    assert found.hindrances == ()


def test_what_only_the_slower_log_would_do_is_unsure_and_not_impossible(world: World) -> None:
    world.create(partitions=2)
    made_ms = world.now_ms
    world.append((KEY, VALUE), partition=0)
    world.later(HOUR_MS // 2)
    world.append((KEY, VALUE), partition=1)
    slow_ms = world.now_ms + 2 * HOUR_MS + 1
    found = proposed(world, deadline_ms=made_ms + 2 * HOUR_MS + 1)
    assert (found.earliest_ms, found.latest_ms) == (made_ms + 2 * HOUR_MS + 1, slow_ms)
    what = [each.what for each in found.hindrances]
    assert what[0].startswith("the active segment of users-1 is closed at")
    assert what[1].startswith("users-1 keeps the tombstone")
    assert what[2].startswith("a key that is in users-1 can be done at")
    assert len(what) == 3


def test_a_hundred_logs_that_are_all_too_slow_are_told_in_one_line_for_each_setting(world: World) -> None:
    world.create(partitions=100)
    world.append_records([NewRecord(KEY, VALUE, world.now_ms, number) for number in range(100)])
    found = proposed(world, deadline_ms=world.now_ms + 1)
    what = [each.what for each in found.hindrances]
    assert what[0].startswith("the active segments of users-0, users-1, users-2 and 97 more are closed, the last at")
    assert what[1].startswith("users-0, users-1, users-2 and 97 more keep the tombstone")
    assert what[2].startswith("it can be done at")
    assert len(what) == 3


def test_a_key_that_is_known_by_its_hash_gets_no_tombstone_where_it_is_not(world: World) -> None:
    world.create(partitions=2)
    key_hash = str(world.hasher.told(KEY))
    request = ErasureRequest("r1", ("users",), key_hashes=(key_hash,))
    found = world.eraser.propose(request, now_ms=world.now_ms).topics["users"]
    assert (found.earliest_ms, found.latest_ms) == (world.now_ms, world.now_ms)


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_what_no_log_has_any_more_is_in_retired_files_until_a_purge_takes_them(world: World, policy: str) -> None:
    """Nothing was in the way of a deadline in an hour, and the file with the value stayed for two days."""
    delay_ms = 48 * HOUR_MS
    world.create(settings={"cleanup.policy": policy, "file.delete.delay.ms": str(delay_ms)})
    world.append((KEY, VALUE))
    key_hash = world.eraser.hash_of(KEY)
    world.store.delete_records(TopicPartition("users", 0), -1, None)
    gone_ms = table_of(world.home, "users").metadata.snapshots[-1].timestamp_ms
    world.later(HOUR_MS)
    request = ErasureRequest("r1", ("users",), key_hashes=(key_hash,), deadline_ms=world.now_ms + HOUR_MS)
    found = world.eraser.propose(request, now_ms=world.now_ms).topics["users"]
    assert (found.earliest_ms, found.latest_ms) == (gone_ms + delay_ms,) * 2
    (told,) = found.hindrances
    assert told.what.startswith("retired files may have the key, and go at ")
    assert (told.until_ms, "file.delete.delay.ms" in told.what) == (gone_ms + delay_ms, True)
    world.later(delay_ms)
    late = replace(request, deadline_ms=world.now_ms + 1)
    found = world.eraser.propose(late, now_ms=world.now_ms).topics["users"]
    assert (found.earliest_ms, found.hindrances) == (world.now_ms, ())


@pytest.mark.parametrize("policy", ["compact", "delete"])
@pytest.mark.parametrize("is_purged_before", [False, True])
def test_what_had_no_record_when_it_was_asked_for_is_done_when_the_proposal_says(
    world: World, policy: str, *, is_purged_before: bool
) -> None:
    """The request's own snapshot was waited for, a file.delete.delay.ms longer than the answer had said."""
    world.create(settings={"cleanup.policy": policy, "file.delete.delay.ms": str(HOUR_MS)})
    world.append((KEY, VALUE))
    key_hash = world.eraser.hash_of(KEY)
    world.store.delete_records(TopicPartition("users", 0), -1, None)
    if is_purged_before:
        world.later(HOUR_MS + 1)
        world.purge()
    time.sleep(0.05)  # the snapshot of the request is not of the millisecond of the removal
    request = ErasureRequest("r1", ("users",), key_hashes=(key_hash,), deadline_ms=world.now_ms + DAY_MS)
    found = world.eraser.propose(request, now_ms=world.now_ms)
    world.eraser.request(found, now_ms=world.now_ms)
    proposed = found.topics["users"]
    if not is_purged_before:
        world.now_ms = proposed.earliest_ms - 1
        world.purge()
        assert (world.row().erasure.state, world.row().next_ms) == ("compacted", proposed.earliest_ms)
    world.now_ms = proposed.earliest_ms
    world.purge()
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_a_second_request_waits_no_longer_than_the_first_where_no_record_is_left(world: World) -> None:
    """Each request adds a snapshot, and shows as little as the one in which the records had gone."""
    world.create(settings={"file.delete.delay.ms": str(HOUR_MS)})
    world.append((KEY, VALUE))
    first = world.eraser.hash_of(KEY)
    second = world.eraser.hash_of(OTHER)
    world.store.delete_records(TopicPartition("users", 0), -1, None)
    for number, key_hash in enumerate((first, second)):
        time.sleep(0.02)
        world.ask_by_hash(key_hash, id=f"r{number}", deadline_ms=world.now_ms + DAY_MS)
    rows = world.eraser.list(["users"], now_ms=world.now_ms).rows
    assert len({row.next_ms for row in rows}) == 1


def test_a_file_that_a_killed_run_left_before_the_request_is_waited_for_though_the_log_was_empty(world: World) -> None:
    """It was called deleted, and people were sent to a verification that found the file each time."""
    world.create()
    world.append((KEY, VALUE))
    (log,) = world.store.logs("users")
    live = Path(log.segments[0].path.removeprefix("file://"))
    content = live.read_bytes()
    world.store.delete_records(TopicPartition("users", 0), -1, None)
    time.sleep(0.05)  # the file is of later than the removal
    live.with_name(f"killed-{live.name}").write_bytes(content)
    time.sleep(0.05)
    world.later(0)
    world.ask_by_hash(world.eraser.hash_of(KEY), deadline_ms=world.now_ms + 3 * DAY_MS)
    world.later(HOUR_MS)
    world.purge(grace_ms=GRACE_MS)
    row = world.row()
    assert row.erasure.state == "unreferenced"
    (told,) = row.blocked
    assert "keep 1 staged file until" in told
    world.later(GRACE_MS)
    world.purge(grace_ms=GRACE_MS)
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_log_without_records_may_remember_a_deleted_key_and_says_until_when(world: World, policy: str) -> None:
    """It said that nothing was in the way, and the verification found the key among the watermarks for a week."""
    deleted_before(world)
    world.store.alter_topic("users", {"cleanup.policy": policy})
    proposed = proposed_and_asked(world, by_ms=DAY_MS)
    (told,) = proposed.hindrances
    assert (proposed.earliest_ms, proposed.latest_ms) == (world.now_ms, world.now_ms + 7 * DAY_MS + GRACE_MS)
    assert told.what.startswith("watermarks of users-0 have the key if it was deleted lately; ")
    assert (told.until_ms, "keptlog.watermark.retention.ms" in told.what) == (proposed.latest_ms, True)
    require_verified_at(world, proposed.latest_ms, by_ms=DAY_MS)


def test_a_key_that_an_ingested_topic_has_no_more_waits_for_no_tombstone(world: World) -> None:
    """None is appended there: a segment that closes and delete.retention.ms were reckoned, of what never comes."""
    world.create()
    world.ingest({0: (KEY, VALUE)}, 1)
    world.store.delete_records(TopicPartition("users", 0), -1, None)
    found = world.eraser.propose(
        ErasureRequest("r1", ("users",), (KEY,), deadline_ms=world.now_ms + HOUR_MS), now_ms=world.now_ms
    )
    proposed = found.topics["users"]
    assert (proposed.way, proposed.hindrances) == (ErasureWay.SOURCE, ())
    world.eraser.request(found, now_ms=world.now_ms)
    world.now_ms = max(proposed.earliest_ms, time.time_ns() // 1_000_000)
    world.purge()
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_what_retention_takes_before_a_clean_can_is_done_when_the_proposal_says(world: World) -> None:
    """A deadline was called impossible that retention keeps, and the setting that decides was not told."""
    slow = {"segment.ms": str(7 * DAY_MS), "max.compaction.lag.ms": str(30 * DAY_MS)}
    world.create(settings=slow | {"cleanup.policy": "compact,delete", "retention.ms": str(2 * HOUR_MS)})
    world.append((KEY, VALUE))
    gone_ms = world.now_ms + 2 * HOUR_MS + 1
    late = [str(each) for each in proposed(world, deadline_ms=world.now_ms + HOUR_MS).hindrances]
    assert f"what users-0 has stays for retention.ms={2 * HOUR_MS}, unless cleans take it before: lower it" in late
    found = proposed(world, deadline_ms=gone_ms)
    assert (found.earliest_ms, found.latest_ms, found.hindrances) == (gone_ms, gone_ms, ())
    world.ask(deadline_ms=gone_ms)
    assert read_open_erasures("users", world.store.load_table("users").properties).next_ms == gone_ms
    world.now_ms = gone_ms
    store = world.store
    retained = Retainer(store).retain(named_logs(store, ["users"]), "retain", now_ms=gone_ms)
    assert len(retained.committed) == 1
    world.purge()
    assert world.erasure().state == "deleted"


def test_what_goes_by_its_age_alone_is_done_no_sooner_than_retention_takes_it(world: World) -> None:
    world.create(settings={"cleanup.policy": "delete", "retention.ms": str(DAY_MS)})
    world.append((KEY, VALUE))
    [log] = world.store.logs("users")
    done_ms = proposed(world).earliest_ms
    assert [len(retention_of(log, at_ms).old) for at_ms in (done_ms - 1, done_ms)] == [0, 1]


def test_an_empty_log_has_nothing_that_waits_for_retention(world: World) -> None:
    world.create(settings={"cleanup.policy": "delete", "retention.ms": str(DAY_MS)}, partitions=2)
    found = proposed(world, deadline_ms=world.now_ms + 1)
    assert (found.earliest_ms, found.hindrances) == (world.now_ms, ())


def test_what_is_stored_of_the_next_step_is_of_the_logs_that_got_tombstones(world: World) -> None:
    world.create(partitions=2)
    world.append((KEY, VALUE), partition=1)
    made_ms = world.now_ms
    world.later(HOUR_MS // 2)
    world.append((b"other", VALUE), partition=0)
    world.ask()
    open_ones = read_open_erasures("users", world.store.load_table("users").properties)
    assert open_ones.next_ms == made_ms + HOUR_MS + 1


def test_a_tag_is_told_before_anything_is_asked_for(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    table = table_of(world.home, "users")
    assert table.metadata.current_snapshot_id is not None
    table.manage_snapshots().create_tag(table.metadata.current_snapshot_id, "audit").commit()
    (told,) = proposed(world).hindrances
    assert (told.what, told.until_ms, told.remedy) == (
        "tag audit keeps what users has now",
        None,
        "drop the tag audit",
    )


def test_an_open_request_past_its_deadline_is_overdue(world: World) -> None:
    world.create()
    world.ask(deadline_ms=world.now_ms + HOUR_MS)
    world.later(2 * HOUR_MS)
    found = world.eraser.list(now_ms=world.now_ms)
    assert [row.id for row in found.overdue(world.now_ms)] == ["r1"]
    assert found.rows[0].erasure.delay_ms(world.now_ms) >= HOUR_MS
