"""An erasure whose topic is appended to all the time: a look costs, and helps only once a pass has been there."""

from __future__ import annotations

import os

import pytest

from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.dagster.orchestration.erasure_memory import erasure_memory_of
from keptlog.dagster.orchestration.erasure_needs import KeptErasures
from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.log.erasures.prospect import LookedLogs
from keptlog.passes.clean import Cleaner
from keptlog.passes.names import named_logs
from keptlog.passes.readers import Readers
from keptlog.passes.retain import Retainer
from tests.erasure.world import new_id
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, need, passes
from tests.orchestration.shipped import erasure_sensor

SLOW = {"max_compaction_lag_ms": str(60 * DAY_MS), "segment_ms": str(60 * DAY_MS), "segment_bytes": str(2**20)}


@pytest.mark.parametrize(("segment_ms", "looks"), [(60 * DAY_MS, []), (HOUR_MS, ["users"])])
def test_what_a_clean_could_pass_is_looked_at_only_once_one_has_been_there(
    world: World, looked: list[str], segment_ms: int, looks: list[str]
) -> None:
    """It was looked at every ten minutes from when its segment was closed, a large topic in a run each time.

    It is closed by its size, before the time that is stored, or at that: then it is looked at once.
    """
    world.topic("users", 1, **SETTINGS | SLOW | {"segment_ms": str(segment_ms)})
    world.append("users", (KEY, "1"), ("other", "1"), age_ms=0)
    ask(world, by_ms=90 * DAY_MS)
    for number in range(4):
        world.now_ms += HOUR_MS
        world.append("users", (f"key-{number}", os.urandom(2**19).hex()), age_ms=0)
        world.tick(erasure_sensor)
    assert (looked, need(world)) == (looks, ErasureNeed.CLEAN)
    passes(world).clean()
    world.now_ms += LOOK_AGAIN_MS
    world.tick(erasure_sensor)
    assert (looked, need(world)) == ([*looks, "users"], ErasureNeed.EXPIRY)


@pytest.mark.parametrize("ahead_ms", [0, DAY_MS])
def test_it_is_looked_at_once_at_its_time_though_it_was_looked_at_before(world: World, ahead_ms: int) -> None:
    """Whether that was for a request of before, and whether the process is a new one, says nothing of this one.

    Nor does a look by a clock that was ahead.
    """
    world.topic("users", 1, **SETTINGS | {"max_compaction_lag_ms": str(60 * DAY_MS)})
    world.append("users", (KEY, "1"), ("other", "1"), age_ms=0)
    memory = erasure_memory_of(world.log_store)
    memory.looked["users"] = ("before", world.now_ms + ahead_ms)
    ask(world, by_ms=90 * DAY_MS)
    next_ms = world.store.observe("users").erasures.next_ms
    assert next_ms is not None
    for late_ms, is_looked_at in ((-LOOK_AGAIN_MS, False), (0, True), (LOOK_AGAIN_MS, False)):
        world.now_ms = next_ms + late_ms
        world.append("users", ("other", str(late_ms)), age_ms=0)
        world.tick(erasure_sensor)
        assert (memory.looked["users"][1] == world.now_ms) is is_looked_at


def test_what_waits_for_cleans_of_two_logs_is_looked_at_once_after_each(world: World, looked: list[str]) -> None:
    """From the first clean to the second it was looked at every ten minutes, a large topic in a run each time."""
    world.topic("users", 2, **SETTINGS | SLOW)
    for number in (0, 1):
        world.append("users", (KEY, "1"), ("other", "1"), age_ms=0, partition=number)
    ask(world, by_ms=90 * DAY_MS)
    for number in range(4):
        world.append("users", (f"key-{number}", os.urandom(2**19).hex()), age_ms=0)
    store = passes(world).store
    cleaner = Cleaner(store, in_process_engine(store.files))
    assert carry_out(cleaner, cleaner.plan(["users-0"], now_ms=world.now_ms, requested=True)).failed == {}
    for number in range(3):
        world.now_ms += LOOK_AGAIN_MS
        world.append("users", ("other", str(number)), age_ms=0, partition=1)
        world.tick(erasure_sensor)
    assert (looked, need(world)) == (["users"], ErasureNeed.CLEAN)
    world.now_ms += 61 * DAY_MS
    passes(world).clean()
    world.tick(erasure_sensor)
    assert need(world) == ErasureNeed.EXPIRY


def test_what_a_reader_holds_beyond_its_horizon_is_looked_at_once_until_a_clean_takes_it(
    world: World, looked: list[str]
) -> None:
    """It was looked at every ten minutes, as long as the reader held its tombstones."""
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"), age_ms=0)
    Readers(world.store, lambda: "slow").add("users", "slow", 7 * DAY_MS, now_ms=world.now_ms)
    ask(world, by_ms=90 * DAY_MS)
    world.now_ms += 2 * HOUR_MS
    passes(world).clean()
    world.tick(erasure_sensor)
    assert need(world) == ErasureNeed.EXPIRY
    world.now_ms += 2 * HOUR_MS
    looked.clear()
    for number in range(3):
        world.now_ms += LOOK_AGAIN_MS
        world.append("users", ("other", str(number)), age_ms=0)
        passes(world).clean()
        world.tick(erasure_sensor)
    assert (looked, need(world)) == (["users"], ErasureNeed.EXPIRY)
    world.now_ms += 8 * DAY_MS
    passes(world).clean()
    world.tick(erasure_sensor)
    assert need(world) == ErasureNeed.PURGE


def test_what_a_clean_has_passed_is_looked_at_again_where_nobody_knows_any_more_whether_it_was(world: World) -> None:
    """As where the run was lost that was to look at a large topic."""
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"), age_ms=0)
    ask(world, by_ms=90 * DAY_MS)
    world.now_ms += 2 * HOUR_MS
    passes(world).clean()
    seen, kept = world.log_store.observer.look(world.now_ms), KeptErasures()
    looked_logs = LookedLogs.of(world.store.logs("users"), seen.open_erasures["users"])
    for looked, expected in (({"users": looked_logs}, {"users"}), ({}, set())):
        assert kept.of(seen, seen.open_erasures, looked) == expected


@pytest.mark.parametrize("after_ms", [0, DAY_MS])
def test_a_topic_that_rests_since_makes_ticks_quiet_though_no_look_has_come_after_its_last_append(
    world: World, looked: list[str], after_ms: int
) -> None:
    """Each tick asked Dagster and judged all erasures anew, until the next look: before its time, and behind it."""
    world.topic("users", 1, **SETTINGS | SLOW | {"segment_ms": str(2 * DAY_MS)})
    world.append("users", (KEY, "1"), age_ms=0)
    ask(world, by_ms=90 * DAY_MS)
    next_ms = world.store.observe("users").erasures.next_ms
    assert next_ms is not None
    world.now_ms = next_ms + after_ms - HOUR_MS
    world.append("users", ("other", "1"), age_ms=0)
    world.tick(erasure_sensor)
    world.append("users", ("other", "2"), age_ms=0)
    world.now_ms += LOOK_AGAIN_MS
    world.tick(erasure_sensor)
    assert looked == ["users"] * (after_ms > 0)
    assert erasure_memory_of(world.log_store).quiet


def test_what_is_old_enough_is_looked_at_once_until_retention_takes_it(world: World, looked: list[str]) -> None:
    """It was looked at every ten minutes from its time until retention came, as where that is switched off."""
    world.topic("users", 1, **SETTINGS | {"cleanup_policy": "delete", "retention_ms": str(HOUR_MS)})
    world.append("users", (KEY, "1"), age_ms=0)
    ask(world, by_ms=90 * DAY_MS)
    assert need(world) == ErasureNeed.RETENTION
    world.now_ms += 2 * HOUR_MS
    for number in range(3):
        world.now_ms += LOOK_AGAIN_MS
        world.append("users", ("other", str(number)), age_ms=0)
        world.tick(erasure_sensor)
    assert (looked, need(world)) == (["users"], ErasureNeed.RETENTION)
    store = passes(world).store
    Retainer(store).retain(named_logs(store, ["users"]), new_id(), now_ms=world.now_ms)
    world.now_ms += LOOK_AGAIN_MS
    world.tick(erasure_sensor)
    assert need(world) == ErasureNeed.PURGE
