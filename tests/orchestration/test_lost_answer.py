"""A clean that has landed, and whose answer the catalog did not give, is shown as cleaned once it is seen."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.assets.attempts import last_attempts
from keptlog.dagster.orchestration import failed_runs, still_failed
from keptlog.dagster.resources.clock import ClockResource
from keptlog.errors import CommitStateUnknown, StorageUnavailable
from keptlog.table.store import LogStore
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import KEYS, dirty_ratio_sensor, failed_run_sensor
from tests.orchestration.test_untold_cleans import failed, made


@pytest.mark.parametrize("kind", [CommitStateUnknown, StorageUnavailable])
def test_a_log_that_its_run_has_named_as_failed_is_told_as_cleaned(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    world.topic("users", 2)
    lose_the_answer(world, monkeypatch, kind)
    assert [value for _, _, value in world.records("users")] == [b"2"], "its commit has landed"
    assert failed(world) == {"users-0", "users-1"}

    world.tick(dirty_ratio_sensor)

    assert not failed(world)
    assert len(made(world)) == 2


def test_a_tick_in_turn_tells_no_more_than_is_left_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    world.topic("users", 2)
    lose_the_answer(world, monkeypatch, CommitStateUnknown)
    monkeypatch.setattr(failed_runs, "EVENTS_PER_TICK", 1)
    monkeypatch.setattr(still_failed, "_SHARED_MS", 0)

    left = [len(failed(world))]
    for _ in range(2):
        world.tick(failed_run_sensor)
        left.append(len(failed(world)))

    assert left == [2, 1, 0], "the section stays next"


def test_the_sections_after_the_one_at_which_a_tick_ends_are_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their turn was noted, and they waited ten minutes."""
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    topics = ("users", "orders")
    for topic in topics:
        world.topic(topic, 2)
    lose_the_answer(world, monkeypatch, CommitStateUnknown, *topics)
    monkeypatch.setattr(failed_runs, "EVENTS_PER_TICK", 2)
    monkeypatch.setattr(still_failed, "_SHARED_MS", 0)

    left = [failed_of(world, *topics)]
    for _ in range(2):
        world.tick(failed_run_sensor)
        left.append(failed_of(world, *topics))

    assert left == [4, 2, 0]


def failed_of(world: World, *topics: str) -> int:
    """How many logs of these topics are shown as failed."""
    failures = [dg.DagsterRunStatus.FAILURE]
    return sum(len(last_attempts(world.instance, KEYS.clean(topic), failures)) for topic in topics)


def lose_the_answer(world: World, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], *topics: str) -> None:
    """A run cleans both logs of each topic, or of ``users``, and does not hear that its commits have landed."""
    logs = [(topic, partition) for topic in topics or ("users",) for partition in range(2)]
    for topic, partition in logs:
        world.append(topic, ("a", "1"), ("a", "2"), partition=partition)
    really = LogStore.swap

    def swap(*given: Any, **named: Any) -> None:
        really(*given, **named)
        raise kind("the catalog gave no answer")

    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "swap", swap)
        assert not world.clean(*(f"{topic}-{partition}" for topic, partition in logs)).success
