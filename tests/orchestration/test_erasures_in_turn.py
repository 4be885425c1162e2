"""The sensor of erasures has a few seconds a tick for looks at single topics: all come to their turn, tick by tick."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from keptlog.dagster.orchestration import erasure_looks
from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS, LOOKING_MS
from keptlog.passes.erasures.erase import Eraser
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, passes
from tests.orchestration.shipped import erasure_sensor

TOPICS = ["orders", "users"]


@pytest.fixture
def looked(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that ticks have looked at; each look takes all the time of its tick."""
    world.now_ms = time.time_ns() // 1_000_000
    for topic in TOPICS:
        world.topic(topic, 1, **SETTINGS)
        world.append(topic, (KEY, "1"), age_ms=0)
    ask(world, *TOPICS, by_ms=30 * DAY_MS)
    world.now_ms += 2 * HOUR_MS
    found: list[str] = []
    really = Eraser.advance

    def advance(self: Eraser, topics: Sequence[str] = (), *, now_ms: int) -> object:
        found.extend(topics)
        return really(self, topics, now_ms=now_ms)

    monkeypatch.setattr(Eraser, "advance", advance)
    monkeypatch.setattr(erasure_looks, "monotonic_ms", lambda: len(found) * LOOKING_MS)
    return found


def test_topics_for_which_a_tick_had_no_time_are_looked_at_by_the_next_one(world: World, looked: list[str]) -> None:
    passes(world).clean()

    for _ in range(3):
        world.tick(erasure_sensor)

    assert sorted(looked) == TOPICS


def test_topics_that_are_appended_to_all_the_time_keep_none_from_its_turn(world: World, looked: list[str]) -> None:
    for _ in range(4):
        for topic in TOPICS:
            world.append(topic, ("other", "1"), age_ms=0)
        world.now_ms += LOOK_AGAIN_MS
        world.tick(erasure_sensor)

    # Each once, and not again: only a clean brings them on, and none came.
    assert [looked.count(topic) for topic in TOPICS] == [1, 1]


def test_a_tick_that_can_not_ask_for_all_says_how_many_are_left(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("keptlog.dagster.orchestration.erasure_requests.LOGS_PER_RUN", 1)
    world.now_ms = time.time_ns() // 1_000_000
    for topic in TOPICS:
        world.topic(topic, 1, **SETTINGS)
        world.append(topic, (KEY, "1"), age_ms=0)
    ask(world, *TOPICS, by_ms=4 * HOUR_MS)
    world.now_ms += 2 * HOUR_MS

    (request,) = world.requests(erasure_sensor)

    assert request.job_name == "clean_logs"
    told = "for erasures: 1 more log is due and not asked for yet: a tick asks for at most 1"
    assert told in capfd.readouterr().err
