"""Two code servers on one PostgreSQL: each code location cleans its own logs, and only those."""

from __future__ import annotations

import pytest

from tests.shared_dagster.conftest import LOCATIONS, SharedDagster, runs_of


@pytest.mark.parametrize("location", LOCATIONS)
def test_the_sensors_of_each_location_have_its_own_log_cleaned_in_a_process_of_its_own(
    cleaned: SharedDagster, location: str
) -> None:
    with cleaned.opened(location) as home:
        assert [(record.offset, record.value) for _, record in home.read("users")] == [(1, b"1"), (2, b"2")]
    with cleaned.instance() as instance:
        run = runs_of(instance, location, "clean_logs")[-1]
        assert run.tags["keptlog/topic_partitions"] == "users-0"
        pids = {each.message for each in instance.all_logs(run.run_id) if "Executing steps in process" in each.message}
        assert len(pids) <= 1


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
