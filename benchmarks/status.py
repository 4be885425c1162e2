"""What ``keptlog status`` costs in a home of very many logs: when nothing is known, when tables are, when all is.

    python -m benchmarks.status                                      # 2,000 topics of 50 logs of five segments
    python -m benchmarks.status --topics 200 --beside /path/to/another

The files of all segments are there, of holes alone, so that the disk is asked as in a home of records. Each number is
of one process; those of ``known`` are medians. The last line is one JSON object. A full run is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.copied_topics import make_copies, register, with_files
from benchmarks.machine import described
from benchmarks.many_topics import Shape, topic_name
from benchmarks.report import keep
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.reading.cache import FOLDER
from tests.logs import open_store

SHAPE = Shape(partitions=50, segments=5)
TOPICS = 2_000
ROUNDS = 5
Times = dict[str, tuple[float, float]]
"""Wall and CPU seconds, by what was known."""


def make_home(home: Path, topics: int, shape: Shape, now_ms: int) -> None:
    """A home of topics that are copies of one, with the files of their segments."""
    register(open_catalog(home), make_copies(home, topics, shape, now_ms))
    store = open_store(home)
    for number in range(topics):
        with_files(store.observe(topic_name(number)).logs)


def measured(home: Path, checkout: Path, rounds: int = ROUNDS) -> Times:
    """What the command of a checkout takes; nothing of the home is remembered before."""
    shutil.rmtree(home / FOLDER, ignore_errors=True)
    found = {"nothing known": _status(home, checkout), "tables known": _status(home, checkout)}
    walls, cpus = zip(*[_status(home, checkout) for _ in range(rounds)], strict=True)
    return found | {"known": (statistics.median(walls), statistics.median(cpus))}


def _status(home: Path, checkout: Path) -> tuple[float, float]:
    # An installed keptlog is compiled, whatever this environment says of compiling.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**own, "KEPTLOG_HOME": str(home), "PYTHONPATH": str(checkout)}
    begin, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "keptlog", "status"]
    done = subprocess.run(command, env=environment, cwd=home.parent, check=False, capture_output=True, text=True)
    wall, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        raise SystemExit(f"status failed: {done.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.status", description="Measure keptlog status.")
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--beside", type=Path, help="another checkout, measured after this one")
    wanted = parser.parse_args(arguments)
    checkouts = [Path(__file__).parents[1], *([wanted.beside.absolute()] if wanted.beside else [])]
    on = described()
    with tempfile.TemporaryDirectory(prefix="keptlog-status-") as folder:
        home = Path(folder) / "home"
        make_home(home, wanted.topics, SHAPE, time.time_ns() // 1_000_000)
        rows = [measured(home, checkout, wanted.rounds) for checkout in checkouts]
    print("| checkout | known before | wall s | CPU s |", "|---|---|---:|---:|", sep="\n")
    for name, row in zip(("here", "beside"), rows, strict=False):
        for known, (wall, cpu) in row.items():
            print(f"| {name} | {known} | {wall:.2f} | {cpu:.2f} |")
    logs = wanted.topics * SHAPE.partitions
    result = {"case": "status", "topics": wanted.topics, "logs": logs, "times": rows, "on": on}
    if wanted.topics == TOPICS and wanted.rounds >= ROUNDS:
        keep(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
