"""Two code servers on one PostgreSQL: each code location cleans its own logs, and only those."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from tests.shared_dagster.conftest import HOUR_MS, LOCATIONS, SharedDagster, append, runs_of

SENSOR = "dirty_ratio_sensor"


@pytest.mark.parametrize("location", LOCATIONS)
def test_the_sensors_of_each_location_have_its_own_log_cleaned(cleaned: SharedDagster, location: str) -> None:
    with cleaned.opened(location) as home:
        assert [(record.offset, record.value) for _, record in home.read("users")] == [(1, b"1"), (2, b"2")]
    with cleaned.instance() as instance:
        run = runs_of(instance, location, "clean_logs")[-1]
        assert run.tags["keptlog/topic_partitions"] == "users-0"


def test_each_run_has_a_process_of_its_own(cleaned: SharedDagster) -> None:
    with cleaned.instance() as instance:
        pids = [pids_of(instance, runs_of(instance, location, "clean_logs")[-1]) for location in LOCATIONS]

    assert [len(each) for each in pids] == [1, 1]
    assert not pids[0] & pids[1]
    assert not {process.pid for process in cleaned.processes.values()} & (pids[0] | pids[1])


def pids_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> set[int]:
    """The processes in which a run executed its steps."""
    messages = [entry.message for entry in instance.all_logs(run.run_id)]
    found = [re.search(r"Executing steps in process \(pid: (\d+)\)", message) for message in messages]
    return {int(each[1]) for each in found if each}


def test_each_home_has_a_pool_of_its_own_size(cleaned: SharedDagster) -> None:
    with cleaned.instance() as instance:
        sizes = {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits()}

    assert (sizes["cleaner_lake"], sizes["cleaner_disk"]) == (1, 2)


def test_the_cursors_of_two_sensors_of_one_name_are_two(cleaned: SharedDagster) -> None:
    with cleaned.instance() as instance:
        states = [each for each in instance.all_instigator_state() if each.name == "dirty_ratio_sensor"]
        cursors = {
            each.origin.repository_origin.code_location_origin.location_name: getattr(
                each.instigator_data, "cursor", None
            )
            for each in states
        }

    assert set(cursors) == set(LOCATIONS)
    assert all(cursors.values())
    assert cursors["lake"] != cursors["disk"]


def test_no_tick_has_failed_and_no_run_was_asked_for_twice(cleaned: SharedDagster) -> None:
    with cleaned.instance() as instance:
        for state in instance.all_instigator_state():
            ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id)
            assert not [tick.error for tick in ticks if tick.error]
        assert [len(runs_of(instance, location, "clean_logs")) for location in LOCATIONS] == [1, 1]


@pytest.fixture
def both_due(cleaned: SharedDagster) -> Iterator[SharedDagster]:
    """A topic that is due in both homes, and no daemon: a tick of its own would start a run."""
    cleaned.kill("daemon")
    for location in LOCATIONS:
        with cleaned.opened(location) as home:
            home.create_topic("orders", 1, {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)})
            append(home, ("a", "1"), ("a", "2"), topic="orders")
    yield cleaned
    for location in LOCATIONS:
        with cleaned.opened(location) as home:
            home.delete_topic("orders")
    cleaned.start_daemon()


def test_a_clean_that_is_under_way_in_one_location_keeps_nothing_waiting_in_the_other(both_due: SharedDagster) -> None:
    with both_due.instance() as instance:
        tags = {".dagster/repository": "__repository__@lake"}
        run = create_run_for_test(instance, job_name="clean_logs", status=dg.DagsterRunStatus.NOT_STARTED, tags=tags)
        try:
            assert (asked(both_due, "lake"), asked(both_due, "disk")) == ("orders-0 is being cleaned", "orders-0")
        finally:
            instance.delete_run(run.run_id)

        assert asked(both_due, "lake") == "orders-0"


def asked(shared: SharedDagster, location: str) -> str:
    """The topic-partitions that a tick in the code server asks a run for, or the first reason why it asks for none."""
    text = """mutation ($sensor: SensorSelector!) {sensorDryRun(selectorData: $sensor, cursor: null) {
        ... on DryRunInstigationTick {evaluationResult {
            skipReason error {message} runRequests {tags {key value}}}}
        ... on PythonError {message}}}"""
    told = shared.query(text, sensor=selector(location))["sensorDryRun"]
    assert "evaluationResult" in told, told
    result: dict[str, Any] = told["evaluationResult"]
    assert not result["error"], result["error"]
    requests = [{tag["key"]: tag["value"] for tag in each["tags"]} for each in result["runRequests"] or ()]
    return str(requests[0]["keptlog/topic_partitions"] if requests else result["skipReason"].partition(";")[0])


def selector(location: str) -> dict[str, str]:
    return {"repositoryLocationName": location, "repositoryName": "__repository__", "sensorName": SENSOR}
