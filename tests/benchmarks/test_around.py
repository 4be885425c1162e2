"""What keptlog costs around the engine: every figure stands on the page, beside its goal."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.around import Arguments, is_full, measured
from benchmarks.around_text import around_as_text
from benchmarks.report import keep


def test_what_is_measured_stands_on_the_page(tmp_path: Path) -> None:
    result = measured(["tick", "status"], Arguments(topics=12, partitions=2, rounds=1))
    keep(result, tmp_path)
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "## Around the engine: 12 topics x 2 partitions" in page
    assert "| tick: nothing changed |" in page
    assert "| tick: cursor bytes |" in page
    assert "| status: warm |" in page
    assert result["cases"]["tick"]["cursor_bytes"] > 0


@pytest.mark.parametrize(("wall_s", "says"), [(0.2, "| <= 0.2 | met |"), (0.21, "| <= 0.2 | **not met** |")])
def test_a_figure_is_judged_by_its_goal(wall_s: float, says: str) -> None:
    figures = {"tick": {"nothing changed": {"wall_s": wall_s, "cpu_s": 0.1}, "cursor_bytes": 12_000}}
    page = around_as_text({"topics": 1_000, "partitions": 10, "rounds": 5, "on": {}, "cases": figures})
    assert f"| tick: nothing changed | {wall_s:.3f} | 0.100 {says}" in page
    assert "| tick: cursor bytes | 12,000 | <= 10,000 | **not met** |" in page


def test_only_a_full_run_is_kept() -> None:
    assert is_full([], Arguments())
    assert is_full([], Arguments(rounds=7))
    assert not is_full(["tick"], Arguments())
    assert not is_full([], Arguments(topics=10))
    assert not is_full([], Arguments(rounds=1))
