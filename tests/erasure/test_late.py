"""What is told of a late erasure ends it, by the clock, however its records have gone since somebody looked."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.dagster.assets.erasures import ErasureNews, erasures_observation, overdue_lines, request_numbers
from keptlog.dagster.assets.names import AssetKeys
from keptlog.log.told.erasure_step import ErasureStep, erasure_step
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.names import named_logs
from keptlog.passes.observer import observe
from keptlog.passes.retain import Retainer
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE, World, new_id

SLOW = {"segment.ms": str(7 * DAY_MS), "max.compaction.lag.ms": str(30 * DAY_MS)}
BY_AGE = SLOW | {"cleanup.policy": "compact,delete", "retention.ms": str(HOUR_MS // 2)}


def step(world: World) -> ErasureStep:
    seen = observe(world.store, now_ms=world.now_ms)
    return erasure_step("users", seen.erasures["users"], world.now_ms, list(seen.logs))


def told(world: World) -> str:
    [line] = overdue_lines(ErasureNews(observe(world.store, now_ms=world.now_ms)))
    return line


def shown(world: World) -> list[str]:
    """The line of the topic in the tables of the asset: at a glance, and of topics."""
    news = ErasureNews(observe(world.store, now_ms=world.now_ms))
    told = {**request_numbers(news), **erasures_observation(AssetKeys(), news).metadata}
    glance, table = (str(getattr(told[name], "value", "")) for name in ("most_urgent", "topics"))
    [row] = [line for line in table.splitlines() if line.startswith("| users |")]
    return [glance, row]


def late(world: World, settings: dict[str, str], **how: Any) -> None:
    world.create(settings=settings)
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask(deadline_ms=world.now_ms + HOUR_MS, **how)
    world.later(2 * HOUR_MS)


def retain(world: World) -> None:
    store = world.store
    retained = Retainer(store).retain(named_logs(store, ["users"]), new_id(), now_ms=world.now_ms)
    assert len(retained.committed) == 1


def ended(world: World) -> str:
    """The steps that are told, one after the other, until it is verified."""
    world.purge()
    assert step(world).command == "keptlog erasure list"
    assert "(needs a look)" in told(world)
    assert world.row().erasure.state == "deleted"
    assert step(world).command == "keptlog erasure verify"
    return world.verified().erasure.state


def test_a_log_that_was_emptied_is_waited_for_by_nobody(world: World) -> None:
    late(world, SLOW)
    assert step(world).command is None
    world.store.delete_records(TopicPartition("users", 0), -1, new_id())
    assert ended(world) == "verified"


def test_a_tombstone_of_a_clock_ahead_is_no_log_that_was_emptied(world: World) -> None:
    """Each look dates the request by its own clock: people were sent to look again for a week, and nothing came."""
    world.create(settings=SLOW)
    world.append((KEY, VALUE))
    right_ms = world.now_ms
    world.now_ms += 2000
    world.ask(deadline_ms=right_ms + HOUR_MS)
    for after_ms in (500, 2 * HOUR_MS):
        world.now_ms = right_ms + after_ms
        assert world.row().erasure.reached[-1].at_ms == right_ms + 500
    assert step(world).command is None
    assert "segment.ms" in told(world)
    world.store.delete_records(TopicPartition("users", 0), -1, new_id())
    assert ended(world) == "verified"


def test_what_retention_takes_is_no_clean_s(world: World) -> None:
    late(world, BY_AGE)
    assert step(world).command == "keptlog retain users"
    assert "(needs retention)" in told(world)
    retain(world)
    world.later(HOUR_MS)
    world.append((OTHER, b"2"))
    assert ended(world) == "verified"


def test_a_tombstone_that_came_just_now_is_in_no_segment_that_retention_takes(world: World) -> None:
    world.create(settings=SLOW | {"cleanup.policy": "compact,delete", "retention.ms": str(5 * DAY_MS)})
    world.ingest({0: (OTHER, b"1")}, 1, timestamps_ms={0: world.now_ms - 6 * DAY_MS})
    world.ingest({1: (KEY, VALUE)}, 2)
    world.ask(deadline_ms=world.now_ms + HOUR_MS)
    world.ingest({2: (KEY, None)}, 3)
    assert world.row().erasure.state == "tombstoned"
    world.later(2 * HOUR_MS)
    assert step(world).command is None
    assert "needs retention" not in told(world)


def test_a_drop_here_is_verified_at_once_though_another_key_is_remembered(world: World) -> None:
    versions = {"compaction.strategy": "timestamp", "keptlog.watermark.retention.ms": str(7 * DAY_MS)}
    world.create(settings=versions | {"segment.ms": "1000", "delete.retention.ms": "0"})
    sent_ms = world.now_ms - DAY_MS
    records = {0: (KEY, VALUE), 1: (OTHER, b"1"), 2: (b"gone", b"1"), 3: (b"gone", None)}
    world.ingest(records, 4, timestamps_ms={offset: sent_ms + offset for offset in records})
    world.bring_on()
    assert [bool(log.watermarks_path) for log in world.store.logs("users")] == [True]
    world.ask(is_here=True, deadline_ms=world.now_ms + HOUR_MS)
    world.later(2 * HOUR_MS)
    world.purge()
    assert world.row().erasure.state == "deleted"
    assert step(world).command == "keptlog erasure verify"
    assert "(needs verification)" in told(world)
    assert world.verified().erasure.state == "verified"


@pytest.mark.parametrize("after_ms", [0, 2 * HOUR_MS], ids=["in time", "overdue"])
def test_the_tables_of_topics_say_as_the_check_does_what_is_needed_by_now(world: World, after_ms: int) -> None:
    """They said what the last look had stored: a clean of a log that was emptied since."""
    world.create(settings=SLOW)
    world.append((KEY, VALUE))
    world.ask(deadline_ms=world.now_ms + HOUR_MS)
    world.later(after_ms)
    glance, row = shown(world)
    assert ", nothing brings it on before " in glance
    assert "| nothing brings it on before " in row
    world.store.delete_records(TopicPartition("users", 0), -1, new_id())
    glance, row = shown(world)
    assert glance.endswith(", needs a look")
    assert row.endswith("| a look |")
