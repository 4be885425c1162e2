"""A log that was cut off and has grown up to the position again is stopped, though nothing is to be read there."""

from __future__ import annotations

import pytest

from keptlog.log.lost_deletions import with_times
from keptlog.log.refilled import without_refilled
from keptlog.log.source import IngestPlan, SourceIdentity, SourceLog, SourceTopic, StoredSource, plan_ingest

SOURCE = SourceIdentity("t")
EPOCHS = ((3, 0), (7, 40), (9, 100))
"""Leader epochs of a log that ends at 120, and where they begin."""


def planned(epoch: int | None, log: SourceLog) -> IngestPlan:
    stored = StoredSource(SOURCE, (120,), {} if epoch is None else {0: epoch}, {0: 1_000})
    found = SourceTopic(SOURCE, (log,))
    plan = without_refilled(plan_ingest("t", SOURCE, stored.positions, found), stored, found)
    return with_times(plan, stored, found, 1_001)


@pytest.mark.parametrize(("epoch", "cut"), [(7, 100), (3, 40)])
def test_one_of_which_a_later_leader_began_below_the_position_is_stopped_with_the_choice(epoch: int, cut: int) -> None:
    plan = planned(epoch, SourceLog(0, 0, 120, 9, EPOCHS))
    assert plan.ranges == ()
    assert plan.stopped[0].startswith("below offset 120 there are other records at its source than were read")
    assert f"(keptlog truncate t-0 {cut})" in plan.stopped[0]


def test_one_whose_later_leader_began_at_the_position_remembers_that_leader_so_that_nobody_asks_again() -> None:
    plan = planned(9, SourceLog(0, 0, 120, 11, (*EPOCHS, (11, 120))))
    assert not plan.stopped
    assert [(each.from_offset, each.end_offset, each.end_epoch) for each in plan.ranges] == [(120, 120, 11)]


@pytest.mark.parametrize("epoch", [9, 12, None])
def test_one_without_a_later_leader_is_left_as_it_is(epoch: int | None) -> None:
    plan = planned(epoch, SourceLog(0, 0, 120, 9, EPOCHS))
    assert (plan.ranges, plan.stopped) == ((), {})
