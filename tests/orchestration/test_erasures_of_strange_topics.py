"""An erasure of which nobody can tell what it needs is overdue all the same, and costs only its topic."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from keptlog.dagster.orchestration.erasure_needs import _needs_of
from keptlog.log.retention import retention_of
from keptlog.log.sections import expirable
from keptlog.log.segment import Log
from keptlog.passes.erasures.erase import Eraser
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, asked_for
from tests.orchestration.shipped import erasure_sensor
from tests.orchestration.test_shown_deadlines import said, shown


@pytest.fixture
def two(world: World) -> World:
    """Two topics with an erasure each, of which Dagster was told, and whose deadline is over since."""
    world.now_ms = time.time_ns() // 1_000_000
    for topic in ("odd", "users"):
        world.topic(topic, 1, **SETTINGS)
        world.append(topic, (KEY, "1"), ("other", "1"), age_ms=0)
    ask(world, "odd", "users", by_ms=HOUR_MS)
    world.tick(erasure_sensor)
    assert shown(world) == "SUCCEEDED"
    world.now_ms += 2 * HOUR_MS
    return world


def strange(really: Callable[..., Any]) -> Callable[..., Any]:
    """The same, which takes a log or a topic first, and stops at those of odd."""

    def tell(told: Log | str, *rest: Any, **more: Any) -> Any:
        if (told.topic_partition.topic if isinstance(told, Log) else told) == "odd":
            raise OverflowError("int too large")
        return really(told, *rest, **more)

    return tell


STOPPED = {
    "what brings it on": ("keptlog.log.erasures.prospect.retention_of", retention_of),
    "when it is asked for": ("keptlog.dagster.orchestration.erasure_needs._needs_of", _needs_of),
    "what a clean would do": ("keptlog.dagster.orchestration.erasure_needs.expirable", expirable),
}


@pytest.mark.parametrize(("name", "really"), STOPPED.values(), ids=STOPPED)
def test_the_alarm_is_given_and_the_others_are_asked_for(
    two: World, monkeypatch: pytest.MonkeyPatch, name: str, really: Callable[..., Any]
) -> None:
    """Each tick ended in a traceback: no erasure of any topic was late, or asked for."""
    monkeypatch.setattr(name, strange(really))
    (request,) = two.requests(erasure_sensor)
    assert "users-0" in asked_for(request)
    assert shown(two) == "FAILED"
    assert "odd: 1 erasure overdue, the first since " in said(two)
    assert "users: 1 erasure overdue, the first since " in said(two)
    assert "not looked at: odd: the look at it stopped at OverflowError: int too large; report it" in said(two)


def test_what_a_topic_needed_before_it_changed_is_not_asked_for_where_nobody_can_tell_what_it_needs_now(
    two: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for what it had needed, tick after tick, and the reason was told to nobody."""
    (request,) = two.requests(erasure_sensor)
    assert asked_for(request) == ["odd-0", "users-0"]
    monkeypatch.setattr(STOPPED["when it is asked for"][0], strange(_needs_of))
    two.append("odd", ("k", "2"), age_ms=0)
    two.now_ms += 1_000
    (request,) = two.requests(erasure_sensor)
    assert asked_for(request) == ["users-0"]
    assert "not looked at: odd: the look at it stopped at OverflowError: int too large; report it" in said(two)


def test_a_look_that_stops_in_an_unforeseen_way_costs_only_its_topic(
    two: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Eraser.advance

    def advance(eraser: Eraser, topics: list[str], **more: Any) -> Any:
        if "odd" in topics:
            raise OverflowError("int too large")
        return really(eraser, topics, **more)

    monkeypatch.setattr(Eraser, "advance", advance)
    assert two.requests(erasure_sensor)
    assert "not looked at: odd: the look at it stopped at OverflowError" in said(two)
