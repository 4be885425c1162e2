"""Where a small clean's seconds go, as text: each figure beside its goal, and beside another checkout's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.machine import as_facts
from benchmarks.markdown import met_or_not, table_row

HERE, BESIDE = "here", "beside"
WALL_GOALS_S = {
    "clean, cold": 6.0,
    "clean, cold, with an archive": 6.0,
    "clean by a run of Dagster, cold": 6.0,
    "clean by a run of Dagster, cold, with an archive": 6.0,
    "the same in a home that a sensor has seen": 6.0,
    "clean, warm": 1.0,
}
OTHERS_CPU_GOAL_S = 0.3
"""Of a command that starts no Spark."""
_BOUNDS = (
    "What bounds those that are not met: a whole `append` imports PyIceberg and SQLAlchemy, which its commit needs "
    "(0.43 s of CPU). It starts within the goal, and with `keptlog resident` all of it takes 0.15 s. A run of Dagster "
    "is a clean of the command line and the start of Dagster's own processes, nearly 3 s. On these machines it takes "
    "5.8 to 6.8 s, an hour apart, so compare it with the other commit, in turns."
)


def cold_as_text(result: Mapping[str, Any]) -> str:
    """The section of ``RESULTS.md``; from what ``cold`` measured."""
    beside = result.get("beside")
    head = ["", "wall s", "CPU s", *([f"wall s at {beside}", f"CPU s at {beside}"] if beside else []), "goal", ""]
    lines = [
        "## A small clean, cold and warm, and commands without Spark",
        "",
        f"1,000 records, {result['rounds']} rounds; " + ", ".join(as_facts(result["on"])),
        "",
        table_row(head),
        "|---|" + "---:|" * (len(head) - 2) + "---|",
    ]
    for name, by_checkout in result["parts"].items():
        here = by_checkout[HERE]
        there = by_checkout.get(BESIDE, {})
        cells = [name, *_numbers(here), *(_numbers(there) if beside else [])]
        lines.append(table_row([*cells, *_judged(name, here)]))
    return "\n".join([*lines, "", _BOUNDS]) + "\n"


def _numbers(figure: Mapping[str, float]) -> list[str]:
    return [f"{figure[name]:.2f}" if name in figure else "" for name in ("wall_s", "cpu_s")]


def _judged(name: str, figure: Mapping[str, float]) -> tuple[str, str]:
    if name.startswith(("step:", "making")):
        return "", ""
    if name in WALL_GOALS_S:
        goal = WALL_GOALS_S[name]
        return f"<= {goal:g} s", met_or_not(is_met=figure["wall_s"] <= goal)
    goal = OTHERS_CPU_GOAL_S
    return f"<= {goal:g} s of CPU", met_or_not(is_met=figure["cpu_s"] <= goal)
