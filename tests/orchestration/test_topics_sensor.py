"""The sensor that keeps the asset graph as the home is: what it sees, and when it asks for a reload."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.dagster.orchestration import topics_sensor
from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.passes.observer import Observer
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, World

MINUTE_MS = 60_000


def sensor_of(world: World) -> dg.SensorDefinition:
    """That of a code location that is loaded now."""
    return world.defs.get_repository_def().get_sensor_def("topics_sensor")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Whom a reload was asked for; the real thing is tried in ``test_reloading``."""
    asked: list[object] = []
    monkeypatch.setattr(topics_sensor, "ask_for_reload", asked.append)
    return asked


def test_it_says_that_nothing_has_changed(world: World, asked: list[object]) -> None:
    world.topic("users")
    sensor = sensor_of(world)
    world.append("users", ("a", "1"))  # records are no news to the asset graph

    assert world.skips(sensor) == "the asset graph is as the home is: 1 topic"
    assert not asked


def test_new_altered_and_dropped_topics_are_told_and_reloaded(world: World, asked: list[object]) -> None:
    for name in ("users", "orders", "gone"):
        world.topic(name)
    sensor = sensor_of(world)
    for number in range(5):
        world.topic(f"new-{number}")
    world.store.alter_topic("orders", {"min.cleanable.dirty.ratio": "0.9"})
    world.store.delete_topic("gone", world.now_ms)

    told = world.skips(sensor)

    assert "new: new-0, new-1, new-2 and 2 more; dropped: gone; altered: orders; a reload is asked for" in told
    assert len(asked) == 1
    assert world.skips(sensor_of(world)) == "the asset graph is as the home is: 7 topics"
    assert len(asked) == 1


def test_a_reload_that_does_not_come_is_asked_for_again_but_not_at_each_tick(world: World, asked: list[object]) -> None:
    sensor = sensor_of(world)
    world.topic("users")
    times = []
    for _ in range(20):
        world.tick(sensor)
        times.append(len(asked))
        world.now_ms += MINUTE_MS // 2

    assert times == sorted(times)
    assert len(asked) == 4  # at once, after 1, 3 and 7 minutes
    assert "restart it" in world.skips(sensor)


def test_a_clock_that_was_ahead_holds_no_reload_back(world: World, asked: list[object]) -> None:
    sensor = sensor_of(world)
    world.topic("users")
    world.now_ms += DAY_MS
    world.tick(sensor)
    world.now_ms -= DAY_MS

    assert world.skips(sensor) == "new: users; a reload is asked for"
    assert "restart it" in world.skips(sensor)
    assert len(asked) == 2


def test_a_change_after_a_reload_that_came_does_not_wait(world: World, asked: list[object]) -> None:
    sensor = sensor_of(world)
    world.topic("later")
    assert "new: later; a reload is asked for" in world.skips(sensor)
    reloaded = sensor_of(world)
    world.topic("users")
    world.now_ms += MINUTE_MS // 2

    assert world.skips(reloaded) == "new: users; a reload is asked for"
    assert len(asked) == 2


def test_a_topic_that_an_outage_hides_is_shown_as_it_was(
    world: World, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    world.topic("orders")
    sensor = sensor_of(world)
    world.reopen()
    really = LogStore.observe

    def observe(store: LogStore, topic: str, location: str | None = None) -> object:
        if topic == "users":
            raise StorageUnavailable("the bucket does not answer")
        return really(store, topic, location)

    monkeypatch.setattr(LogStore, "observe", observe)
    assert world.skips(sensor) == "the asset graph is as the home is: 2 topics"

    assert not asked


def test_while_the_catalog_is_gone_nothing_changes(
    world: World, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    sensor = sensor_of(world)

    def look(observer: Observer, now_ms: int) -> object:
        raise StorageUnavailable("the catalog does not answer")

    monkeypatch.setattr(Observer, "look", look)

    assert world.skips(sensor) == "the asset graph stays as it is: the catalog does not answer"
    assert not asked


def test_a_topic_that_becomes_unreadable_is_told_and_so_is_its_return(
    world: World, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    sensor = sensor_of(world)
    world.reopen()
    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "observe", _damaged)
        assert "unreadable: users; a reload is asked for" in world.skips(sensor)
        reloaded = sensor_of(world)
        assert world.skips(reloaded) == "the asset graph is as the home is: 0 topics, and 1 that can't be read"

    assert "new: users" not in world.skips(reloaded)
    assert len(asked) == 2


def test_where_nobody_can_be_asked_people_are_told(world: World) -> None:
    sensor = sensor_of(world)
    world.topic("users")

    assert "new: users; this code server can't be asked to: click Reload definitions" in world.skips(sensor)


def _damaged(store: LogStore, topic: str, location: str | None = None) -> object:
    raise LogCorrupt(f"{topic} can't be read")


@pytest.mark.parametrize("cursor", ["garbage", '{"reloads": 1}', "[]", "5", '{"times": "x"}', '{"times": 1e400}'])
def test_a_cursor_that_is_none_of_its_own_is_forgotten(world: World, asked: list[object], cursor: str) -> None:
    """Dagster keeps it as long as ticks fail."""
    world.topic("users")
    world.cursors["topics_sensor"] = cursor
    assert world.skips(sensor_of(world)) == "the asset graph is as the home is: 1 topic"
    assert world.cursors["topics_sensor"] != cursor
    assert not asked
