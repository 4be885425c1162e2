"""What is read from a source at a position, and what stops instead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.errors import InvalidConfig
from keptlog.log.source import (
    IngestPlan,
    OffsetRange,
    SourceIdentity,
    SourceLog,
    SourceTopic,
    StoredSource,
    plan_ingest,
    with_leader_epochs,
)

USERS = SourceIdentity("users", "id-1", "broker:9092")


def found(*logs: tuple[int, int], source: SourceIdentity = USERS) -> SourceTopic:
    """A topic at its source, its partitions from 0 on with log start and end."""
    return SourceTopic(source, tuple(SourceLog(number, *bounds) for number, bounds in enumerate(logs)))


def plan(positions: list[int | None], *logs: tuple[int, int], skip_lost: bool = False) -> IngestPlan:
    return plan_ingest("t", StoredSource(USERS, tuple(positions)), found(*logs), skip_lost=skip_lost)


def test_a_topic_that_is_new_here_is_read_from_its_log_start_on() -> None:
    new = plan_ingest("t", StoredSource(None, ()), found((40, 200), (0, 7)))
    assert new.ranges == (OffsetRange(0, None, 40, 200), OffsetRange(1, None, 0, 7))
    assert (new.topic, new.source, new.partitions, dict(new.stopped)) == ("t", USERS, 2, {})
    assert all(each.is_first for each in new.ranges)


def test_a_topic_without_records_may_become_that_of_a_source() -> None:
    assert plan_ingest("t", StoredSource(None, (None, None, None)), found((40, 200))).partitions == 3


def test_reading_goes_on_at_the_position() -> None:
    [read] = plan([120], (40, 200)).ranges
    assert read == OffsetRange(0, 120, 120, 200)
    assert not read.is_first


@pytest.mark.timeout(60)
def test_a_partition_that_no_topic_can_have_is_refused_and_not_counted_up_to() -> None:
    there = SourceTopic(USERS, (SourceLog(99_999_999_999, 0, 1),))
    with pytest.raises(InvalidConfig, match="has a partition 99999999999 at its source: a topic here has 0 to 9999"):
        plan_ingest("t", StoredSource(None, ()), there)


def test_nothing_is_read_where_nothing_came() -> None:
    assert plan([200, 0], (40, 200), (0, 0)).ranges == ()


def test_an_empty_log_that_was_never_seen_gets_its_position_all_the_same() -> None:
    assert plan([None], (30, 30)).ranges == (OffsetRange(0, None, 30, 30),)


def test_partitions_that_the_source_got_since_are_read_too() -> None:
    grown = plan([200], (40, 200), (0, 5))
    assert grown.ranges == (OffsetRange(1, None, 0, 5),)
    assert grown.partitions == 2


def test_partitions_never_shrink() -> None:
    shrunk = plan([200, 5, None], (40, 210))
    assert shrunk.partitions == 3
    assert [each.partition for each in shrunk.ranges] == [0]
    assert list(shrunk.stopped) == [1]
    assert "does not have this partition any more" in shrunk.stopped[1]


def test_partitions_that_are_elsewhere_neither_stop_nor_are_read() -> None:
    partial = replace(found((40, 210)), is_whole=False)
    here = plan_ingest("t", StoredSource(USERS, (200, 5, None)), partial)
    assert (here.partitions, here.ranges, dict(here.stopped)) == (3, (OffsetRange(0, 200, 200, 210),), {})
    another = replace(partial, source=SourceIdentity("users", "id-2"))
    assert list(plan_ingest("t", StoredSource(USERS, (200, 5, None)), another).stopped) == [0]


@pytest.mark.parametrize(
    "address",
    ["broker:9092", "broker-2:9092, broker:9092", "broker", "Broker:9092", "PLAINTEXT://broker:9092", None],
)
def test_a_topic_of_the_same_name_and_address_was_made_anew_or_is_of_another_cluster(address: str | None) -> None:
    another = found((0, 9), source=SourceIdentity("users", "id-2", address))
    [why] = plan_ingest("t", StoredSource(USERS, (200,)), another).stopped.values()
    assert why == (
        "users was deleted and created again, or this is another cluster (its id was id-1 and is id-2), so that its "
        "offsets mean other records now: ingest it into another topic (--into t-again), or delete the one here first "
        "(keptlog topic delete t)"
    )


def test_a_topic_of_the_same_name_elsewhere_is_another_one_and_nothing_is_to_be_deleted_for_it() -> None:
    another = found((0, 9), source=SourceIdentity("users", "id-2", "b:1"))
    [why] = plan_ingest("t", StoredSource(USERS, (200,)), another).stopped.values()
    assert why == (
        "topic users at b:1 (id id-2) is not the topic that was read before: that one has the id id-1, and was last at "
        "broker:9092. If it still is there, leave out --bootstrap. If it is not, or was deleted and created again, "
        "ingest this one into another topic (--into t-again)"
    )


def test_records_that_are_lost_stop_their_partition_alone() -> None:
    lost = plan([120, 3], (150, 200), (0, 9))
    assert lost.ranges == (OffsetRange(1, 3, 3, 9),)
    assert "offsets 120 to 149 are no longer at its source, which begins at 150" in lost.stopped[0]
    assert "--skip-lost" in lost.stopped[0]


def test_what_a_broker_has_lost_nobody_puts_back_there_but_a_copy_may_have_it() -> None:
    [why] = plan([120], (150, 200)).stopped.values()
    assert why.endswith(
        "go on without those records (--skip-lost), or take them from a copy of its log directory, if there is one "
        "(keptlog import kafka-logs), first"
    )
    directory = SourceIdentity("users", "id-1")
    [why] = plan_ingest("t", StoredSource(directory, (120,)), found((150, 200), source=directory)).stopped.values()
    assert why.endswith("go on without those records (--skip-lost), or restore them there first")


def test_lost_records_are_skipped_by_request() -> None:
    skipped = plan([120], (150, 200), skip_lost=True)
    assert skipped.ranges == (OffsetRange(0, 120, 150, 200),)
    assert not skipped.stopped


@pytest.mark.parametrize(
    ("position", "skip_lost", "ranges"),
    [
        (None, False, (OffsetRange(0, None, 15, 15),)),
        (15, False, ()),
        (7, True, (OffsetRange(0, 7, 15, 15),)),
        (12, True, (OffsetRange(0, 12, 15, 15),)),
    ],
)
def test_a_log_that_begins_inside_of_an_open_transaction_has_nothing_to_read_and_was_not_cut_off(
    position: int | None, skip_lost: bool, ranges: tuple[OffsetRange, ...]
) -> None:
    """A broker says then that its last stable offset lies before its log start."""
    inside = plan([position], (15, 10), skip_lost=skip_lost)
    assert (inside.ranges, dict(inside.stopped)) == (ranges, {})


@pytest.mark.parametrize("position", [7, 10, 12])
def test_what_went_out_of_an_open_transaction_before_it_was_read_is_lost_as_anything_else(position: int) -> None:
    [why] = plan([position], (15, 10)).stopped.values()
    assert why.startswith(f"offsets {position} to 14 are no longer at its source, which begins at 15")


def test_a_log_that_retention_has_emptied_before_it_was_read_is_skipped_to_its_end() -> None:
    assert list(plan([120], (200, 200)).stopped) == [0]
    assert plan([120], (200, 200), skip_lost=True).ranges == (OffsetRange(0, 120, 200, 200),)


@pytest.mark.parametrize("skip_lost", [False, True])
def test_a_log_that_ends_before_the_position_stops(skip_lost: bool) -> None:
    cut = plan([120], (0, 30), skip_lost=skip_lost)
    assert cut.ranges == ()
    assert "it ends at offset 120 here and at 30 at its source" in cut.stopped[0]


def test_a_topic_that_was_created_again_stops_as_a_whole() -> None:
    again = plan_ingest(
        "t", StoredSource(USERS, (0, 120)), found((0, 200), (0, 200), (0, 3), source=SourceIdentity("users", "id-2"))
    )
    assert again.ranges == ()
    assert again.partitions == 2
    assert list(again.stopped) == [0, 1]
    assert "its id was id-1 and is id-2" in again.stopped[0]


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        (SourceIdentity("users"), USERS),
        (USERS, SourceIdentity("users")),
        (SourceIdentity("users"), SourceIdentity("users")),
    ],
)
def test_an_id_that_one_of_them_does_not_know_stops_nothing(stored: SourceIdentity, now: SourceIdentity) -> None:
    assert plan_ingest("t", StoredSource(stored, (3,)), found((0, 9), source=now)).ranges == (OffsetRange(0, 3, 3, 9),)


def test_a_topic_with_records_of_its_own_takes_no_source() -> None:
    with pytest.raises(InvalidConfig, match=r"topic t has records of its own.*--into t-ingested"):
        plan_ingest("t", StoredSource(None, (None, 3)), found((0, 9), (0, 9)))


def test_a_topic_has_one_source() -> None:
    with pytest.raises(InvalidConfig, match="topic t comes from users, not from orders"):
        plan_ingest("t", StoredSource(USERS, (3,)), found((0, 9), source=SourceIdentity("orders")))


def test_what_is_stored_learns_the_id_and_follows_the_address() -> None:
    assert SourceIdentity("users").updated(USERS) == USERS
    assert USERS.updated(SourceIdentity("users")) == USERS
    assert USERS.updated(SourceIdentity("users", "id-1", "other:9092")) == SourceIdentity("users", "id-1", "other:9092")


@pytest.mark.parametrize(
    ("other", "may_be"),
    [
        (USERS, True),
        (SourceIdentity("users"), True),
        (SourceIdentity("users", "id-2"), False),
        (SourceIdentity("orders", "id-1"), False),
    ],
)
def test_sources_are_told_apart_by_name_and_by_the_ids_that_are_known(other: SourceIdentity, may_be: bool) -> None:
    assert USERS.may_be(other) is may_be
    assert other.may_be(USERS) is may_be


BOUNDS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: (min(pair), max(pair)))


@given(
    positions=st.lists(st.none() | st.integers(0, 12), max_size=4),
    logs=st.dictionaries(st.integers(0, 4), BOUNDS, max_size=5),
    skip_lost=st.booleans(),
)
def test_positions_only_advance_and_no_offset_is_read_twice_or_where_the_source_has_none(
    positions: list[int | None], logs: dict[int, tuple[int, int]], skip_lost: bool
) -> None:
    there = SourceTopic(USERS, tuple(SourceLog(number, *bounds) for number, bounds in logs.items()))
    made = plan_ingest("t", StoredSource(USERS, tuple(positions)), there, skip_lost=skip_lost)
    read = {each.partition: each for each in made.ranges}
    assert len(read) == len(made.ranges)
    assert not read.keys() & made.stopped.keys()
    for number in range(made.partitions):
        position = positions[number] if number < len(positions) else None
        start, end = logs.get(number, (None, None))
        if number in read:
            each = read[number]
            assert each.position == position
            assert start is not None
            assert start <= each.from_offset <= each.end_offset == end
            assert position is None or position <= each.from_offset
            assert position is None or position < each.end_offset
            assert each.from_offset == (start if position is None else position) or (skip_lost and position is not None)
        elif number not in made.stopped:
            assert position == end


EPOCHS = ((3, 0), (7, 40), (9, 100))
"""Leader epochs of a log, and where they begin."""


def planned(log: SourceLog, position: int, epoch: int | None) -> IngestPlan:
    """What is planned for a topic-partition whose position was reached under this epoch."""
    source = SourceIdentity("t")
    found = SourceTopic(source, (log,))
    stored = StoredSource(source, (position,), {} if epoch is None else {0: epoch})
    return with_leader_epochs(plan_ingest("t", stored, found), stored, found)


@pytest.mark.parametrize(("position", "epoch"), [(100, 7), (99, 7), (40, 3), (150, 9), (150, 12), (150, None)])
def test_a_log_whose_later_leaders_began_at_or_behind_the_position_goes_on(position: int, epoch: int | None) -> None:
    plan = planned(SourceLog(0, 0, 200, 9, EPOCHS), position, epoch)
    assert not plan.stopped
    assert plan.ranges == (OffsetRange(0, position, position, 200, None, 9),)


@pytest.mark.parametrize(("position", "epoch", "cut"), [(101, 7, 100), (150, 8, 100), (150, 3, 40), (120, 0, 0)])
def test_a_log_in_which_another_leader_began_below_the_position_was_cut_off_and_is_stopped_with_the_choice(
    position: int, epoch: int, cut: int
) -> None:
    plan = planned(SourceLog(0, 0, 200, 9, EPOCHS), position, epoch)
    assert plan.ranges == ()
    reason = plan.stopped[0]
    assert reason.startswith(f"below offset {position} there are other records at its source than were read")
    assert f"a leader took over that lacked some and ended at offset {cut}: " in reason
    assert f"(keptlog truncate t-0 {cut})" in reason


def test_where_only_the_broker_can_tell_the_range_says_which_epoch_it_is_to_be_asked_for() -> None:
    asked = planned(SourceLog(0, 0, 200, 9), 120, 7)
    assert asked.ranges == (OffsetRange(0, 120, 120, 200, 7, 9),)


def test_what_is_read_from_elsewhere_than_the_position_needs_no_epoch() -> None:
    source = SourceIdentity("t")
    found = SourceTopic(source, (SourceLog(0, 150, 200, 9),))
    plan = plan_ingest("t", StoredSource(source, (120,)), found, skip_lost=True)
    assert with_leader_epochs(plan, StoredSource(source, (120,), {0: 7}), found) == plan
