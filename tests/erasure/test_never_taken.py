"""A request that waits for retention is told where that never takes its records: when it is asked for, and later."""

from __future__ import annotations

import pytest

from keptlog.log.record import NewRecord
from keptlog.passes.erasures.erasure_request import ErasureRequest, TopicProposal
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer
from keptlog.table.metadata.prefixes import CONFIG_PREFIX
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import set_properties

SETTINGS = {"cleanup.policy": "delete", "retention.ms": str(HOUR_MS)}
NO_TIMESTAMP_MS = -1


def without_timestamps(world: World) -> None:
    world.append_records([NewRecord(KEY, VALUE, NO_TIMESTAMP_MS, 0)])


def unsettled(world: World) -> None:
    """As an older keptlog has made the topic."""
    world.append((KEY, VALUE))
    set_properties(world.home, {CONFIG_PREFIX + "retention.ms": None}, "users")


def proposed(world: World, deadline_ms: int | None = None) -> TopicProposal:
    request = ErasureRequest("r1", ("users",), (KEY,), deadline_ms=deadline_ms)
    return world.eraser.propose(request, now_ms=world.now_ms).topics["users"]


@pytest.mark.parametrize(
    ("made", "why", "remedy"),
    [
        (without_timestamps, "the segment of users-0 at offset 0 has no timestamps", "keptlog delete-records"),
        (unsettled, "topic users has no retention.ms of its own", "keptlog topic alter users --config retention.ms="),
    ],
)
def test_where_nothing_goes_by_its_age_a_request_is_told_so_and_stays_blocked(
    world: World, made: object, why: str, remedy: str
) -> None:
    world.create(settings=SETTINGS)
    made(world)  # type: ignore[operator]
    for deadline_ms in (None, world.now_ms + 900 * DAY_MS):
        found = proposed(world, deadline_ms)
        (told,) = found.hindrances
        assert told.what.startswith(why)
        assert told.remedy.find(remedy) >= 0
        assert found.earliest_ms > (found.deadline_ms or 0)
    world.ask()
    world.append((OTHER, b"1"))
    world.later(400 * DAY_MS)
    (blocked,) = world.row().blocked
    assert blocked.startswith(why)
    assert remedy in blocked


def test_what_has_no_timestamps_behind_the_bound_of_a_request_keeps_nothing_from_it(world: World) -> None:
    world.create(settings=SETTINGS)
    world.append((KEY, VALUE))
    world.ask()
    without_timestamps(world)
    assert world.row().blocked == ()
    world.later(2 * HOUR_MS)
    retained = Retainer(world.store).retain(named_logs(world.store, ["users"]), "r", now_ms=world.now_ms)
    assert len(retained.committed) == 1
    assert world.erasure().has_reached("compacted")  # type: ignore[arg-type]


def test_a_topic_that_was_compacted_and_is_not_any_more_waits_for_age_as_well(world: World) -> None:
    world.create(settings={"retention.ms": str(HOUR_MS)})
    without_timestamps(world)
    world.ask()
    assert world.row().blocked == ()
    world.store.alter_topic("users", {"cleanup.policy": "delete"})
    (blocked,) = world.row().blocked
    assert "has no timestamps" in blocked


def test_in_a_topic_that_is_not_compacted_any_more_a_request_waits_for_its_age_and_for_no_clean(world: World) -> None:
    """It was to wait for segment.ms, then for a clean, and no clean finds anything to do."""
    world.create(settings={"retention.ms": str(3 * HOUR_MS)})
    world.append((KEY, VALUE))
    world.ask()
    goes_ms = world.now_ms + 3 * HOUR_MS + 1
    world.store.alter_topic("users", {"cleanup.policy": "delete"})
    row = world.row()
    assert (row.next_ms, row.kept_by(world.now_ms)) == (goes_ms, "retention.ms")
    world.now_ms = goes_ms
    assert world.row().next_told(goes_ms) == "retention (keptlog retain users)"
    world.store.alter_topic("users", {"retention.ms": "-1"})
    row = world.row()
    assert (row.next_ms, row.next_told(goes_ms)) == (None, None)
    assert row.blocked == ("waits for a clean, and cleanup.policy is delete: have the topic compacted again",)
    world.store.alter_topic("users", {"cleanup.policy": "compact"})
    assert world.row().next_told(goes_ms) == "a clean"


def test_a_tombstone_that_no_clean_takes_any_more_goes_by_its_age(world: World) -> None:
    world.create(settings={"retention.ms": str(9 * HOUR_MS)})
    world.append((KEY, VALUE))
    world.ask()
    goes_ms = world.now_ms + 9 * HOUR_MS + 1
    world.later(2 * HOUR_MS)
    world.clean()
    world.store.alter_topic("users", {"cleanup.policy": "delete"})
    row = world.row()
    assert (row.erasure.state, row.next_ms, row.kept_by(world.now_ms)) == ("compacted", goes_ms, "retention.ms")


def test_where_retention_never_takes_a_request_no_time_is_told(world: World) -> None:
    world.create(settings=SETTINGS)
    world.append((KEY, VALUE))
    world.ask()
    world.store.alter_topic("users", {"cleanup.policy": "compact"})
    world.later(2 * HOUR_MS)
    row = world.row()
    assert row.next_told(world.now_ms) is None, "it was sent to a retention that takes nothing"
    assert row.blocked[0].startswith("waits for retention, and cleanup.policy is compact")


def test_what_lies_before_a_segment_that_never_goes_by_its_age_goes_by_its_own(world: World) -> None:
    """No time was told, and no reason: a later segment has no timestamps, for which it does not wait."""
    world.create(settings=SETTINGS)
    world.append((KEY, VALUE))
    world.ask()
    goes_ms = world.now_ms + HOUR_MS + 1
    without_timestamps(world)
    row = world.row()
    assert (row.next_ms, row.kept_by(world.now_ms), row.blocked) == (goes_ms, "retention.ms", ())


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_what_retention_takes_by_another_rule_than_age_is_not_told_that_nothing_takes_it(
    world: World, policy: str
) -> None:
    """It was to be compacted again, or its records to be deleted, beside the retention that takes it."""
    world.create(settings={"cleanup.policy": policy, "retention.ms": str(HOUR_MS)})
    world.append((KEY, VALUE))
    world.ask()
    world.store.alter_topic("users", {"cleanup.policy": "delete", "retention.ms": "-1"})
    assert len(world.row().blocked) == 1
    world.store.alter_topic("users", {"retention.bytes": "1"})
    world.append((OTHER, b"1"))
    row = world.row()
    assert (row.next_told(world.now_ms), row.blocked) == ("retention (keptlog retain users)", ())
    retained = Retainer(world.store).retain(named_logs(world.store, ["users"]), "r", now_ms=world.now_ms)
    assert len(retained.committed) == 1
    assert world.erasure().has_reached("compacted")  # type: ignore[arg-type]


def test_what_has_no_timestamps_and_goes_by_its_size_is_not_told_that_it_never_goes(world: World) -> None:
    world.create(settings=SETTINGS)
    without_timestamps(world)
    world.ask()
    world.store.alter_topic("users", {"retention.bytes": "1"})
    world.append((OTHER, b"1"))
    row = world.row()
    assert (row.next_told(world.now_ms), row.blocked) == ("retention (keptlog retain users)", ())


def test_retain_says_what_keeps_a_log_from_going(world: World) -> None:
    world.create(settings=SETTINGS)
    without_timestamps(world)
    plan = Retainer(world.store).plan(world.store.logs("users"), world.now_ms + DAY_MS)
    assert plan.left_alone["users-0"].startswith("its oldest segment has no timestamps")
