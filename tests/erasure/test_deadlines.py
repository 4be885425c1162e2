"""By when an erasure is promised, and what is told of a deadline that can't be kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.log.erasures.erasure import ErasureWay
from keptlog.passes.erasures.erasure_request import ErasureRequest, TopicProposal
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, VALUE, World
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
