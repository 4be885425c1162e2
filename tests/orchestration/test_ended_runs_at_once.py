"""A tick looks at few runs that were ended, however many wait for a topic that can't be read; others wait for none."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.orchestration import clean_job, ended_runs
from keptlog.dagster.orchestration.own_runs import MARKED_TAG
from keptlog.dagster.orchestration.untold_cleans import tell_untold_cleans
from keptlog.dagster.resources.clock import ClockResource
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import clean_logs, failed_run_sensor
from tests.orchestration.test_siblings import clean_of, job_of
from tests.orchestration.test_untold_cleans import Killed

AT_ONCE = 2
"""In place of a hundred."""


@pytest.fixture
def topics(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(ended_runs, "_AT_ONCE", AT_ONCE)
    world.now_ms = time.time_ns() // 1_000_000
    # Dagster dates the run's beginning: a clock that stands still would be behind it.
    world.more_resources |= {"clock": ClockResource(), "spark": InProcessSpark(spark_config={})}
    for topic in ("broken", "users"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    return world


def break_topic(world: World) -> Callable[[], None]:
    """Let it be unreadable, and looked at; call what is returned to repair it."""
    metadata = Path(world.store.load_table("broken").metadata_location.removeprefix("file://"))
    content = metadata.read_bytes()
    metadata.write_bytes(b"this is no metadata")
    world.reopen()
    assert {*world.log_store.observer.look(time.time_ns() // 1_000_000).unreadable} == {"broken"}

    def repair() -> None:
        metadata.write_bytes(content)
        assert not world.log_store.observer.look(time.time_ns() // 1_000_000).unreadable

    return repair


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs of which a tick has asked what they were about to clean."""
    found, really = list[str](), tell_untold_cleans

    def look(tick: Tick, record: dg.RunRecord, most: int) -> list[str]:
        found.append(record.dagster_run.run_id)
        return really(tick, record, most)

    monkeypatch.setattr(ended_runs, "tell_untold_cleans", look)
    return found


def end_assets(world: World, *topics: str) -> str:
    """A run of assets that somebody has ended."""
    selected, began = frozenset(map(clean_of, topics)), dg.DagsterRunStatus.STARTED
    run = world.instance.create_run_for_job(job_of(world, *topics), status=began, asset_selection=selected)
    world.instance.report_run_canceled(run)
    return run.run_id


def end_job(world: World, log: str) -> str:
    config = {"ops": {"plan": {"config": {"logs": [log]}}}}
    run = world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.STARTED)
    world.instance.report_run_canceled(run)
    return run.run_id


def settled(world: World, runs: list[str]) -> list[str]:
    found = [run for each in runs if (run := world.instance.get_run_by_id(each))]
    return [run.run_id for run in found if MARKED_TAG in run.tags]


def clean_and_die(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """Somebody ends a run of users when its commit has landed."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(clean_job, "observe_after", killed)
        world.clean("users-0")
    run = world.instance.get_runs(limit=1)[0]
    world.instance.report_run_canceled(run)
    return run.run_id


@pytest.mark.parametrize(
    "end",
    [
        lambda world: end_assets(world, "broken"),
        lambda world: end_job(world, "broken-0"),
        lambda world: end_assets(world, "broken", "users"),
    ],
    ids=["of assets", "of the job", "of another topic too"],
)
def test_runs_that_wait_for_a_topic_keep_none_waiting_and_are_few_a_tick(
    topics: World, looked_at: list[str], monkeypatch: pytest.MonkeyPatch, end: Callable[[World], str]
) -> None:
    waiting = [end(topics) for _ in range(2 * AT_ONCE + 1)]
    later = clean_and_die(topics, monkeypatch)
    repair = break_topic(topics)

    assert f"run {later}: told now as cleaned: users-0" in topics.skips(failed_run_sensor)

    assert settled(topics, [*waiting, later]) == [later]
    assert len(looked_at) <= AT_ONCE
    looked_at.clear()
    repair()
    for tick in (1, 2, 3):
        topics.tick(failed_run_sensor)
        assert settled(topics, waiting) == looked_at == waiting[: tick * AT_ONCE]
