"""A clock that KEPTLOG_NOW_MS has fixed is told wherever it acts in Dagster: in each tick's log, and by health."""

from __future__ import annotations

import pytest

from keptlog.dagster.resources.clock import ClockResource
from keptlog.log.given.given_time import NOW_MS as VARIABLE
from tests.orchestration.conftest import DAY_MS, NOW_MS, World
from tests.orchestration.shipped import dirty_ratio_sensor, health_sensor

TOLD = "logs are judged as of 2027-01-16T08:00:00.000Z, as KEPTLOG_NOW_MS says"


@pytest.fixture
def given(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    world.topic("users")
    world.more_resources["clock"] = ClockResource()
    monkeypatch.setenv(VARIABLE, str(NOW_MS + DAY_MS))
    return world


def test_each_tick_says_so_once_in_its_log(given: World, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        given.tick(dirty_ratio_sensor)
        # Each warning of a tick is one of the logger dagster.
        assert capsys.readouterr().err.count(f"dagster - WARNING - {TOLD}") == 1


def test_health_says_so(given: World) -> None:
    assert given.skips(health_sensor).endswith(f"; {TOLD}")


def test_nothing_is_said_of_the_walls_clock(
    given: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE)
    assert "judged" not in given.skips(health_sensor)
    assert "judged" not in capsys.readouterr().err
