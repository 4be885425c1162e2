"""An error that ends a clean in legs says how many of them are live."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from tests.passes.test_in_legs import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    return scene.append(("a", "1"), ("b", "1")).append(("a", "2"), ("c", "1")).append(("a", "3"))


@pytest.mark.parametrize(("leg", "told"), [(2, "1 leg of its clean is live"), (3, "2 legs of its clean are live")])
def test_an_error_after_the_first_legs_says_that_they_are_live(scene: Scene, leg: int, told: str) -> None:
    def fail() -> None:
        raise LogCorrupt("it broke off")

    scene.between = {leg: fail}
    [error] = scene.clean().failed.values()
    assert (str(error), type(error)) == (f"{told}, and the next one goes on from there: it broke off", LogCorrupt)
    assert error.live_legs == leg - 1


def test_an_error_before_the_first_leg_is_live_speaks_of_none(scene: Scene) -> None:
    def fail() -> None:
        raise LogCorrupt("it broke off")

    scene.between = {1: fail}
    [error] = scene.clean().failed.values()
    assert (str(error), error.live_legs) == ("it broke off", 0)
