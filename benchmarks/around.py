"""What keptlog costs around the engine: a sensor's tick, a swap, ``keptlog status``, an append to very many partitions.

    python -m benchmarks.around --topics 1000 --partitions 10
    python -m benchmarks.around swap append

| case   | what is measured |
|--------|------------------|
| tick   | a tick of the dirty ratio sensor over all logs: the first of all, the first of a restarted process, one with nothing changed, one with ten topics changed |
| swap   | a commit that takes 20 segments out and puts 2 in, at 1,000 and at 10,000 live files |
| status | the command over all logs, as a process: with nothing known, and with nothing changed since the last one |
| append | a batch of 5 records for each of 2,000 partitions, and the next one |

Times are medians of wall and CPU seconds. The last line is one JSON object. A run of all cases in their full size is kept
beside those of the engine.
"""  # noqa: E501  # a table

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg

import keptlog.dagster.resources.log_store as log_store_module
from benchmarks.machine import described
from benchmarks.many_topics import Shape, add_segments, make_topics, topic_name
from benchmarks.report import FULL_ROUNDS, keep
from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.orchestration.told_sections import ToldSections
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.dagster.resources.spark import spark_resource
from keptlog.home import new_id, open_home
from keptlog.log.assessment import assess
from keptlog.log.plan import plan_step
from keptlog.log.record import NewRecord
from keptlog.log.result import Counts, RewriteResult
from keptlog.log.steps import Compact
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.reading.cache import FOLDER
from keptlog.table.store import LogStore

SEGMENTS = 5
CHANGED_TOPICS = 10
LIVE_FILES = (1_000, 10_000)
SWAPPED = 20
APPENDED_PARTITIONS = 2_000


@dataclass
class Times:
    """Wall and CPU seconds of what was measured, by name."""

    seconds: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), _cpu_seconds()
        yield
        self.seconds.setdefault(name, []).append((time.perf_counter() - wall, _cpu_seconds() - cpu))

    def medians(self) -> dict[str, dict[str, float]]:
        return {
            name: {
                "wall_s": round(statistics.median(wall for wall, _ in all_of_it), 3),
                "cpu_s": round(statistics.median(cpu for _, cpu in all_of_it), 3),
            }
            for name, all_of_it in self.seconds.items()
        }


@dataclass(frozen=True)
class Arguments:
    """How much is measured."""

    topics: int = 1_000
    partitions: int = 10
    rounds: int = FULL_ROUNDS


def tick(folder: Path, arguments: Arguments) -> dict[str, object]:
    """Ticks of the sensor that has most to do."""
    home, now_ms, times = folder / "home", _now_ms(), Times()
    make_topics(home, arguments.topics, Shape(arguments.partitions, SEGMENTS, 2), now_ms)
    ticks = cursor_bytes = 0
    log_store = LogStoreResource(home=str(home))
    dirty_ratio_sensor = build_defs(log_store).get_repository_def().get_sensor_def("dirty_ratio_sensor")
    _restart()
    with dg.instance_for_test() as instance:

        def one(cursor: str | None) -> str | None:
            context = dg.build_sensor_context(
                instance=instance,
                cursor=cursor,
                resources={
                    "log_store": log_store,
                    "clock": ClockResource(now_ms=now_ms),
                    "spark": spark_resource(),
                },
            )
            return dirty_ratio_sensor.evaluate_tick(context).cursor

        while not ticks or log_store.observer.look(now_ms).behind:
            ticks += 1
            with times.of("first"):
                one(None)
        for number in range(arguments.rounds):
            _restart()
            with times.of("restarted"):
                one(None)
            sections = log_store.remembered(ToldSections, lambda _: ToldSections())
            sections.remember(log_store.observer.look(now_ms).assessments)
            sections.ends(None, None, ())
            with times.of("nothing changed"):
                cursor = one(None)
            cursor_bytes = max(cursor_bytes, len(cursor or ""))
            for changed in range(CHANGED_TOPICS):
                catalog = open_catalog(home)
                add_segments(catalog, topic_name(changed), [SEGMENTS + number], range(arguments.partitions), now_ms)
            with times.of(f"{CHANGED_TOPICS} changed"):
                one(cursor)
    return times.medians() | {"ticks_until_all_is_read": ticks, "cursor_bytes": cursor_bytes}


def swap(folder: Path, arguments: Arguments) -> dict[str, object]:
    """Swaps in a topic of very many live files, which came in 50 appends."""
    times, now_ms = Times(), _now_ms()
    for files in LIVE_FILES:
        home = folder / f"home-{files}"
        make_topics(home, 1, Shape(arguments.partitions, files // arguments.partitions, 50), now_ms, processes=1)
        store = open_home(home).store
        for number in range(arguments.rounds):
            outcome = _swapped(store, number % arguments.partitions, now_ms)
            with times.of(f"{files} live files"):
                store.swap(topic_name(0), [outcome], new_id())
        left = sum(len(log.segments) for log in store.logs(topic_name(0)))
        assert left == files - arguments.rounds * (SWAPPED - 2)
    return dict(times.medians())


def status(folder: Path, arguments: Arguments) -> dict[str, object]:
    """The command as a person or a monitor runs it."""
    home, times = folder / "home", Times()
    make_topics(home, arguments.topics, Shape(arguments.partitions, SEGMENTS, 2), _now_ms())
    told = set()
    for name, rounds in (("cold", 1), ("warm", arguments.rounds)):
        for _ in range(rounds):
            with times.of(name):
                told.add(_command(home, "status"))
    shutil.rmtree(home / FOLDER)
    assert told == {_command(home, "status")}
    with times.of("an empty home"):
        _command(folder / "empty", "status")
    return dict(times.medians())


def append(folder: Path, _: Arguments) -> dict[str, object]:
    """Batches that reach every partition; each file is on the disk before the commit."""
    store, times, now_ms = open_home(folder / "home").store, Times(), _now_ms()
    store.create_topic("wide", APPENDED_PARTITIONS, {"cleanup.policy": "compact"})
    for name in ("first", "next"):
        records = (
            NewRecord(b"%d" % number, b"v" * 100, now_ms, number % APPENDED_PARTITIONS)
            for number in range(5 * APPENDED_PARTITIONS)
        )
        with times.of(name):
            store.append("wide", records, name, now_ms)
    assert all(log.log_end_offset == 10 for log in store.logs("wide"))
    return dict(times.medians())


CASES: dict[str, Callable[[Path, Arguments], dict[str, object]]] = {
    "tick": tick,
    "swap": swap,
    "status": status,
    "append": append,
}


def measured(names: Sequence[str], arguments: Arguments) -> dict[str, Any]:
    """What the cases of these names cost, told as it is found."""
    head = {"case": "around", **asdict(arguments), "on": described()}
    found: dict[str, dict[str, object]] = {}
    for name in names:
        with tempfile.TemporaryDirectory(prefix=f"keptlog-{name}-") as folder:
            found[name] = CASES[name](Path(folder), arguments)
        for what, value in found[name].items():
            print(f"{name:8}{what:28}{value}", flush=True)
    return head | {"cases": found}


def is_full(cases: Sequence[str], arguments: Arguments) -> bool:
    """Whether this is worth keeping."""
    full = Arguments()
    is_size = (arguments.topics, arguments.partitions) == (full.topics, full.partitions)
    return not cases and is_size and arguments.rounds >= full.rounds


def _swapped(store: LogStore, partition: int, now_ms: int) -> RewriteResult:
    """A clean of the oldest dirty segments, as an engine would hand it over."""
    log = store.logs(topic_name(0))[partition]
    planned = plan_step(assess(log, now_ms), requested=True)
    assert isinstance(planned, Compact)
    removed = tuple(s for s in log.segments if s.base_offset >= planned.first_dirty_offset)[:SWAPPED]
    end_offset = removed[-1].last_offset + 1
    inputs = tuple(s for s in log.segments if s.base_offset < end_offset)
    added = tuple(replace(s, path=s.path.replace("-made-", f"-{new_id()}-")) for s in removed[:2])
    for segment in added:
        path = Path(segment.path.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    counts = Counts(kept=sum(s.record_count for s in added))
    return RewriteResult(replace(planned, end_offset=end_offset, segments=inputs), removed, added, counts, 1, 1)


def _command(home: Path, *arguments: str) -> str:
    environment = os.environ | {"KEPTLOG_HOME": str(home), "KEPTLOG_NOW_MS": "1800000000000"}
    command = [sys.executable, "-m", "keptlog", *arguments]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    # The segments of a home that was made are not there, nor is anything of an empty one: it says so.
    assert done.returncode in {0, 1, 2}, done.stderr
    return done.stdout


def _restart() -> None:
    """Forget what a process remembers."""
    log_store_module._opened.clear()  # noqa: SLF001


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[], help="all if none is named")
    parser.add_argument("--topics", type=int, default=Arguments.topics)
    parser.add_argument("--partitions", type=int, default=Arguments.partitions)
    parser.add_argument("--rounds", type=int, default=Arguments.rounds)
    given = parser.parse_args()
    arguments = Arguments(given.topics, given.partitions, given.rounds)
    result = measured(given.cases or list(CASES), arguments)
    if is_full(given.cases, arguments):
        keep(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
