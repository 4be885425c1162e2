"""The scenario files of this folder, on the specification and on the real log.

``KEPTLOG_REWRITE=1 pytest tests/scenarios`` writes what the specification does into the files, for a person to review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.logs import ReferenceTwin, Twin
from tests.scenarios.language import parse, unparse
from tests.scenarios.scenario import Scenario

FOLDER = Path(__file__).parent
LOG_FILES = sorted((FOLDER / "log").glob("*.txt"))


def play(path: Path, log: Twin, *, rewrite: bool = False) -> None:
    """Run a scenario file; the first command whose output differs fails."""
    blocks, rest = parse(path.read_text())
    scenario = Scenario(log)
    played = []
    for block in blocks:
        output = scenario.run(block)
        played.append(block.with_output(output))
        if not rewrite:
            assert tuple(output) == block.expected, f"{path.name}:{block.line_number} {block.command}"
    if rewrite:
        path.write_text(unparse(played, rest))


@pytest.mark.parametrize("path", LOG_FILES, ids=lambda path: path.stem)
def test_the_specification_does_what_the_scenario_says(path: Path) -> None:
    play(path, ReferenceTwin(), rewrite=bool(os.environ.get("KEPTLOG_REWRITE")))


@pytest.mark.parametrize("path", LOG_FILES, ids=lambda path: path.stem)
def test_a_scenario_file_is_written_as_it_was_read(path: Path) -> None:
    assert unparse(*parse(path.read_text())) == path.read_text()
