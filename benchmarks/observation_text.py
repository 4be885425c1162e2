"""What it costs to look at homes of very many logs, as text: sensors' quiet ticks, and ``keptlog status``.

Goals are those of a home of 100,000 logs; smaller ones stand beside it to show what grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.machine import as_facts
from benchmarks.markdown import met_or_not, table_row

LOGS_OF_GOALS = 100_000
TICK_GOAL_S = 1.0
MEMORY_GOAL_BYTES = 2**30
STATUS_GOAL_S = 2.0
TICKS_HEAD = "| catalog | topics | logs | first look | a quiet tick | its CPU | its requests | memory (PSS) |"
TICKS_RULE = "|---|---:|---:|---:|---:|---:|---:|---:|"
_GOAL = f"In homes of {LOGS_OF_GOALS:,} logs"
_REST = (
    "What bounds a tick behind REST: the protocol has no question about many tables at once, so it is a request a "
    "topic. Each costs us 0.4 CPU ms, and the catalog, which shares the two cores here, twice as much or more. Done: "
    "requests beside each other on connections that stay, and the ETag of the last answer, so that an answer is empty"
)


def tick_row(row: Mapping[str, Any]) -> str:
    """The line of one process."""
    late = "" if row["is_whole"] else ", not of all"
    return table_row(
        [
            row["catalog"],
            f"{row['topics']:,}",
            f"{row['logs']:,}",
            f"{row['first_cpu_s']:.1f} CPU s",
            f"{row['tick_wall_s']:.2f} s{late}",
            f"{row['tick_cpu_s']:.2f} CPU s",
            f"{row['tick_requests']:,}",
            f"{row['pss_bytes'] / 2**20:,.0f} MiB",
        ]
    )


def ticks_as_text(result: Mapping[str, Any]) -> str:
    """The section of ``RESULTS.md``; from what ``ticks`` measured."""
    large = [row for row in result["rows"] if row["logs"] >= LOGS_OF_GOALS]
    memory = max((row["pss_bytes"] for row in large), default=0)
    lines = [
        "## Observation: a quiet tick in homes of many topics",
        "",
        ", ".join(as_facts(result["on"])),
        "",
        TICKS_HEAD,
        TICKS_RULE,
        *map(tick_row, result["rows"]),
        "",
        f"| {_GOAL} | goal | measured | |",
        "|---|---|---:|---|",
        *(
            _goal(f"seconds of a quiet tick, {row['catalog']}", TICK_GOAL_S, row["tick_wall_s"], row["is_whole"])
            for row in large
        ),
        _goal("GiB of memory, the most of all", MEMORY_GOAL_BYTES / 2**30, memory / 2**30, bool(large)),
    ]
    if any(row["catalog"] == "rest" and row["tick_wall_s"] > TICK_GOAL_S for row in large):
        lines += ["", _REST + "."]
    return "\n".join(lines) + "\n"


def status_as_text(result: Mapping[str, Any]) -> str:
    """The section of ``RESULTS.md``; from what ``status`` measured."""
    here = result["times"][0]
    lines = [
        f"## Observation: `keptlog status` in a home of {result['logs']:,} logs",
        "",
        ", ".join(as_facts(result["on"])),
        "",
        "| known before | wall s | CPU s |",
        "|---|---:|---:|",
        *(table_row([known, f"{wall:.2f}", f"{cpu:.2f}"]) for known, (wall, cpu) in here.items()),
        "",
        "| | goal | measured | |",
        "|---|---|---:|---|",
        _goal("seconds of status, nothing changed since the last but one", STATUS_GOAL_S, here["known"][0]),
    ]
    return "\n".join(lines) + "\n"


def _goal(text: str, bound: float, value: float, is_whole: bool = True) -> str:  # noqa: FBT001, FBT002  # told from a row
    return table_row([text, f"<= {bound:g}", f"{value:.2f}", met_or_not(is_met=is_whole and value <= bound)])
