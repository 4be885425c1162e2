"""Two homes in one Dagster that have no key_prefix share the page of erasures, and don't answer each other for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import ask, topic_with_the_key
from tests.orchestration.instance import fresh_instance
from tests.orchestration.test_shown_deadlines import shown, ticks


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[World, World]]:
    """The first has an erasure that is overdue."""
    with fresh_instance() as instance:
        first, other = World(tmp_path / "first", instance), World(tmp_path / "other", instance)
        topic_with_the_key(first)
        ask(first, by_ms=HOUR_MS)
        first.now_ms += 2 * HOUR_MS
        other.now_ms = first.now_ms
        yield first, other


def test_a_home_without_an_erasure_says_nothing_over_the_overdue_one_of_another(homes: tuple[World, World]) -> None:
    first, other = homes
    other.topic("orders")
    told = [(ticks(first, 1), ticks(other, 1), shown(first)) for _ in range(10)]
    assert told == [(1, 0, "FAILED"), *[(0, 0, "FAILED")] * 9]


def test_each_tells_what_is_new_of_its_own_and_then_is_quiet(homes: tuple[World, World]) -> None:
    """They told at each tick, in turn, and the check was red and green half of the time each."""
    first, other = homes
    topic_with_the_key(other)
    ask(other, by_ms=90 * DAY_MS)
    told = [(ticks(first, 1), ticks(other, 1)) for _ in range(10)]
    assert told == [(1, 1), *[(0, 0)] * 9]
    ask(first, by_ms=HOUR_MS, request_id="r2")
    assert (ticks(first, 1), ticks(other, 1), ticks(first, 3)) == (1, 0, 0)
