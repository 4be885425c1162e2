"""In Dagster's queue, too, what is late goes before what is only dirty: a deadline does not starve behind it."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.storage.tags import PRIORITY_TAG

from keptlog.dagster.assets.siblings import TAKEN_BY_TAG
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.shipped import clean_logs, dirty_ratio_sensor, max_compaction_lag_sensor
from tests.orchestration.test_one_at_a_time import asked
from tests.orchestration.test_siblings import HERE


@pytest.fixture
def home(world: World) -> World:
    """Two dirty logs, one of which will be late in an hour."""
    world.topic("dirty")
    world.topic("users", max_compaction_lag_ms=str(DAY_MS + HOUR_MS))
    for topic in ("dirty", "users"):
        world.append(topic, ("a", "1"), ("a", "2"))
    return world


def queued(world: World, config: dict[str, object], **tags: str) -> str:
    """A run that waits for a place; gives its id."""
    run = world.instance.create_run_for_job(
        clean_logs, run_config=config, tags=tags, status=dg.DagsterRunStatus.QUEUED, remote_job_origin=HERE
    )
    return run.run_id


def cleaning(*logs: str) -> dict[str, object]:
    return {"ops": {"plan": {"config": {"logs": list(logs)}}}}


def priority(world: World, run_id: str) -> str | None:
    run = world.instance.get_run_by_id(run_id)
    assert run
    return run.tags.get(PRIORITY_TAG)


def test_a_run_that_cleans_what_is_late_leaves_the_queue_before_dirtier_ones_and_after_erasures(home: World) -> None:
    (dirty,) = home.requests(dirty_ratio_sensor)
    home.now_ms += 2 * HOUR_MS
    (late,) = home.requests(max_compaction_lag_sensor)

    assert PRIORITY_TAG not in dirty.tags
    assert 0 < int(late.tags[PRIORITY_TAG]) < 10


def test_a_run_that_waits_in_the_queue_goes_before_others_once_a_log_of_it_is_late(home: World) -> None:
    other, own = queued(home, cleaning("dirty-0")), queued(home, cleaning("dirty-0", "users-0"))
    home.skips(max_compaction_lag_sensor)
    assert priority(home, own) is None
    home.now_ms += 2 * HOUR_MS

    assert "users-0 waits for its clean, whose run is queued" in home.skips(max_compaction_lag_sensor)

    assert (priority(home, other), priority(home, own)) == (None, "5")


def test_of_several_runs_that_would_clean_it_the_first_in_the_queue_alone_goes_before_others(home: World) -> None:
    first, second = queued(home, cleaning("users")), queued(home, {})
    home.now_ms += 2 * HOUR_MS

    home.skips(max_compaction_lag_sensor)
    home.skips(max_compaction_lag_sensor)

    assert (priority(home, first), priority(home, second)) == ("5", None)


@pytest.mark.parametrize(
    ("taker", "then"), [(dg.DagsterRunStatus.STARTED, None), (dg.DagsterRunStatus.FAILURE, "5")], ids=["lives", "died"]
)
def test_a_run_that_another_cleans_for_goes_first_only_if_that_one_has_not_done_it(
    home: World, taker: dg.DagsterRunStatus, then: str | None
) -> None:
    config = cleaning("dirty-0")
    first = home.instance.create_run_for_job(clean_logs, run_config=config, status=taker, remote_job_origin=HERE)
    run_id = queued(home, cleaning("users-0"), **{TAKEN_BY_TAG: first.run_id})
    home.now_ms += 2 * HOUR_MS

    home.skips(max_compaction_lag_sensor)

    assert priority(home, run_id) == then


def test_late_cleans_do_not_keep_the_purges_of_the_schedule_waiting(home: World) -> None:
    home.now_ms += 2 * HOUR_MS
    (late,) = home.requests(max_compaction_lag_sensor)
    requests = asked(home)

    assert isinstance(requests, list)
    assert requests[0].tags[PRIORITY_TAG] == late.tags[PRIORITY_TAG]


@pytest.mark.parametrize(("given", "then"), [("10", "10"), ("-3", "5"), ("soon", "5")])
def test_a_priority_that_somebody_has_given_is_raised_and_never_lowered(home: World, given: str, then: str) -> None:
    run_id = queued(home, cleaning("users-0"), **{PRIORITY_TAG: given})
    home.now_ms += 2 * HOUR_MS

    home.skips(max_compaction_lag_sensor)

    assert priority(home, run_id) == then
