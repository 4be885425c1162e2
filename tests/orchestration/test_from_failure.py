""" "Re-execute from failure" of a clean commits what the run before has staged, as of now, and repeats nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from keptlog.errors import StorageUnavailable
from keptlog.log.uncleanable import Uncleanable
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World

_worlds: list[World] = []


def clean_logs() -> dg.JobDefinition:
    """As Dagster finds it once more for a run that is executed again."""
    return _worlds[-1].defs.get_job_def("clean_logs")


@pytest.fixture
def world(world: World, spark: SparkSession) -> Iterator[World]:
    """A log that is whole, and one whose clean fails."""
    for topic in ("good", "broken"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    _worlds.append(world)
    yield world
    _worlds.pop()


def again(world: World, run_id: str) -> dg.ExecuteJobResult:
    options = dg.ReexecutionOptions.from_failure(run_id, world.instance)
    job = dg.reconstructable(clean_logs)
    return dg.execute_job(job, instance=world.instance, reexecution_options=options, raise_on_error=False)


def mark(world: World) -> Uncleanable:
    found = world.store.logs("broken")[0].uncleanable
    assert found
    return found


def told(world: World, key: str) -> list[str | None]:
    """Which topic-partitions were told to be made, run by run."""
    found = world.instance.fetch_materializations(dg.AssetKey([key, "clean"]), limit=100)
    return [each.partition_key for each in found.records]


def test_a_failure_that_has_its_mark_gets_no_second_one(world: World) -> None:
    world.break_segment("broken")
    first = world.clean()
    marked = mark(world)
    world.now_ms += DAY_MS

    assert not again(world, first.run_id).success

    assert mark(world) == marked


def test_a_failure_whose_mark_was_not_taken_is_marked_as_of_now(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object) -> None:
        raise StorageUnavailable("database is locked")

    world.break_segment("broken")
    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "mark_uncleanable", locked)
        first = world.clean()
    world.now_ms += DAY_MS

    assert not again(world, first.run_id).success

    assert mark(world).attempts == 1
    assert mark(world).retry_at_ms > world.now_ms


def test_what_was_told_to_be_made_is_not_told_again(world: World) -> None:
    world.break_segment("broken")
    first = world.clean()
    assert told(world, "good") == ["good-0"]
    world.now_ms += DAY_MS

    again(world, first.run_id)

    assert told(world, "good") == ["good-0"]
    assert world.records("good") == [(1, b"a", b"2")]


@pytest.mark.parametrize("asked", ["stage", "commit"])
def test_an_outage_is_of_the_time_when_it_was_met(world: World, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    def away(*_: object) -> None:
        raise StorageUnavailable("it is away")

    monkeypatch.setattr(f"keptlog.passes.clean.Cleaner.{asked}", away)
    first = world.clean()
    world.now_ms += HOUR_MS

    second = again(world, first.run_id)

    run = world.instance.get_run_by_id(second.run_id)
    assert run
    assert json.loads(run.tags["keptlog/outage"])["at_ms"] == world.now_ms
