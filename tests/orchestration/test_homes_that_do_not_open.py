"""A home that can't be opened keeps no other home waiting, and its own sensors wait for it once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from keptlog.dagster.resources import log_store
from keptlog.dagster.resources.log_store import LogStoreResource, _opened
from keptlog.errors import StorageUnavailable
from keptlog.home import Home, open_home
from tests.orchestration.conftest import World
from tests.orchestration.shipped import SENSORS

SECONDS_ENOUGH = 60
REASON = "its catalog does not answer"


class Opening:
    """Opens homes, and does not open some."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.waits_ms = 10_000
        self.away: set[Path] = set()
        self.tries: list[Path] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self._open_home = open_home

    def open_home(self, path: Path) -> Home:
        self.tries.append(path)
        if path not in self.away:
            return self._open_home(path)
        self.begun.set()
        assert self.go_on.wait(SECONDS_ENOUGH)
        self.now_ms += self.waits_ms
        raise StorageUnavailable(REASON)


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opening]:
    made = Opening()
    monkeypatch.setattr(log_store, "open_home", made.open_home)
    monkeypatch.setattr(log_store, "monotonic_ms", lambda: made.now_ms)
    yield made
    made.go_on.set()
    _opened.clear()


def home(path: Path) -> LogStoreResource:
    path.mkdir()
    return LogStoreResource(home=str(path))


def fails(here: LogStoreResource) -> None:
    with pytest.raises(StorageUnavailable, match=REASON):
        _ = here.observer


def test_a_home_that_is_waited_for_keeps_no_other_waiting(tmp_path: Path, opening: Opening) -> None:
    away, whole, new = home(tmp_path / "away"), home(tmp_path / "whole"), home(tmp_path / "new")
    observer = whole.observer
    opening.away = {away.path}
    opening.go_on.clear()
    waiting = threading.Thread(target=fails, args=[away], daemon=True)
    waiting.start()
    assert opening.begun.wait(SECONDS_ENOUGH)
    seen: list[object] = []
    others = threading.Thread(
        target=lambda: seen.extend([whole.observer, whole.remembered(list, lambda _: []), new.observer]), daemon=True
    )
    others.start()
    others.join(SECONDS_ENOUGH)
    assert len(seen) == 3
    assert seen[0] is observer
    opening.go_on.set()
    waiting.join(SECONDS_ENOUGH)


def test_sensors_that_tick_at_once_wait_for_their_home_once(tmp_path: Path, opening: Opening) -> None:
    away = home(tmp_path / "away")
    opening.away = {away.path}
    opening.go_on.clear()
    ticks = [threading.Thread(target=fails, args=[away], daemon=True) for _ in range(5)]
    for tick in ticks:
        tick.start()
    opening.go_on.set()
    for tick in ticks:
        tick.join(SECONDS_ENOUGH)
    assert opening.tries == [away.path]


def test_a_home_that_was_waited_for_is_tried_again_after_half_a_minute(tmp_path: Path, opening: Opening) -> None:
    away = home(tmp_path / "away")
    opening.away = {away.path}
    fails(away)
    opening.away = set()
    opening.now_ms += 29_999
    fails(away)
    opening.now_ms += 1
    assert away.observer
    assert len(opening.tries) == 2


def test_a_home_that_fails_at_once_is_tried_at_each_tick(tmp_path: Path, opening: Opening) -> None:
    away = home(tmp_path / "away")
    opening.away, opening.waits_ms = {away.path}, 10
    fails(away)
    opening.away = set()
    assert away.observer


def test_a_home_in_whose_place_another_was_put_is_tried_at_once(tmp_path: Path, opening: Opening) -> None:
    away = home(tmp_path / "away")
    opening.away = {away.path}
    fails(away)
    opening.away = set()
    away.path.rename(tmp_path / "old")
    away.path.mkdir()
    assert away.observer


def test_a_run_tries_at_once_what_ticks_leave_alone(tmp_path: Path, opening: Opening) -> None:
    away = home(tmp_path / "away")
    opening.away = {away.path}
    fails(away)
    with pytest.raises(StorageUnavailable, match=REASON):
        _ = away.store
    assert len(opening.tries) == 2
    opening.away = set()
    assert away.store
    assert away.observer
    assert len(opening.tries) == 3


@pytest.mark.parametrize("name", SENSORS)
def test_no_sensor_tries_again_what_was_waited_for_in_vain(world: World, opening: Opening, name: str) -> None:
    world.topic("users")
    world.reopen()
    opening.tries.clear()
    opening.away = {world.path}
    fails(world.log_store)
    with suppress(StorageUnavailable):
        world.tick(SENSORS[name])
    assert opening.tries == [world.path]
