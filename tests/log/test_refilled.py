"""A log that was cut off and has grown up to the position again is stopped, though nothing is to be read there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.log.cut_off import Kept
from keptlog.log.lost_deletions import CONFIRMED_EVERY_MS, with_times
from keptlog.log.refilled import without_cut_off, without_refilled
from keptlog.log.source import (
    IngestPlan,
    OffsetRange,
    SourceIdentity,
    SourceLog,
    SourceTopic,
    StoredSource,
    plan_ingest,
)
from keptlog.log.topic_partition import TopicPartition

SOURCE = SourceIdentity("t")
EPOCHS = ((3, 0), (7, 40), (9, 100))
"""Leader epochs of a log that ends at 120, and where they begin."""
ASKED_FOR = OffsetRange(0, 120, 120, 120, 7, 9)
NAME = TopicPartition("t", 0)


def planned(epoch: int | None, log: SourceLog, now_ms: int = 1_001, *, skip_lost: bool = False) -> IngestPlan:
    stored = StoredSource(SOURCE, (log.end_offset,), {} if epoch is None else {0: epoch}, {0: 1_000})
    found = SourceTopic(SOURCE, (log,))
    plan = plan_ingest("t", stored, found, skip_lost=skip_lost)
    return with_times(without_refilled(plan, stored, found, skip_lost=skip_lost), stored, found, now_ms)


@pytest.mark.parametrize(("epoch", "cut"), [(7, 100), (3, 40)])
def test_one_of_which_a_later_leader_began_below_the_position_is_stopped_with_the_choice(epoch: int, cut: int) -> None:
    plan = planned(epoch, SourceLog(0, 0, 120, 9, EPOCHS))
    assert (plan.ranges, plan.unsure) == ((), ())
    assert plan.stopped[0].startswith("below offset 120 there are other records at its source than were read")
    assert f"(keptlog truncate t-0 {cut})" in plan.stopped[0]


@pytest.mark.parametrize("epoch", [9, 12, None])
def test_one_without_a_later_leader_is_left_as_it_is(epoch: int | None) -> None:
    for log in (SourceLog(0, 0, 120, 9, EPOCHS), SourceLog(0, 0, 120, 9)):
        plan = planned(epoch, log)
        assert (plan.ranges, plan.stopped, plan.unsure) == ((), {}, ())


def test_where_only_the_broker_can_tell_it_is_asked_and_nothing_is_written_for_that() -> None:
    plan = planned(7, SourceLog(0, 0, 120, 9))
    assert (plan.ranges, plan.stopped, plan.unsure) == ((), {}, (ASKED_FOR,))


def test_an_empty_log_is_not_asked_for() -> None:
    assert planned(7, SourceLog(0, 0, 0, 9)).unsure == ()


def test_the_later_leader_is_remembered_with_the_time_that_is_written_anyway() -> None:
    plan = planned(7, SourceLog(0, 0, 120, 9), 1_000 + CONFIRMED_EVERY_MS)
    [remembered] = without_cut_off(plan, {NAME: 120}, ()).ranges
    assert (remembered.from_offset, remembered.end_offset, remembered.end_epoch) == (120, 120, 9)


@pytest.mark.parametrize("end", [100, None])
def test_what_was_cut_off_by_the_answer_is_stopped_and_not_remembered(end: int | None) -> None:
    plan = planned(7, SourceLog(0, 0, 120, 9), 1_000 + CONFIRMED_EVERY_MS)
    cut = without_cut_off(plan, {NAME: end}, ())
    assert cut.ranges == ()
    assert f"(keptlog truncate t-0 {end or 'OFFSET'})" in cut.stopped[0]


@pytest.mark.parametrize(("kept_below", "may_truncate"), [(119, True), (120, False)])
def test_to_truncate_is_not_advised_where_any_offset_would_be_refused_though_nobody_tells_which(
    kept_below: int, may_truncate: bool
) -> None:
    """As where all that was read is cleaned."""
    plan = replace(planned(7, SourceLog(0, 0, 120, 9)), kept=Kept(below={0: kept_below}))
    assert ("keptlog truncate" in without_cut_off(plan, {NAME: None}, ()).stopped[0]) == may_truncate


def test_what_nobody_answers_is_neither_stopped_nor_remembered() -> None:
    plan = planned(7, SourceLog(0, 0, 120, 9), 1_000 + CONFIRMED_EVERY_MS)
    left = without_cut_off(plan, {}, {NAME: StorageUnavailable("silent")})
    assert (left.ranges, left.stopped) == ((), {})


def test_who_goes_on_whatever_was_lost_remembers_the_later_leader_and_asks_nobody() -> None:
    plan = planned(7, SourceLog(0, 0, 120, 9), skip_lost=True)
    assert plan.unsure == ()
    assert [(each.from_offset, each.end_offset, each.end_epoch) for each in plan.ranges] == [(120, 120, 9)]
