"""A home that two Dagsters mount: what one keeps shown for its backfill is not lost because the other knows of none."""

from __future__ import annotations

import pytest

from keptlog.dagster.orchestration import topics_sensor
from tests.orchestration.conftest import World
from tests.orchestration.instance import fresh_instance
from tests.orchestration.test_topics_of_backfills import begin_backfill, keys_after_reload, sensor_of


def test_a_dropped_topic_is_shown_after_a_reload_until_the_backfill_of_its_own_dagster_has_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_sensor, "ask_for_reload", lambda _: None)
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(world.now_ms))
    monkeypatch.setenv("DAGSTER_HOME", "/srv/one")
    world.topic("gone", partitions=2)
    world.topic("users")
    sensor, own = sensor_of(world), world.instance
    begin_backfill(world)
    world.store.delete_topic("gone", world.now_ms)
    world.tick(sensor)
    with fresh_instance() as other:
        monkeypatch.setenv("DAGSTER_HOME", "/srv/other")
        world.instance = other
        assert world.skips(sensor_of(world)) == "the asset graph is as the home is: 1 topic"
    world.instance = own
    monkeypatch.setenv("DAGSTER_HOME", "/srv/one")

    assert "gone/clean" in keys_after_reload(world)
