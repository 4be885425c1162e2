"""The files of ``selection/``: which logs a pass takes, in which order, and when the others are looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.language import play
from tests.scenarios.selection import SelectionScenario

FILES = sorted((Path(__file__).parent / "selection").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_plan_is_what_the_scenario_says(path: Path, rewrite_scenarios: bool) -> None:
    play(path, SelectionScenario().run, rewrite=rewrite_scenarios)
