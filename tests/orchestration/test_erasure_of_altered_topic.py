"""An erasure whose topic gets other settings while it waits: the time that is stored with it is of the old ones."""

from __future__ import annotations

import time
from typing import Any

import pytest

from keptlog.dagster.orchestration import erasure_needs
from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.log.erasures.prospect import may_be_further
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer
from tests.erasure.world import new_id
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, need, passes, topic_with_the_key
from tests.orchestration.shipped import erasure_sensor


@pytest.fixture
def users(world: World) -> str:
    return topic_with_the_key(world)


def test_what_goes_sooner_than_was_known_is_seen_and_purged(world: World, users: str) -> None:
    """It was left alone until the time at which its clean was to come, behind its deadline."""
    world.store.alter_topic(users, {"max.compaction.lag.ms": str(90 * DAY_MS), "segment.ms": str(90 * DAY_MS)})
    ask(world, by_ms=5 * HOUR_MS)
    world.skips(erasure_sensor)
    world.store.alter_topic(users, {"cleanup.policy": "delete", "retention.ms": str(HOUR_MS)})
    world.now_ms += LOOK_AGAIN_MS
    world.tick(erasure_sensor)
    world.now_ms += 2 * HOUR_MS
    store = passes(world).store
    Retainer(store).retain(named_logs(store, [users]), new_id(), now_ms=world.now_ms)
    assert store.logs(users)[0].segments == ()
    world.now_ms += LOOK_AGAIN_MS
    world.tick(erasure_sensor)
    assert need(world) == ErasureNeed.PURGE


def test_what_is_kept_for_long_is_judged_anew_only_once_its_topic_has_changed(
    world: World, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []

    def told(*given: Any) -> bool:
        judged.append(users)
        return may_be_further(*given)

    monkeypatch.setattr(erasure_needs, "may_be_further", told)
    ask(world, by_ms=90 * DAY_MS)
    for _ in range(3):
        world.now_ms += LOOK_AGAIN_MS
        world.tick(erasure_sensor)
    assert len(judged) == 1
    world.store.alter_topic(users, {"retention.ms": str(10 * DAY_MS)})
    world.now_ms += LOOK_AGAIN_MS
    world.tick(erasure_sensor)
    assert len(judged) == 2


def test_an_ingested_topic_cleaned_and_then_compacted_no_more_between_two_looks_is_looked_at(world: World) -> None:
    """It was told to wait for retention, of which there is none: nobody knows of its logs what a clean has passed."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users", 1, **SETTINGS | {"max_compaction_lag_ms": str(60 * DAY_MS)})
    key = KEY.encode()
    passes(world).ingest({0: (key, b"1")}, 1)
    ask(world, by_ms=90 * DAY_MS)
    passes(world).ingest({1: (key, None)}, 2)
    world.tick(erasure_sensor)
    assert need(world) == ErasureNeed.CLEAN
    world.now_ms += 2 * HOUR_MS
    world.tick(erasure_sensor)
    passes(world).clean()
    world.store.alter_topic("users", {"cleanup.policy": "delete", "retention.ms": "-1"})
    world.now_ms += LOOK_AGAIN_MS
    world.tick(erasure_sensor)
    assert need(world) == ErasureNeed.EXPIRY
