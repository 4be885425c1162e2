"""A run that is executed again has the tags of the one before: what they say of that one is not said of this one."""

from __future__ import annotations

import time

import dagster as dg
import pytest

from keptlog.dagster.assets.long_tags import as_tags, tag_text
from keptlog.dagster.assets.outage import FAILED_TAG, TOLD_BY_TAG, tell_in_tags, told_of_itself
from keptlog.dagster.orchestration.own_runs import OwnRuns
from tests.orchestration.conftest import World
from tests.orchestration.instance import fail
from tests.orchestration.shipped import clean_logs, dirty_ratio_sensor, failed_run_sensor

OUTAGE = '{"at_ms": 0, "reason": "the cluster is gone"}'


@pytest.fixture
def first(world: World) -> dg.DagsterRun:
    """A run that has died, and that the sensor has looked at."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    run = world.instance.create_run_for_job(clean_logs, run_config=request.run_config)
    fail(world.instance, run, "out of memory")
    return run


def again(world: World, first: dg.DagsterRun) -> dg.DagsterRun:
    """The same with the tags that the first has by now, as Dagster's page makes it."""
    parent = world.instance.get_run_by_id(first.run_id)
    assert parent
    return world.instance.create_run_for_job(
        clean_logs, run_config=parent.run_config, tags=parent.tags, parent_run_id=first.run_id, root_run_id=first.run_id
    )


def attempts(world: World) -> int:
    mark = world.store.logs("users")[0].uncleanable
    return mark.attempts if mark else 0


@pytest.mark.parametrize("said", [{"keptlog/failed": "users-0"}, {"keptlog/outage": OUTAGE}], ids=str)
def test_a_run_again_that_dies_marks_its_logs_whatever_was_said_of_the_one_before(
    world: World, first: dg.DagsterRun, said: dict[str, str]
) -> None:
    tell_in_tags(world.instance, first.run_id, said)
    world.tick(failed_run_sensor)
    assert attempts(world) == 0

    second = again(world, first)
    fail(world.instance, second, "out of memory")

    assert f"run {second.run_id}: marked as uncleanable: users-0" in world.skips(failed_run_sensor)
    assert attempts(world) == 1
    assert "no run has died" in world.skips(failed_run_sensor)


def test_what_is_said_of_a_run_again_itself_counts(world: World, first: dg.DagsterRun) -> None:
    tell_in_tags(world.instance, first.run_id, {"keptlog/failed": "users-0"})
    second = again(world, first)
    tell_in_tags(world.instance, second.run_id, {"keptlog/outage": OUTAGE})
    fail(world.instance, second, "out of memory")

    assert f"run {second.run_id}: it was stopped by the cluster is gone" in world.skips(failed_run_sensor)
    assert attempts(world) == 0


def test_each_thing_that_is_said_is_of_one_run(world: World, first: dg.DagsterRun) -> None:
    """Long ones are in pieces, of which the one before may have had more."""
    tell_in_tags(world.instance, first.run_id, as_tags(FAILED_TAG, "users-0," * 600))
    second = again(world, first)
    tell_in_tags(world.instance, second.run_id, {"keptlog/outage": OUTAGE})
    assert tag_text(as_it_is(world, second).tags, FAILED_TAG) is None
    tell_in_tags(world.instance, second.run_id, as_tags(FAILED_TAG, "users-0"))
    tags = as_it_is(world, second).tags
    assert (tag_text(tags, FAILED_TAG), tags["keptlog/outage"]) == ("users-0", OUTAGE)


def test_of_how_many_pieces_what_was_said_is_makes_the_tag_that_names_them_no_longer(
    world: World, first: dg.DagsterRun
) -> None:
    """PostgreSQL takes no tag of 2,704 bytes, and the names of 10,000 logs may be a thousand pieces."""
    said = as_tags(FAILED_TAG, "users-0," * 50_000)
    tell_in_tags(world.instance, first.run_id, said)
    tell_in_tags(world.instance, first.run_id, {"keptlog/outage": OUTAGE})

    (run,) = world.instance.get_runs(dg.RunsFilter(run_ids=[first.run_id]))

    assert told_of_itself(run) == {*said, "keptlog/outage"}
    assert len(run.tags[TOLD_BY_TAG]) < 200


@pytest.mark.parametrize("names", ["keptlog/failed keptlog/failed.1", "keptlog/failed*2", "keptlog/failed*99999999999"])
def test_names_of_pieces_are_read_as_an_earlier_keptlog_has_said_them_too(names: str) -> None:
    run = dg.DagsterRun("clean_logs", tags={"keptlog/failed": "a-0,", "keptlog/failed.1": "b-0"})
    assert told_of_itself(run.with_tags({**run.tags, TOLD_BY_TAG: f"{run.run_id} {names}"})) == {
        "keptlog/failed",
        "keptlog/failed.1",
    }


def as_it_is(world: World, run: dg.DagsterRun) -> dg.DagsterRun:
    """A run as the sensors see it."""
    return next(each for each in OwnRuns(world.instance).runs() if each.run_id == run.run_id)
