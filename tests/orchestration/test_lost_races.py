"""A log that somebody else has cleaned while a run was about to clean it is not shown as failed for good."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.assets.checks import TopicFindings, look_at
from keptlog.dagster.resources.clock import ClockResource
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import dirty_ratio_sensor, failed_run_sensor
from tests.orchestration.test_untold_cleans import clean_in_a_terminal, failed, made


class InterruptedSpark(InProcessSpark):
    """Brings the session after something else has happened."""

    interrupt: ClassVar[Callable[[], None]]

    @property
    def spark_session(self) -> SparkSession:
        session: SparkSession = super().spark_session
        type(self).interrupt()
        return session


@pytest.fixture
def lost(world: World) -> World:
    """A run has failed as a terminal was faster, and sensors had seen that clean before it failed."""
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources["clock"] = ClockResource()
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    world.tick(dirty_ratio_sensor)

    def clean_first() -> None:
        InterruptedSpark.interrupt = lambda: None
        clean_in_a_terminal(world)
        world.tick(dirty_ratio_sensor)

    InterruptedSpark.interrupt = clean_first
    world.more_resources["spark"] = InterruptedSpark(spark_config={})
    result = world.clean("users-0")
    assert "the log changed since it was planned" in str(result.failure_data_for_node("commit"))
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.tick(dirty_ratio_sensor)
    assert failed(world) == {"users-0"}
    return world


def test_it_is_told_as_cleaned_once_it_is_the_sections_turn(lost: World) -> None:
    assert "users-0 had been cleaned, and is not shown as failed any more" in lost.skips(failed_run_sensor)

    assert not failed(lost)
    assert len(made(lost)) == 1
    assert lost.skips(dirty_ratio_sensor).startswith("1 log, none is due"), "nobody would have cleaned it again"


def test_what_the_run_has_cleaned_itself_and_has_found_broken_then_stays_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))

    def break_and_look(*given: Any, **named: Any) -> TopicFindings:
        world.break_segment("users")
        return look_at(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr("keptlog.dagster.assets.report.look_at", break_and_look)
        assert not world.clean("users-0").success
    assert world.store.logs("users")[0].checkpoint == 2, "it was cleaned all the same"

    for _ in range(2):
        world.tick(dirty_ratio_sensor)
        world.tick(failed_run_sensor)

    assert failed(world) == {"users-0"}
