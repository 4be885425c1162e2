"""Two homes in one Dagster that have no key_prefix share the page of erasures, and don't answer each other for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.passes.erasures.erase import Eraser
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import ask, topic_with_the_key
from tests.orchestration.instance import fresh_instance
from tests.orchestration.test_erasures_under_another_name import Rename, overdue_before_ids, rename, without_an_id
from tests.orchestration.test_shown_deadlines import (
    OUTAGE,
    by_hand,
    fails_at,
    noted_looks,
    said,
    shown,
    ticks,
    told_that_a_clean_is_needed,
    with_many,
)

__all__ = ["rename"]  # a fixture


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


def test_a_topic_that_a_run_could_not_look_at_is_looked_at_though_the_other_home_has_told_since(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its warning went with the other home's word, and nobody looked any more."""
    many = with_many(world)
    told_that_a_clean_is_needed(many)
    other = World(tmp_path / "other", many.instance, now_ms=many.now_ms)
    topic_with_the_key(other)
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", fails_at("c"))
        assert by_hand(many)
    ask(other, by_ms=90 * DAY_MS)
    assert (ticks(other, 1), said(other)) == (1, "")
    with monkeypatch.context() as outage:
        looked = noted_looks(outage, fails="c")
        told = [(ticks(many, 1), ticks(other, 1)) for _ in range(10)]
    assert (told, looked, said(many)) == ([(1, 0), *[(0, 0)] * 9], ["c"], f"not looked at: c: {OUTAGE}")

    ask(other, by_ms=90 * DAY_MS, request_id="r2")
    ticks(other, 1)
    told = [(ticks(many, 1, LOOK_AGAIN_MS), ticks(other, 1)) for _ in range(10)]

    assert (told, shown(many), said(many)) == ([(1, 0), *[(0, 0)] * 9], "SUCCEEDED", "")


@pytest.mark.parametrize("has_id", [False, True])
def test_a_home_at_the_same_path_on_another_machine_leaves_the_overdue_one_of_this_home(
    world: World, rename: Rename, *, has_id: bool
) -> None:
    """It took all that was told by the path for its own word, and the alarm was green for good."""
    rename(world, "here")
    topic_with_the_key(world)
    ask(world, by_ms=HOUR_MS)
    if not has_id:
        without_an_id(world)
    world.now_ms += 2 * HOUR_MS
    assert (ticks(world, 1), shown(world)) == (1, "FAILED")
    cursors, home = dict(world.cursors), world.path.rename(world.path.with_name("aside"))

    rename(world, "there")
    world.topic("other")
    assert (ticks(world, 3), shown(world)) == (0, "FAILED")

    world.path.rename(world.path.with_name("of the other"))
    home.rename(world.path)
    rename(world, "here")
    world.cursors.update(cursors)
    assert (ticks(world, 3), shown(world)) == (0, "FAILED")


def test_so_it_does_where_both_homes_are_older_than_ids_of_homes(world: World, rename: Rename) -> None:
    rename(world, "here")
    overdue_before_ids(world)
    assert (ticks(world, 1), shown(world)) == (1, "FAILED")
    world.path.rename(world.path.with_name("aside"))

    rename(world, "there")
    topic_with_the_key(world)
    without_an_id(world)
    told = ticks(world, 3), shown(world)
    world.topic("other")

    assert [told, (ticks(world, 3), shown(world))] == [(0, "FAILED")] * 2
