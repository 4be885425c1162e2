"""A log that somebody else has cleaned while a run was about to clean it is not shown as failed for good."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.assets.checks import TopicFindings, look_at
from keptlog.dagster.resources.clock import ClockResource
from keptlog.errors import StorageUnavailable
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.check import CheckResult
from keptlog.passes.verify import verify_log
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import dirty_ratio_sensor, failed_run_sensor
from tests.orchestration.test_assets import materialize
from tests.orchestration.test_from_failure import again
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


@pytest.fixture
def dirty(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A log that nobody has cleaned yet."""
    monkeypatch.setattr("tests.orchestration.test_from_failure._worlds", [world])
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    world.topic("users")
    world.append("users", ("b", "1"), ("a", "1"), ("a", "2"))
    return world


def test_what_the_run_has_cleaned_itself_and_has_found_broken_then_stays_failed(
    dirty: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_and_look(*given: Any, **named: Any) -> TopicFindings:
        dirty.break_segment("users")
        return look_at(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr("keptlog.dagster.assets.report.look_at", break_and_look)
        assert not dirty.clean("users-0").success

    it_stays_failed(dirty)


@pytest.mark.parametrize("is_again", [False, True], ids=["a run", "one that is executed again from its failure"])
def test_what_the_run_has_told_and_could_not_read_back_stays_failed_though_records_were_deleted_since(
    dirty: World, monkeypatch: pytest.MonkeyPatch, is_again: bool
) -> None:
    def look_in_vain(*given: Any, **named: Any) -> Iterator[CheckResult]:
        for found in verify_log(*given, **named):
            yield replace(found, passed=False, is_looked_at=False, description="the storage does not answer")

    first = stopped_before_its_commit(dirty, monkeypatch) if is_again else None
    with monkeypatch.context() as patch:
        patch.setattr("keptlog.dagster.assets.checks.verify_log", look_in_vain)
        run = again(dirty, first) if first else dirty.clean("users-0")
        assert "not looked at" in str(run.failure_data_for_node("commit"))
    assert dirty.store.delete_records(TopicPartition("users", 0), 1, "deletion").log_start_offset == 1

    it_stays_failed(dirty)


def stopped_before_its_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run whose commit can be executed again."""

    def away(*_: object) -> None:
        raise StorageUnavailable("it is away")

    with monkeypatch.context() as patch:
        patch.setattr("keptlog.passes.clean.Cleaner.commit", away)
        run = world.clean("users-0")
    assert not run.success
    return run.run_id


def test_what_the_run_has_told_and_could_not_look_at_since_its_commit_stays_failed(
    dirty: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of assets tells it without a data version, as the catalog is away."""

    def look_in_vain(*_given: object, **_named: object) -> None:
        raise StorageUnavailable("the catalog is away")

    with monkeypatch.context() as patch:
        patch.setattr("keptlog.dagster.assets.report.observe", look_in_vain)
        assert not materialize(dirty, "users", "users-0", "users-0").success

    it_stays_failed(dirty)


def it_stays_failed(world: World) -> None:
    assert world.store.logs("users")[0].checkpoint == 3, "it was cleaned all the same"
    assert len(made(world)) == 1, "and that was told"
    for _ in range(2):
        world.tick(dirty_ratio_sensor)
        world.tick(failed_run_sensor)
    assert failed(world) == {"users-0"}
