"""An erasure in a topic whose others need something else: each is brought on, and none for the sake of the others."""

from __future__ import annotations

import time

import pytest

from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.passes.clean import Cleaner
from keptlog.passes.readers import Readers
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, ask_by_hash, passes
from tests.orchestration.shipped import erasure_sensor

OTHER = "user-8@example.org"


@pytest.fixture
def world(world: World) -> World:
    """States are dated by the wall clock."""
    world.now_ms = time.time_ns() // 1_000_000
    return world


def needs(world: World) -> list[str]:
    """What the erasures of users wait for."""
    return [each.need for each in world.store.observe("users").erasures.needs]


def tick_after_a_clean(world: World) -> None:
    world.now_ms += 2 * HOUR_MS
    passes(world).clean()
    world.tick(erasure_sensor)


def to_purge(world: World) -> None:
    """Bring the erasures of users to where they wait for a purge."""
    for _ in range(2):
        tick_after_a_clean(world)
    assert needs(world) == [ErasureNeed.PURGE]


def test_one_that_is_due_sooner_than_another_that_waits_for_its_purge_is_brought_on(world: World) -> None:
    """Nobody looked at the topic before the purge of the other, so it was overdue, and no run was asked for."""
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"), (OTHER, "1"), age_ms=0)
    ask(world, by_ms=200 * DAY_MS)
    to_purge(world)
    ask(world, by_ms=5 * DAY_MS, request_id="r2", key=OTHER)
    for _ in range(2):
        tick_after_a_clean(world)
    assert needs(world) == [ErasureNeed.PURGE]


def test_what_waits_for_a_clean_is_not_looked_at_for_another_that_waits_for_its_verification(
    world: World, looked: list[str]
) -> None:
    """It was looked at every ten minutes of the day that a verification may take."""
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"), (OTHER, "1"), age_ms=0)
    ask(world, by_ms=200 * DAY_MS)
    to_purge(world)
    passes(world).purge()
    passes(world).eraser.advance(["users"], now_ms=world.now_ms)
    world.store.alter_topic("users", {"max.compaction.lag.ms": str(60 * DAY_MS), "segment.ms": str(60 * DAY_MS)})
    ask(world, by_ms=200 * DAY_MS, request_id="r2", key=OTHER)
    assert needs(world) == [ErasureNeed.CLEAN, ErasureNeed.VERIFICATION]
    looked.clear()
    for number in range(4):
        world.now_ms += LOOK_AGAIN_MS
        world.append("users", ("new", str(number)), age_ms=0)
        world.tick(erasure_sensor)
    assert looked == []
    world.store.alter_topic("users", {"segment.ms": str(HOUR_MS)})
    tick_after_a_clean(world)
    assert needs(world) == [ErasureNeed.EXPIRY, ErasureNeed.VERIFICATION]


def test_one_that_somebody_else_has_looked_at_is_brought_on_though_a_reader_holds_the_tombstone_of_another(
    world: World,
) -> None:
    """The last look in this process knew nothing of its tombstone, so nobody missed that."""
    world.topic("users", 2, **SETTINGS)
    for number, key in enumerate((KEY, OTHER)):
        world.append("users", (key, "1"), age_ms=0, partition=number)
    ask(world, by_ms=90 * DAY_MS)
    readers = Readers(world.store, lambda: "slow")
    readers.add("users", "slow", 60 * DAY_MS, now_ms=world.now_ms)
    for _ in range(2):
        tick_after_a_clean(world)
    assert needs(world) == [ErasureNeed.EXPIRY]
    ask(world, by_ms=90 * DAY_MS, request_id="r2", key=OTHER)
    readers.commit("users", "slow", {1: world.store.logs("users")[1].log_end_offset})
    world.now_ms += 2 * HOUR_MS
    passes(world).clean()
    passes(world).eraser.advance(["users"], now_ms=world.now_ms)
    assert needs(world) == [ErasureNeed.EXPIRY]
    for _ in range(2):
        tick_after_a_clean(world)
    assert needs(world) == [ErasureNeed.EXPIRY, ErasureNeed.PURGE]


def test_one_whose_tombstones_are_held_is_not_looked_at_with_each_clean_that_does_not_pass_another(
    world: World, looked: list[str]
) -> None:
    """It was looked at after each clean of any log, as long as both waited."""
    world.topic("users", 2, **SETTINGS)
    for number, key in enumerate((KEY, OTHER)):
        world.append("users", (key, "1"), age_ms=0, partition=number)
    ask(world, by_ms=90 * DAY_MS)
    Readers(world.store, lambda: "slow").add("users", "slow", 60 * DAY_MS, now_ms=world.now_ms)
    for _ in range(2):
        tick_after_a_clean(world)
    ask(world, by_ms=90 * DAY_MS, request_id="r2", key=OTHER)
    looked.clear()
    for number in range(4):
        world.append("users", (f"key-{number}", "1"), age_ms=0)
        world.now_ms += 2 * HOUR_MS
        store = passes(world).store
        cleaner = Cleaner(store, in_process_engine(store.files))
        assert carry_out(cleaner, cleaner.plan(["users-0"], now_ms=world.now_ms, requested=True)).failed == {}
        world.tick(erasure_sensor)
    assert needs(world) == [ErasureNeed.CLEAN, ErasureNeed.EXPIRY]
    assert looked == []


@pytest.mark.parametrize("is_cleaned", [True, False])
def test_one_of_a_key_that_nobody_has_is_looked_at_once_beside_another_that_was_looked_at_and_waits(
    world: World, looked: list[str], *, is_cleaned: bool
) -> None:
    """It waits for no clean, so none brought a look: it was overdue, and no run was asked for."""
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"), age_ms=0)
    ask(world, by_ms=90 * DAY_MS)
    Readers(world.store, lambda: "slow").add("users", "slow", 60 * DAY_MS, now_ms=world.now_ms)
    world.now_ms += 2 * HOUR_MS
    world.tick(erasure_sensor)
    for _ in range(2 * is_cleaned):
        tick_after_a_clean(world)
    waiting = [ErasureNeed.EXPIRY if is_cleaned else ErasureNeed.CLEAN]
    assert needs(world) == waiting
    world.now_ms += LOOK_AGAIN_MS
    ask_by_hash(world, OTHER, "r2", by_ms=5 * DAY_MS)
    looked.clear()
    for _ in range(3):
        world.now_ms += LOOK_AGAIN_MS
        world.tick(erasure_sensor)
    assert (looked, needs(world)) == (["users"], [*waiting, ErasureNeed.PURGE])
