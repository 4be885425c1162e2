"""The command: real processes, JSON on the last line, and a page that keeps the latest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.cases import all_cases
from benchmarks.reasons import REASONS
from benchmarks.report import keep
from tests.benchmarks.here import Peers

ROOT = Path(__file__).parents[2]


def test_the_last_line_is_json() -> None:
    only = ["--records", "400", "--rounds", "1", "--only", "copy,duckdb_semi_join"]
    command = [sys.executable, "-m", "benchmarks.run", "W2", *only]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    line = json.loads(outcome.stdout.splitlines()[-1])
    assert line["case"] == "W2"
    assert line["equal"]
    assert line["rounds"] == 1
    assert set(line["wall_s"]) == {"copy", "duckdb_semi_join", "duckdb"}


def test_results_keep_the_latest_of_every_case(peers: Peers, tmp_path: Path) -> None:
    result = peers.measured("W7", tmp_path).to_dict()
    keep(result | {"case": "W10"}, tmp_path)
    keep(result, tmp_path)
    keep(result | {"records": 1234}, tmp_path)
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert page.index("## W7:") < page.index("## W10:")
    assert page.count("## W7:") == 1
    assert "1,234 records" in page
    assert "| keptlog_timestamp / by offset | <= 1.2 |" in page


def test_what_bounds_a_goal_is_told_of_goals_that_there_are() -> None:
    goals = {(name, goal.text) for name, case in all_cases(2).items() for goal in case.goals}
    assert set(REASONS) <= goals


def test_below_the_goals_stands_what_bounds_those_that_are_not_met(tmp_path: Path) -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "W7.json").read_text(encoding="utf-8"))
    one, other = kept["goals"]
    keep(kept | {"goals": [one | {"met": False}, other | {"met": True}]}, tmp_path)
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert f"- **{one['text']}**: {REASONS['W7', one['text']]}" in page
    assert f"- **{other['text']}**" not in page
