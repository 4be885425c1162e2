"""A topic that can't be read, broken in any way or too new, is named, and breaks none of the others."""

from __future__ import annotations

from contextlib import suppress

import dagster as dg
import pytest

from keptlog.dagster.orchestration.retention_sensor import retention_interval_seconds
from keptlog.errors import KeptlogError
from tests.broken_topics import BREAKAGES, Breakage
from tests.orchestration.conftest import World, logs_of
from tests.orchestration.shipped import (
    dirty_ratio_sensor,
    ingest_lag_sensor,
    max_compaction_lag_sensor,
    retention_sensor,
)


@pytest.fixture(params=BREAKAGES, ids=lambda breakage: breakage.id)
def broken(world: World, request: pytest.FixtureRequest) -> Breakage:
    """What is wrong with ``db.s.odd``; beside it there is ``users``, whose log is dirty."""
    breakage: Breakage = request.param
    for topic in ("users", "db.s.odd"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    breakage(world.store, "db.s.odd")
    world.reopen()
    return breakage


def test_an_asset_says_why_beside_those_of_the_others(world: World, broken: Breakage) -> None:
    defs = world.defs

    dg.Definitions.validate_loadable(defs)
    specs = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    assert set(specs) == {"users/dirty", "users/clean", "db.s.odd/unreadable", "erasures", "keptlog/health"}
    assert broken.said in (specs["db.s.odd/unreadable"].description or "")


def has_no_source(world: World) -> bool:
    """Whether that can be told of ``db.s.odd``; of what is no topic it can."""
    store = world.store
    with suppress(KeptlogError):
        if not store.load_table("db.s.odd").properties.keys() & {"log.partitions", "log.source"}:
            return True
        return store.source_of("db.s.odd").source is None
    return False


def test_sensors_request_the_others(world: World, broken: Breakage) -> None:
    for _ in range(2):
        (request,) = world.requests(dirty_ratio_sensor)
        assert logs_of(request) == ["users-0"]
    assert "db.s.odd can't be read" in world.skips(max_compaction_lag_sensor)
    assert broken.said in world.skips(max_compaction_lag_sensor)
    assert "1 log, none has a segment" in world.skips(retention_sensor(retention_interval_seconds(world.log_store)))
    expected = "no topic here has a Kafka source" if has_no_source(world) else "whether it has a broker is not known"
    assert expected in world.skips(ingest_lag_sensor)


def test_retention_fails_and_says_why(world: World, broken: Breakage) -> None:
    before = world.store.metadata_locations()
    result = world.run_job("retention", dg.RunRequest())
    assert not result.success
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert broken.said in str(failure.step_failure_data)
    assert world.store.metadata_locations() == before


def test_a_foreign_table_may_have_any_name(world: World) -> None:
    world.topic("users")
    foreign = next(each for each in BREAKAGES if each.id == "it is a foreign table")
    for name in ("Big Table/1", "ünïcode", "a.b-c_d", "users-0"):
        world.store._catalog.create_table(("keptlog", name), world.store.load_table("users").schema())
        foreign(world.store, name)

    defs = world.defs

    dg.Definitions.validate_loadable(defs)
    assert {tuple(spec.key.path) for spec in defs.resolve_all_asset_specs()} >= {
        ("users", "clean"),
        ("Big Table/1", "unreadable"),
    }
