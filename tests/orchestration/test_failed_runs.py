"""The logs of a run that died are marked, each once, if they are still due and nobody has tried them since."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.execution.plan.objects import ErrorSource, StepFailureData
from dagster_shared.error import SerializableErrorInfo
from pyspark.sql import SparkSession

from keptlog.errors import StorageUnavailable
from keptlog.log.segment import Log
from keptlog.table.changes.mark import Marks
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.instance import fail
from tests.orchestration.shipped import clean_logs, dirty_ratio_sensor, failed_run_sensor


@pytest.fixture
def world(world: World) -> World:
    """Its clock is Dagster's, which says when runs began and ended."""
    world.now_ms = time.time_ns() // 1_000_000
    return world


def died(world: World, request: dg.RunRequest, tags: dict[str, str]) -> str:
    """What the failed run sensor says once a run has died."""
    kill(world, request, tags)
    return world.skips(failed_run_sensor)


def kill(world: World, request: dg.RunRequest, tags: dict[str, str]) -> None:
    run = world.instance.create_run_for_job(
        clean_logs, run_config=request.run_config, tags=tags, status=dg.DagsterRunStatus.STARTED
    )
    fail(world.instance, run, "out of memory")


def test_a_run_that_died_leaves_its_logs_uncleanable_for_a_while_if_they_are_still_due(world: World) -> None:
    world.topic("users", 2)
    for partition in range(2):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    (request,) = world.requests(dirty_ratio_sensor)
    world.store.alter_topic("users", {"min.compaction.lag.ms": "1"})

    assert "users-0, users-1" in died(world, request, {})

    marks = [log.uncleanable for log in world.store.logs("users")]
    assert all(mark and "died: out of memory" in mark.reason for mark in marks)
    assert "users-0 is uncleanable since" in world.skips(dirty_ratio_sensor)
    assert "none, nothing is due" in died(world, request, {})


def test_of_a_run_that_was_ended_the_mark_says_why_and_not_that_a_step_was_interrupted(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    run = world.instance.create_run_for_job(
        clean_logs, run_config=request.run_config, status=dg.DagsterRunStatus.STARTED
    )
    error = SerializableErrorInfo("DagsterExecutionInterruptedError", [], "DagsterExecutionInterruptedError")
    interrupted = StepFailureData(error, None, ErrorSource.INTERRUPT)  # type: ignore[no-untyped-call]
    told = DagsterEvent(
        DagsterEventType.STEP_FAILURE.value, run.job_name, step_key="compact", event_specific_data=interrupted
    )
    world.instance.report_dagster_event(told, run.run_id)
    fail(world.instance, run, "Exceeded maximum runtime of 60 seconds.")

    assert "marked as uncleanable: users-0" in world.skips(failed_run_sensor)
    mark = world.store.logs("users")[0].uncleanable
    assert mark
    assert mark.reason == f"run {run.run_id} died: Exceeded maximum runtime of 60 seconds."


@pytest.fixture
def two_due(world: World) -> World:
    """Two topics, each with a log that is due."""
    for topic in ("a", "b"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    return world


def test_a_topic_that_takes_no_mark_is_named_keeps_none_from_the_others_and_gets_its_own_at_a_later_tick(
    two_due: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (request,) = two_due.requests(dirty_ratio_sensor)
    really = LogStore.mark_uncleanable

    def a_is_away(store: LogStore, topic: str, *rest: Any) -> Marks:
        if topic == "a":
            raise StorageUnavailable("its bucket is gone")
        return really(store, topic, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "mark_uncleanable", a_is_away)
        said = died(two_due, request, {})
        assert "marked as uncleanable: b-0" in said
        assert " a-0" in said
        assert "its bucket is gone" in said
        assert attempts(two_due) == {"a": 0, "b": 1}
        # Its time has come, and it is due again: not marked a second time for the same run.
        two_due.now_ms += HOUR_MS
        assert " b-0" not in two_due.skips(failed_run_sensor)

    assert "marked as uncleanable: a-0" in two_due.skips(failed_run_sensor)
    assert attempts(two_due) == {"a": 1, "b": 1}
    assert "no run has died" in two_due.skips(failed_run_sensor)


def test_logs_of_a_run_that_died_while_the_catalog_was_away_are_marked_once_it_is_back(
    two_due: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (request,) = two_due.requests(dirty_ratio_sensor)

    def away(*_: object) -> None:
        raise StorageUnavailable("the catalog is away")

    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "topics", away)
        with pytest.raises(StorageUnavailable, match="the catalog is away"):
            died(two_due, request, {})

    assert "a-0, b-0" in two_due.skips(failed_run_sensor)
    assert attempts(two_due) == {"a": 1, "b": 1}


def test_where_several_topics_take_no_mark_the_others_wait_for_the_next_tick_and_come_first_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes half a minute to be given up, and a tick has one."""
    for topic in "abcd":
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    tried: list[str] = []

    def away(_: LogStore, topic: str, *__: object) -> None:
        tried.append(topic)
        raise StorageUnavailable("no commit is taken")

    monkeypatch.setattr(LogStore, "mark_uncleanable", away)
    died(world, request, {})
    assert tried == ["a", "b"]
    world.tick(failed_run_sensor)
    assert tried == ["a", "b", "c", "d"]


def test_a_topic_that_does_not_answer_is_read_once_a_tick_however_many_runs_have_named_it(
    two_due: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (request,) = two_due.requests(dirty_ratio_sensor)
    for _ in range(3):
        kill(two_due, request, {})
    read: list[str] = []
    really = LogStore.logs

    def a_is_away(store: LogStore, topic: str) -> list[Log]:
        read.append(topic)
        if topic == "a":
            raise StorageUnavailable("its bucket is gone")
        return really(store, topic)

    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "logs", a_is_away)
        two_due.tick(failed_run_sensor)

    assert read.count("a") == 1
    assert attempts(two_due) == {"a": 0, "b": 1}
    assert "marked as uncleanable: a-0" in two_due.skips(failed_run_sensor)


def attempts(world: World) -> dict[str, int]:
    """How often the log of each topic was marked."""
    marks = {topic: world.store.logs(topic)[0].uncleanable for topic in world.store.topics()}
    return {topic: mark.attempts if mark else 0 for topic, mark in marks.items()}


def test_a_run_that_died_in_a_step_marks_its_logs_with_what_that_failed_of(
    two_due: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    (request,) = two_due.requests(dirty_ratio_sensor)
    with monkeypatch.context() as patch:
        patch.setattr("keptlog.passes.clean.Cleaner.stage", bug)
        result = two_due.launch(request)

    said = two_due.skips(failed_run_sensor)

    assert f"run {result.run_id}: marked as uncleanable: a-0, b-0" in said
    marks = [log.uncleanable for topic in "ab" for log in two_due.store.logs(topic)]
    assert all("ZeroDivisionError: division by zero" in str(mark) for mark in marks)


def test_a_run_that_named_its_failures_or_is_tried_again_marks_nothing(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    assert "it has named what failed itself, and has marked what is at fault" in died(
        world, request, {"keptlog/failed": "users-0"}
    )
    outage = '{"at_ms": 0, "reason": "log.cleaner.threads=many is no number"}'
    stopped = died(world, request, {"keptlog/outage": outage})
    assert "log.cleaner.threads=many is no number: that is no log's fault, nothing is marked for it" in stopped
    everything = dg.RunRequest(run_config={})
    assert "it named no logs, but was to clean all that were due: nothing is marked" in died(world, everything, {})
    assert "is tried again" in died(world, request, {"dagster/will_retry": "true"})
    assert world.store.logs("users")[0].uncleanable is None


def test_a_log_that_was_cleaned_since_is_not_marked_for_a_run_that_died_before(
    two_due: World, spark: SparkSession
) -> None:
    (request,) = two_due.requests(dirty_ratio_sensor)
    kill(two_due, request, {})
    two_due.now_ms = time.time_ns() // 1_000_000
    assert two_due.clean("a").success
    two_due.now_ms += 2 * HOUR_MS
    two_due.append("a", ("a", "3"), ("a", "4"))
    assert any("a-0" in str(each.run_config) for each in two_due.requests(dirty_ratio_sensor)), "it is due again"

    assert "marked as uncleanable: b-0" in two_due.skips(failed_run_sensor)

    assert attempts(two_due) == {"a": 0, "b": 1}


def test_a_log_whose_clean_failed_since_keeps_the_mark_of_that(two_due: World) -> None:
    (request,) = two_due.requests(dirty_ratio_sensor)
    kill(two_due, request, {})
    two_due.now_ms = time.time_ns() // 1_000_000
    two_due.break_segment("a")
    assert not two_due.clean("a").success
    two_due.now_ms += HOUR_MS

    assert "marked as uncleanable: b-0" in two_due.skips(failed_run_sensor)

    assert attempts(two_due) == {"a": 1, "b": 1}


def test_a_run_that_died_more_than_a_day_ago_marks_nothing_and_is_not_looked_at_again(two_due: World) -> None:
    (request,) = two_due.requests(dirty_ratio_sensor)
    kill(two_due, request, {})
    two_due.now_ms += DAY_MS + HOUR_MS

    assert "it died more than a day ago" in two_due.skips(failed_run_sensor)

    assert attempts(two_due) == {"a": 0, "b": 0}
    assert "no run has died" in two_due.skips(failed_run_sensor)


@pytest.mark.parametrize("partition", ["-0", ""])
def test_a_tick_waits_for_few_topics_that_take_no_mark_however_many_runs_have_died_and_for_others_at_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, partition: str
) -> None:
    for topic in "abcd":
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    tried: list[str] = []
    really = LogStore.mark_uncleanable

    def only_d_is_there(store: LogStore, topic: str, *rest: Any) -> Marks:
        tried.append(topic)
        if topic != "d":
            raise StorageUnavailable("no commit is taken")
        return really(store, topic, *rest)

    monkeypatch.setattr(LogStore, "mark_uncleanable", only_d_is_there)
    for topic in "aabbcd":
        config = {"ops": {"plan": {"config": {"logs": [f"{topic}{partition}"]}}}}
        kill(world, dg.RunRequest(run_config=config), {})

    world.tick(failed_run_sensor)
    assert tried == ["a", "b"]
    world.tick(failed_run_sensor)
    assert tried == ["a", "b", "c", "d", "a"]
    assert attempts(world) == {"a": 0, "b": 0, "c": 0, "d": 1}
