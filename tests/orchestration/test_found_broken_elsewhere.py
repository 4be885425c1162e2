"""What the home remembers as broken, and Dagster does not, is not green before somebody has read all of it."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.home import open_home
from keptlog.notify.checks import broken_checks, checks_file
from tests.orchestration.conftest import DAY_MS, World, flip_a_value
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.instance import fresh_instance
from tests.orchestration.shipped import KEYS, dirty_ratio_sensor

CLEAN = KEYS.clean("users")


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two clean logs, and a value has rotted in the second: only who reads every byte sees it."""
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users", 2)
    for partition in (0, 1):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    assert world.clean().success
    flip_a_value(world.segment_file("users", 1))
    return world


def materialize(world: World, name: str) -> bool:
    job = world.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={CLEAN})
    tags = {"dagster/partition": name}
    return job.execute_in_process(instance=world.instance, raise_on_error=False, tags=tags).success


def test_what_a_terminal_has_found_broken_is_not_materialized_as_it_is(users: World) -> None:
    open_home(users.path).verify("users")

    assert not materialize(users, "users-1")
    assert materialize(users, "users-0")

    flip_a_value(users.segment_file("users", 1))  # which mends it
    assert materialize(users, "users-1")
    assert broken_checks(users.path) == {}


def test_a_dagster_that_has_lost_all_that_it_knew_does_not_take_a_broken_log_for_whole(users: World) -> None:
    assert not users.run_job("verify", dg.RunRequest()).success
    with fresh_instance() as instance:
        users.instance = instance
        users.reopen()
        users.cursors.clear()

        users.tick(dirty_ratio_sensor)

        assert instance.get_materialized_partitions(CLEAN) == {"users-0"}
        assert not materialize(users, "users-1")


def test_where_nobody_knows_what_was_found_broken_a_clean_goes_on(users: World) -> None:
    checks_file(users.path).parent.mkdir(exist_ok=True)
    checks_file(users.path).write_text("{")

    assert materialize(users, "users-0")
