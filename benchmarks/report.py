"""Results as text: one line of JSON, a table, and ``RESULTS.md`` with the latest of all that is measured.

    python -m benchmarks.report     writes RESULTS.md anew, without measuring

A run with other than a case's own number of records, or fewer than five rounds, or without all contenders, is shown and
not kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.around_text import around_as_text
from benchmarks.bars import bars
from benchmarks.cases import Case
from benchmarks.cold_text import cold_as_text
from benchmarks.figures import KEPTLOG, Figures
from benchmarks.growth_text import growth_as_text
from benchmarks.machine import as_facts
from benchmarks.markdown import met_or_not, table_row
from benchmarks.observation_text import status_as_text, ticks_as_text
from benchmarks.reasons import reasons

FULL_ROUNDS = 5
_FOLDER = Path(__file__).parent
_KEPT = _FOLDER / "results"
_MEBIBYTE = 2**20
_APART: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "growth": growth_as_text,
    "around": around_as_text,
    "cold": cold_as_text,
    "ticks": ticks_as_text,
    "status": status_as_text,
}
"""What is measured apart from the cases."""
_HEAD = """\
# Results

The latest full run of each case, written by `make bench CASE=…`, `make growth`, and `around`, `cold`, `ticks` and
`status` of `python -m benchmarks.…`; [README.md](README.md) says how it is measured. Wall and CPU seconds are medians
of the rounds, memory is the largest sum over all processes of a contender. "first" is its first run, "start" what its
process and session needed before; contenders of one peer share a process.
"""


@dataclass(frozen=True)
class Result:
    """Everything that is known of a case after its rounds."""

    name: str
    case: Case
    records: int
    rounds: int
    figures: Figures
    on: Mapping[str, str]
    """Machine, versions and commit."""
    unequal: str = ""
    """The contender that left something wrong."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Contenders that are missing here or broke down, and why."""

    @property
    def is_good(self) -> bool:
        """Whether everything that keptlog left is right, and nothing that anybody left is wrong."""
        return not self.unequal and not any(name.startswith(KEPTLOG) for name in self.absent)

    def last_line(self) -> dict[str, Any]:
        """What others compare with."""
        figures = self.figures
        measured = KEPTLOG in figures.wall_s
        return {
            "case": self.name,
            "records": self.records,
            "rounds": self.rounds,
            "equal": self.is_good,
            "wall_s": _rounded(figures.wall_s),
            "cpu_s": _rounded(figures.cpu_s),
            "ratio": _rounded(figures.ratio),
            "peak_rss_bytes": figures.peak_rss_bytes(KEPTLOG) if measured else 0,
            "bytes_written": figures.bytes_written(KEPTLOG) if measured else 0,
        }

    def to_dict(self) -> dict[str, Any]:
        """The whole of it, for ``results/``."""
        figures = self.figures
        judged = [(goal, goal.judged(figures)) for goal in self.case.goals]
        return self.last_line() | {
            "title": self.case.title,
            "goals": [
                {
                    "text": goal.text,
                    "bound": f"{'>=' if goal.is_least else '<='} {goal.bound:g}",
                    "value": None if found is None else round(found[0], 3),
                    "met": found is not None and found[1],
                }
                for goal, found in judged
            ],
            "contenders": {name: self._contender(name) for name in figures.wall_s if name in figures.outcomes},
            "absent": dict(self.absent),
            "on": dict(self.on),
        }

    def _contender(self, name: str) -> dict[str, Any]:
        figures = self.figures
        return {
            "wall_s": [round(each.wall_s, 3) for each in figures.outcomes[name]],
            "cpu_s": [round(each.cpu_s, 3) for each in figures.outcomes[name]],
            "first_s": round(figures.first_s.get(name, 0), 3),
            "start_s": round(figures.start_s.get(name, 0), 3),
            "peak_rss_bytes": figures.peak_rss_bytes(name),
            "peak_python_rss_bytes": figures.peak_python_rss_bytes(name),
            "bytes_written": figures.bytes_written(name),
            "notes": dict(figures.outcomes[name][-1].left.notes),
        }


def as_text(result: Mapping[str, Any]) -> str:
    """A table, a bar for each contender, and the goals; from ``Result.to_dict``."""
    lines = [
        f"## {result['case']}: {result['title']}",
        "",
        f"{result['records']:,} records, {result['rounds']} rounds; " + ", ".join(as_facts(result["on"])),
        "",
        "| | wall s | CPU s | keptlog / it | first s | start s | peak MiB | MiB written |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(_row(result, name) for name in result["contenders"]),
        "",
        "```",
        *bars({name: result["wall_s"][name] for name in result["contenders"]}, "s"),
        "```",
    ]
    if result["goals"]:
        lines += ["", "| goal | | measured | |", "|---|---|---:|---|"]
    for goal in result["goals"]:
        # What keptlog could not finish is no gap in the table.
        is_failed = any(name.startswith(KEPTLOG) for name in result["absent"])
        measured = "failed | **not met**" if is_failed else "not measured |"
        if goal["value"] is not None:
            measured = f"{goal['value']:.2f} | {met_or_not(is_met=goal['met'])}"
        lines.append(f"| {goal['text']} | {goal['bound']} | {measured} |")
    if why := list(reasons(result["case"], result["goals"])):
        lines += ["", "What bounds those that are not met, and what was tried:", "", *why]
    for name, reason in result["absent"].items():
        lines += ["", f"{name}: {reason.strip().splitlines()[-1]}"]
    return "\n".join(lines) + "\n"


def kept(case: str, folder: Path = _FOLDER) -> dict[str, Any] | None:
    """The latest result of a name; null if there is none."""
    file = folder / _KEPT.name / f"{case}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


def keep(result: Mapping[str, Any], folder: Path = _FOLDER) -> None:
    """Store a result as the latest of its name and write ``RESULTS.md`` anew."""
    into = folder / _KEPT.name
    into.mkdir(exist_ok=True)
    (into / f"{result['case']}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(folder)


def show(folder: Path = _FOLDER) -> None:
    """Write ``RESULTS.md`` anew from the results that are kept."""
    results_folder = folder / _KEPT.name
    found = sorted(results_folder.glob("W*.json"), key=lambda path: (int(path.stem[1:].partition("-")[0]), path.stem))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    sections = [as_text(each) for each in results]
    for name, section_of in _APART.items():
        if apart := kept(name, folder):
            sections.append(section_of(apart))
    (folder / "RESULTS.md").write_text("\n".join([_HEAD, *sections]), encoding="utf-8")


def _row(result: Mapping[str, Any], name: str) -> str:
    contender, ratio = result["contenders"][name], result["ratio"].get(name)
    cells = [
        name,
        f"{result['wall_s'][name]:.2f}",
        f"{result['cpu_s'][name]:.2f}",
        "" if ratio is None else f"{ratio:.2f}",
        f"{contender['first_s']:.2f}",
        f"{contender['start_s']:.1f}",
        f"{contender['peak_rss_bytes'] / _MEBIBYTE:.0f}",
        f"{contender['bytes_written'] / _MEBIBYTE:.0f}",
    ]
    return table_row(cells)


def _rounded(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: round(number, 3) for name, number in numbers.items()}


if __name__ == "__main__":
    show()
