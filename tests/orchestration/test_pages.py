"""What an asset's page says without a click: the sensors that look after it, what its logs wait for, and until when."""

from __future__ import annotations

import dagster as dg
from dagster._core.remote_representation.external_data import SensorSnap

from tests.orchestration.conftest import World
from tests.orchestration.shipped import CLEAN_SENSORS


def test_a_clean_section_lists_the_sensors_that_clean_it_and_they_ask_for_runs_of_the_job(world: World) -> None:
    """Dagster's webserver goes by what is pinned here."""
    world.topic("users")
    world.topic("orders")
    repository = world.defs.get_repository_def()
    graph = repository.asset_graph

    for sensor in CLEAN_SENSORS:
        snap = SensorSnap.from_def(repository.get_sensor_def(sensor.name), repository)
        assert list(snap.target_dict) == ["clean_logs"]
        assert snap.asset_selection
        assert snap.asset_selection.resolve(graph) == {
            dg.AssetKey(["users", "clean"]),
            dg.AssetKey(["orders", "clean"]),
        }
    health = SensorSnap.from_def(repository.get_sensor_def("health_sensor"), repository)
    assert health.target_dict == {}
    assert health.asset_selection
    assert health.asset_selection.resolve(graph) == {dg.AssetKey(["keptlog", "health"])}


def test_the_sensors_of_a_home_without_topics_are_on_no_page(world: World) -> None:
    repository = world.defs.get_repository_def()
    snaps = [SensorSnap.from_def(sensor, repository) for sensor in repository.sensor_defs]
    assert [snap.asset_selection for snap in snaps] == [None] * len(snaps)
