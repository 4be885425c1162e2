"""A topic that can't be read, broken or written by a newer keptlog, is named, and breaks none of the others."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.dagster.orchestration.sensors import dirty_ratio_sensor, max_compaction_lag_sensor
from tests.orchestration.conftest import World, logs_of

BROKEN = ("log.partitions", "many", "set it back")
NEWER = ("keptlog.format-version", "2.0", "upgrade keptlog")


@pytest.fixture(params=[BROKEN, NEWER], ids=["broken", "newer"])
def why(world: World, request: pytest.FixtureRequest) -> str:
    """What is said of ``db.s.odd``; beside it there is ``users``, whose log is dirty."""
    name, value, said = request.param
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    world.topic("db.s.odd")
    world.store._load("db.s.odd").transaction().set_properties({name: value}).commit_transaction()
    return str(said)


def test_an_asset_says_why_beside_those_of_the_others(world: World, why: str) -> None:
    defs = world.defs

    dg.Definitions.validate_loadable(defs)
    specs = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    assert set(specs) == {"users/dirty", "users/clean", "db.s.odd/unreadable"}
    assert why in (specs["db.s.odd/unreadable"].description or "")


def test_sensors_request_the_others(world: World, why: str) -> None:
    (request,) = world.requests(dirty_ratio_sensor)
    assert logs_of(request) == ["users-0"]
    assert "db.s.odd can't be read" in world.skips(max_compaction_lag_sensor)


def test_retention_fails_and_says_why(world: World, why: str) -> None:
    before = world.store.metadata_locations()
    result = world.run_job("retention", dg.RunRequest())
    assert not result.success
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert why in str(failure.step_failure_data)
    assert world.store.metadata_locations() == before
