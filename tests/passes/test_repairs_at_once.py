"""Two people repair one topic at once: the slower one is told of his own repair, or that it was not his."""

from __future__ import annotations

import pytest

from keptlog.errors import StalePlan
from keptlog.home import new_id
from keptlog.passes.repair import Repairer, RepairProposal
from tests.passes.story import SETTINGS, Story, T
from tests.table.foreign import current_id, insert

ADOPTED = "needs no repair any more: somebody else has adopted it meanwhile, which may have lost records; nothing was"
REPAIRED = "needs no repair any more: somebody else has mended it in another way; nothing was done now"


@pytest.fixture
def rolled_back(story: Story) -> Story:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    story.roll_back(first)
    return story


def proposed(story: Story, *, adopt: bool) -> RepairProposal:
    proposal = story.propose(adopt=adopt)
    assert proposal
    return proposal


def carry_out(story: Story, proposal: RepairProposal) -> None:
    Repairer(story.real.store).repair(proposal, new_id(), now_ms=story.now_ms)


@pytest.mark.parametrize("adopt", [False, True])
def test_another_ones_repair_of_the_other_kind_is_not_told_as_ones_own(rolled_back: Story, *, adopt: bool) -> None:
    """It said that no acknowledged record is lost, of what an adoption had lost, and the other way round."""
    mine = proposed(rolled_back, adopt=adopt)
    rolled_back.repair(adopt=not adopt)
    after = current_id(rolled_back.home, T)
    with pytest.raises(StalePlan, match=REPAIRED if adopt else ADOPTED):
        carry_out(rolled_back, mine)
    assert current_id(rolled_back.home, T) == after


def test_nor_is_it_where_the_same_had_happened_and_was_repaired_before(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    story.roll_back(first)
    story.repair()
    story.roll_back(first)
    mine = proposed(story, adopt=False)
    story.repair(adopt=True)
    with pytest.raises(StalePlan, match=ADOPTED):
        carry_out(story, mine)


@pytest.mark.parametrize("adopt", [False, True])
def test_the_same_repair_by_another_one_is_found_done(rolled_back: Story, *, adopt: bool) -> None:
    mine = proposed(rolled_back, adopt=adopt)
    rolled_back.repair(adopt=adopt)
    rolled_back.append(("later", "1"))
    after = current_id(rolled_back.home, T)
    carry_out(rolled_back, mine)
    assert current_id(rolled_back.home, T) == after


def test_a_topic_that_was_made_anew_is_not_told_as_repaired(story: Story) -> None:
    insert(story.home, 50, topic=T)
    mine = proposed(story, adopt=False)
    story.real.store.delete_topic(T, story.now_ms)
    story.real.store.create_topic(T, 1, SETTINGS)
    with pytest.raises(StalePlan, match="topic t was deleted and created again meanwhile"):
        carry_out(story, mine)
