"""Ingested topics: the source's deletion is waited for, wherever it arrives, or the records are dropped here."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.erasures.erasure import ErasureState
from keptlog.log.record import Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer
from keptlog.receipts.receipt import Receipt
from tests.erasure.world import HOUR_MS, KEY, OTHER, VALUE, World, new_id
from tests.table.foreign import set_properties
from tests.table.stores import staged

WAITS = (
    "waits for the source to delete 1 key: delete there (once more if it came back), or erase --here with another id"
)


def test_a_request_waits_for_the_deletion_that_arrives(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    row = world.row()
    assert (row.erasure.state, row.next_ms) == ("requested", None)
    assert row.blocked == (WAITS,)
    world.ingest({2: (OTHER, b"2")}, 3)
    assert world.row().erasure.looked[0].end_offset == 3
    world.ingest({3: (KEY, None), 4: (KEY, b"came back")}, 5)
    erasure = world.erasure()
    assert (erasure.state, erasure.end_offset_of(0, erasure.key_hashes[0])) == ("tombstoned", 4)
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert [record for record in world.records() if record[1] == KEY] == [(4, KEY, b"came back")]


def test_a_deletion_that_came_before_the_request_counts(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (KEY, None)}, 2)
    world.ask()
    assert world.erasure().state == "tombstoned"


def delete_and_expire(world: World) -> None:
    """Let a deletion come after the request, and go before anybody looks."""
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.ingest({2: (KEY, None)}, 3)
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()


def test_a_deletion_that_came_and_has_expired_between_two_looks_counts(world: World) -> None:
    delete_and_expire(world)
    assert [key for _, key, _ in world.records()] == [OTHER]
    assert world.erasure().has_reached(ErasureState.TOMBSTONED)


def test_a_deletion_that_came_and_was_cleaned_between_two_looks_waits_for_its_tombstone_to_expire(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.ingest({2: (KEY, None)}, 3)
    world.later(2 * HOUR_MS)
    world.clean()
    world.purge()
    assert (2, KEY, None) in world.records()
    for _ in range(2):
        erasure = world.erasure()
        assert (erasure.state, erasure.gone) == ("compacted", None)
    world.later(2 * HOUR_MS)
    world.clean()
    assert [key for _, key, _ in world.records()] == [OTHER]
    expired = world.commits()
    gone = world.erasure().gone
    assert gone
    assert gone.sequence_number >= expired
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


@pytest.mark.parametrize("came", [b"came back, or was there before the request", None])
def test_a_key_of_which_only_new_records_are_left_is_waited_for_until_its_deletion_is_seen(
    world: World, came: bytes | None
) -> None:
    """A clean leaves the same of a key that was deleted and came back, and of one that was only updated.

    It may even have been there before the request, where the ingest was behind its source.
    """
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.ingest({2: (KEY, came), 3: (KEY, b"new")}, 4)
    world.later(2 * HOUR_MS)
    world.clean()
    for _ in range(2):
        row = world.row()
        assert (row.erasure.state, len(row.erasure.waiting), row.blocked) == ("requested", 1, (WAITS,))
        assert world.to_deleted().erasure.state == "requested"
        assert world.verified().erasure.state == "requested"
    world.ingest({4: (KEY, None)}, 5)
    erasure = world.erasure()
    assert (erasure.state, erasure.end_offset_of(0, erasure.key_hashes[0])) == ("tombstoned", 5)
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


@pytest.mark.parametrize(
    ("cleaned", "came", "end_offset"),
    [
        ((KEY, None), {3: (KEY, b"came back")}, 3),
        ((OTHER, b"2"), {3: (KEY, None), 4: (KEY, b"came back")}, 4),
    ],
)
def test_a_key_that_came_back_is_not_waited_for_if_its_tombstone_is_there_still(
    world: World, cleaned: tuple[bytes, bytes | None], came: dict[int, tuple[bytes, bytes | None]], end_offset: int
) -> None:
    """Wherever a clean has been since the last look."""
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.ingest({2: cleaned}, 3)
    world.later(2 * HOUR_MS)
    world.clean()
    world.ingest(came, max(came) + 1)
    erasure = world.erasure()
    assert (erasure.has_reached(ErasureState.TOMBSTONED), erasure.waiting) == (True, ())
    assert erasure.end_offset_of(0, erasure.key_hashes[0]) == end_offset
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert [record for record in world.records() if record[1] == KEY] == [(max(came), KEY, b"came back")]


def test_a_deletion_that_expired_where_a_clean_was_beyond_the_checkpoint_counts(world: World) -> None:
    """As after a clean in legs, or a repair, and another clean that ended before."""
    delete_and_expire(world)
    set_properties(world.home, {"log.p0.first-dirty-offset": "1", "log.p0.cleaning-to": "3"}, "users")
    assert [key for _, key, _ in world.records()] == [OTHER]
    assert world.erasure().has_reached(ErasureState.TOMBSTONED)


def test_a_key_that_is_not_there_is_not_waited_for(world: World) -> None:
    world.create()
    world.ingest({0: (OTHER, b"1")}, 1)
    world.ask(KEY)
    assert world.erasure().state != "requested"


def test_of_several_keys_all_are_waited_for(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask(KEY, OTHER)
    world.ingest({2: (KEY, None)}, 3)
    assert world.row().blocked == (WAITS,)
    world.ingest({3: (OTHER, None)}, 4)
    erasure = world.erasure()
    assert erasure.state == "tombstoned"
    assert sorted(erasure.end_offset_of(0, each) or 0 for each in erasure.key_hashes) == [3, 4]


def test_a_request_that_waits_for_its_source_is_not_made_one_to_erase_here_under_its_id(world: World) -> None:
    """It was told as asked for before, and nobody dropped anything."""
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    said = "topic users: request r1 was not made to erase here; give this one another id"
    assert {topic: str(error) for topic, error in world.ask(is_here=True).failed.items()} == {"users": said}
    assert world.ask(id="r2", is_here=True).failed == {}
    assert [key for _, key, _ in world.records()] == [OTHER]


def ended_here(world: World) -> Receipt:
    """Erase here what a request waits for, which ends with it."""
    assert (world.row().erasure.state, world.row().blocked) == ("requested", (WAITS,))
    assert world.ask(id="r2", is_here=True).failed == {}
    assert world.erasure().has_reached(ErasureState.TOMBSTONED), "nothing has come since the last look"
    assert world.to_deleted().erasure.state == "deleted"
    found = world.eraser.verify(now_ms=world.now_ms)
    assert {row.id: row.erasure.state for row in found.rows} == {"r1": "verified", "r2": "verified"}
    return next(each for each in world.receipts if each.content["request"] == "r1")


def test_a_request_that_waits_for_its_source_ends_with_a_later_one_that_erases_here(world: World) -> None:
    """It waited for ever where each look was ahead of the cleans, though its message names just this."""
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.ingest({2: (KEY, b"updated")}, 3)
    content = ended_here(world).content
    ends = [each["end_offset"] for each in content["offsets"] if each["key_hash"]]
    assert (content["way"], content["dropped_by"], ends) == ("source", ["r2"], [3])
    assert world.records() == [(1, OTHER, b"1")]


def test_a_request_whose_key_went_with_its_age_ends_with_a_later_one_that_erases_here(world: World) -> None:
    world.create(settings={"cleanup.policy": "compact,delete", "retention.ms": str(24 * HOUR_MS)})
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.later(25 * HOUR_MS)
    world.ingest({2: (OTHER, b"2")}, 3)
    assert world.row().erasure.state == "requested"
    retained = Retainer(world.store).retain(named_logs(world.store, ["users"]), new_id(), now_ms=world.now_ms)
    assert len(retained.committed) == 1
    assert ended_here(world).content["dropped_by"] == ["r2"]


def test_a_record_that_comes_after_it_was_erased_here_is_new_to_the_request_that_waited(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.ask(id="r2", is_here=True)
    world.ingest({2: (KEY, b"came back")}, 3)
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert [record for record in world.records() if record[1] == KEY] == [(2, KEY, b"came back")]


def test_a_key_that_nobody_has_erased_here_is_waited_for_still(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask(KEY, OTHER)
    world.ask(id="r2", is_here=True)
    row = world.row()
    assert (row.erasure.state, len(row.erasure.waiting), row.blocked) == ("requested", 1, (WAITS,))
    assert world.to_deleted().erasure.state == "requested"
    world.ingest({2: (OTHER, None)}, 3)
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.dropped_by == ("r2",)


def test_a_request_waits_while_the_later_one_has_not_dropped_anything(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("keptlog.passes.drop.Dropper.drop", die)
        with pytest.raises(KeyboardInterrupt):
            world.ask(id="r2", is_here=True)
    assert world.row().blocked == (WAITS,)
    world.ask(id="r2", is_here=True)
    assert world.erasure().waiting == ()


def test_a_request_does_not_end_with_one_that_was_made_before_it(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask(id="r0", is_here=True)
    world.ingest({2: (KEY, b"new")}, 3)
    world.ask()
    assert world.row().blocked == (WAITS,)
    assert world.to_deleted().erasure.state == "requested"


def test_here_drops_every_record_below_the_log_end_of_the_moment(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    result = world.ask(is_here=True)
    assert dict(result.failed) == {}
    assert result.erasures["users"].state == "compacted"
    assert world.records() == [(1, OTHER, b"1")]
    world.ingest({2: (KEY, b"new")}, 3)
    world.later(1000)
    world.purge()
    assert world.erasure().state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert world.records() == [(1, OTHER, b"1"), (2, KEY, b"new")]


@pytest.mark.parametrize("late_ms", [0, HOUR_MS])
def test_here_that_was_killed_before_its_drop_goes_on_with_the_same_request(
    world: World, monkeypatch: pytest.MonkeyPatch, late_ms: int
) -> None:
    """Also once its deadline has passed."""
    world.create()
    world.ingest({0: (KEY, VALUE)}, 1)

    deadline_ms = world.now_ms + HOUR_MS

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("keptlog.passes.drop.Dropper.drop", die)
        with pytest.raises(KeyboardInterrupt):
            world.ask(is_here=True, deadline_ms=deadline_ms)
    world.later(late_ms)
    row = world.row()
    assert (row.erasure.state, len(row.blocked)) == ("tombstoned", 1)
    world.ingest({1: (KEY, b"new")}, 2)
    world.ask(is_here=True, deadline_ms=deadline_ms)
    assert world.erasure().state == "compacted"
    assert world.records() == [(1, KEY, b"new")]


def test_here_over_two_topics_that_was_killed_in_the_first_goes_on_there_and_tells_why_not_in_the_second(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the deadline has passed: ``erasure list`` says to ask again."""
    names, deadline_ms = ("users", "orders"), world.now_ms + HOUR_MS
    for each in names:
        world.create(each)
        world.ingest({0: (KEY, VALUE)}, 1, each)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("keptlog.passes.drop.Dropper.drop", die)
        with pytest.raises(KeyboardInterrupt):
            world.ask(topics=names, is_here=True, deadline_ms=deadline_ms)
    world.later(HOUR_MS)
    result = world.ask(topics=names, is_here=True, deadline_ms=deadline_ms)
    assert {topic: each.state for topic, each in result.erasures.items()} == {"users": "compacted"}
    assert [(topic, "has passed: give a later one" in str(each)) for topic, each in result.failed.items()] == [
        ("orders", True)
    ]
    assert (world.records(), world.records("orders")) == ([], [(0, KEY, VALUE)])
    world.ask(topics=names, is_here=True, deadline_ms=world.now_ms + HOUR_MS)
    assert world.erasure("orders").state == "compacted"


def test_here_is_refused_where_records_are_appended(world: World) -> None:
    world.create()
    failed = world.ask(is_here=True).failed
    assert isinstance(failed["users"], InvalidConfig)
    assert "has no source" in str(failed["users"])


def test_a_topic_that_is_not_compacted_is_erased_by_its_retention(world: World) -> None:
    world.create(settings={"cleanup.policy": "delete", "retention.ms": str(24 * HOUR_MS)})
    world.append((KEY, VALUE))
    world.ask()
    assert world.records() == [(0, KEY, VALUE)]  # a tombstone would do nothing
    assert world.erasure().way == "retention"
    world.later(25 * HOUR_MS)
    retained = Retainer(world.store).retain(named_logs(world.store, ["users"]), new_id(), now_ms=world.now_ms)
    assert len(retained.committed) == 1
    world.later(1000)
    world.purge()
    assert world.erasure().state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_where_retention_never_takes_anything_a_request_is_refused_with_what_could_be_done(world: World) -> None:
    world.create(settings={"cleanup.policy": "delete", "retention.ms": "-1"})
    world.append((KEY, VALUE))
    said = str(world.ask().failed["users"])
    assert "delete-records" in said
    assert "cleanup.policy=compact,delete" in said


def test_a_partition_that_was_added_later_has_only_new_records(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE)}, 1)
    world.ask(is_here=True)
    store = world.store
    arrived = Arrival(OffsetRange(1, None, 0, 1), tuple(staged(store, "users", 1, [Record(0, KEY, b"new", 0)])))
    store.ingest("users", [arrived], SourceIdentity("there"), 2, new_id())
    world.later(1000)
    world.purge()
    assert world.erasure().state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_a_log_start_in_the_middle_of_a_segment_is_no_clean_of_what_it_hides(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask()
    world.ingest({2: (KEY, None), 3: (OTHER, b"2")}, 4)
    assert world.erasure().state == "tombstoned"
    world.store.delete_records(TopicPartition("users", 0), 3, new_id())
    world.later(2 * HOUR_MS)
    world.purge()
    assert world.erasure().state == "tombstoned", "the tombstone, with its key, is in the segment still"
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
