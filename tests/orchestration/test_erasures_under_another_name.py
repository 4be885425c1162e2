"""A code location that gets another name goes on telling its home's deadlines: what it told before is its own word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.assets.mount import MountCall
from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.errors import StorageUnavailable
from keptlog.passes.erasures.erase import Eraser
from keptlog.table.catalogs import home_location
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.erasing import ask, topic_with_the_key
from tests.orchestration.shipped import DEADLINE_CHECK
from tests.orchestration.test_shown_deadlines import (
    by_hand,
    fails_at,
    noted_looks,
    queued,
    said,
    shown,
    ticks,
    with_many,
)
from tests.table.stores import forget_id

Rename = Callable[[World, str], None]


@pytest.fixture
def rename(monkeypatch: pytest.MonkeyPatch) -> Rename:
    """Gives the code location another name: its sensors begin without a cursor, in a new process."""

    def renamed(world: World, name: str) -> None:
        monkeypatch.setattr(MountCall, "place", ("__repository__", name))
        world.cursors.clear()
        world.reopen()

    return renamed


@pytest.fixture
def overdue(world: World, rename: Rename) -> World:
    """An erasure behind its deadline, of which the code location ``old`` has told."""
    rename(world, "old")
    topic_with_the_key(world)
    ask(world, by_ms=HOUR_MS)
    world.now_ms += 2 * HOUR_MS
    assert (ticks(world, 1), shown(world)) == (1, "FAILED")
    return world


def test_an_erasure_that_is_open_no_more_is_told_by_the_new_name(overdue: World, rename: Rename) -> None:
    """The alarm never ended, with the name of a topic that was gone."""
    rename(overdue, "new")
    overdue.store.delete_topic("users", overdue.now_ms)
    overdue.topic("other")
    assert (ticks(overdue, 10), shown(overdue)) == (1, "SUCCEEDED")


def test_what_is_still_overdue_is_told_once_by_the_new_name(overdue: World, rename: Rename) -> None:
    rename(overdue, "new")
    assert (ticks(overdue, 10), shown(overdue)) == (1, "FAILED")


def test_what_a_run_could_not_look_at_is_looked_at_under_the_new_name(
    world: World, rename: Rename, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename(world, "old")
    many = with_many(world)
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", fails_at("c"))
        assert by_hand(many)
    rename(many, "new")
    looked = noted_looks(monkeypatch)

    ticks(many, 2, LOOK_AGAIN_MS)

    assert ("c" in looked, shown(many), said(many)) == (True, "SUCCEEDED", "")


def test_a_run_that_was_cancelled_under_the_old_name_does_not_hide_it_for_good(overdue: World, rename: Rename) -> None:
    overdue.instance.report_run_canceled(queued(overdue))
    assert shown(overdue) == "SKIPPED"
    rename(overdue, "new")
    overdue.store.delete_topic("users", overdue.now_ms)
    overdue.topic("other")
    assert (ticks(overdue, 3), shown(overdue)) == (1, "SUCCEEDED")


def test_what_an_earlier_keptlog_has_told_of_the_home_is_told_once_more_with_the_home(
    overdue: World, rename: Rename
) -> None:
    [newest] = overdue.instance.event_log_storage.get_asset_check_execution_history(DEADLINE_CHECK, limit=1)
    assert newest.evaluation
    metadata = {name: value for name, value in newest.evaluation.metadata.items() if name != "home"}
    overdue.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=DEADLINE_CHECK.asset_key,
            check_name=DEADLINE_CHECK.name,
            passed=False,
            metadata=metadata,
        )
    )

    assert (ticks(overdue, 10), shown(overdue)) == (1, "FAILED")

    rename(overdue, "new")
    overdue.store.delete_topic("users", overdue.now_ms)
    assert (ticks(overdue, 3), shown(overdue)) == (1, "SUCCEEDED")


def test_so_it_is_where_the_home_has_got_its_id_between(world: World, rename: Rename) -> None:
    """An older home gets it with its first change: what was told by its path before was taken for another home's."""
    rename(world, "old")
    overdue_before_ids(world)
    assert (ticks(world, 1), shown(world)) == (1, "FAILED")
    world.topic("other")

    rename(world, "new")
    world.store.delete_topic("users", world.now_ms)

    assert (ticks(world, 10), shown(world)) == (1, "SUCCEEDED")


def test_a_home_that_gets_its_id_has_nothing_to_tell_anew(world: World, rename: Rename) -> None:
    rename(world, "old")
    overdue_before_ids(world)
    assert ticks(world, 1) == 1

    world.topic("other")

    assert (ticks(world, 10), shown(world)) == (0, "FAILED")


def test_what_was_told_while_the_catalog_was_locked_is_told_by_no_home_and_not_taken_for_another_ones(
    world: World, rename: Rename
) -> None:
    rename(world, "old")
    topic_with_the_key(world)
    ask(world, by_ms=HOUR_MS)
    ticks(world, 1)
    with pytest.MonkeyPatch.context() as locked:
        locked.setattr(home_location, "which_home", fails)
        world.reopen()
        assert ticks(world, 3) == 0
    world.now_ms += 2 * HOUR_MS
    with pytest.MonkeyPatch.context() as locked:
        locked.setattr(home_location, "which_home", fails)
        world.reopen()
        assert (ticks(world, 3), shown(world), home_told(world)) == (1, "FAILED", None)

    world.store.delete_topic("users", world.now_ms)

    assert (ticks(world, 3), shown(world), home_told(world) is None) == (1, "SUCCEEDED", False)


def fails(home: Path) -> str:
    raise StorageUnavailable(f"the catalog of {home} is held by another process")


def home_told(world: World) -> object:
    [newest] = world.instance.event_log_storage.get_asset_check_execution_history(DEADLINE_CHECK, limit=1)
    assert newest.evaluation
    told = newest.evaluation.metadata.get("home")
    return told and told.value


def overdue_before_ids(world: World) -> None:
    """A home that is older than ids of homes, with an erasure that is overdue."""
    topic_with_the_key(world)
    ask(world, by_ms=HOUR_MS)
    without_an_id(world)
    world.now_ms += 2 * HOUR_MS


def without_an_id(world: World) -> None:
    """As a home that was made before homes had one."""
    forget_id(world.path)
    world.reopen()
