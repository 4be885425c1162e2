"""The part of the simulator that every run of the tests plays: some fixed histories, and that they can be trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.profiles import examples
from tests.sim.faults import KNOWN, Dice, Fault
from tests.sim.planted import PLANTED, hunt
from tests.sim.run import main, play, told

HISTORIES = 30
SOON_FOUND = (
    "checkpoint too early",
    "tombstone a pass too early",
    "journal skipped",
    "compare-and-swap dropped",
    "freshness not checked",
    "watermarks unreferenced",
    "drafts deleted unsealed",
)
"""Bugs that a few histories find; all of them are ``python -m tests.sim.planted``."""


def test_no_history_breaks_an_oracle_and_everything_goes_wrong_in_them() -> None:
    fired: Counter[Fault] = Counter()
    for seed in range(examples(HISTORIES)):
        outcome = play(seed)
        assert outcome.broken is None, told(outcome)
        fired += outcome.fired
    possible = {fault for seed in range(50) for fault in Dice.drawn_for(seed, KNOWN).enabled}
    assert possible - fired.keys() <= {Fault.POWER_LOSS} or examples(HISTORIES) < HISTORIES


def test_a_seed_gives_the_same_trace_to_the_byte_in_every_process() -> None:
    script = "from tests.sim.run import play; print([play(seed).digest for seed in (3, 18, 177)])"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    one, other = (process.communicate()[0] for process in processes)
    assert one == other
    assert one == f"{[play(seed).digest for seed in (3, 18, 177)]}\n"


@pytest.mark.parametrize("name", SOON_FOUND)
def test_a_planted_bug_is_found(name: str) -> None:
    found = hunt(name, most=40)
    assert found.seed is not None, f"{name}: not found in {found.histories} histories"


def test_a_history_that_breaks_is_told_with_its_last_calls_and_how_it_is_played_again() -> None:
    seed = hunt("compare-and-swap dropped", most=40).seed
    assert seed is not None
    outcome = play(seed, planted=PLANTED["compare-and-swap dropped"])
    lines = told(outcome).splitlines()
    assert lines[-1].endswith(f"again: make sim SEED={seed} N=1")
    assert lines[-2] == f"seed {seed} breaks: {outcome.broken}"
    assert len(lines) > 20


def test_the_command_plays_histories_and_counts_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--histories", "2", "--seed", "5", "--jobs", "1"]) == 0
    assert "2 histories from seed 5 on" in capsys.readouterr().out
