"""What keptlog costs around the engine, as text: each figure beside its goal, if it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.machine import as_facts
from benchmarks.markdown import met_or_not, table_row

WALL_GOALS_S = {
    ("tick", "restarted"): 15.0,
    ("tick", "nothing changed"): 0.2,
    ("tick", "10 changed"): 1.0,
    ("swap", "1000 live files"): 0.2,
    ("swap", "10000 live files"): 0.5,
    ("status", "warm"): 1.0,
}
COUNT_GOALS = {("tick", "cursor_bytes"): 10_000}


def around_as_text(result: Mapping[str, Any]) -> str:
    """The section of ``RESULTS.md``; from what ``around`` measured."""
    lines = [
        f"## Around the engine: {result['topics']:,} topics x {result['partitions']} partitions",
        "",
        f"{result['rounds']} rounds; " + ", ".join(as_facts(result["on"])),
        "",
        "| | wall s | CPU s | goal, wall s | |",
        "|---|---:|---:|---:|---|",
    ]
    counts = []
    for case, figures in result["cases"].items():
        for name, figure in figures.items():
            if isinstance(figure, Mapping):
                cells = [f"{case}: {name}", f"{figure['wall_s']:.3f}", f"{figure['cpu_s']:.3f}"]
                lines.append(table_row([*cells, *_judged(figure["wall_s"], WALL_GOALS_S.get((case, name)))]))
            else:
                goal = COUNT_GOALS.get((case, name))
                counts.append(table_row([f"{case}: {name.replace('_', ' ')}", f"{figure:,}", *_judged(figure, goal)]))
    return "\n".join([*lines, "", "| | | goal | |", "|---|---:|---:|---|", *counts]) + "\n"


def _judged(figure: float, goal: float | None) -> tuple[str, str]:
    if goal is None:
        return "", ""
    return f"<= {goal:,g}", met_or_not(is_met=figure <= goal)
