"""What a sensor's quiet tick costs in homes of many topics, by catalog: what grows with them, and what does not.

    python -m benchmarks.ticks                                          # 200, 1,000 and 2,000 topics of 50 logs
    python -m benchmarks.ticks --topics 200 --catalogs sqlite postgres

Each row is a process of its own, as a code server's is. It looks once at all logs, none of which it knows, and then at
nothing new; of those ticks the table has the median. Every catalog is told of the same files (``copied_topics``), on
the disk. That of REST has all of Java's compilers, as one that runs for days; tests, whose catalogs run for seconds, do
without the last. Requests are those to the catalog: statements of SQL, or requests of HTTP. CPU is of the process that
looks, and not of the catalog; PSS is what the system holds for it. The last line on standard output is one JSON object.
A run of all catalogs and sizes is kept.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from pyiceberg.catalog import load_catalog
from sqlalchemy import event
from sqlalchemy.engine import Engine
from urllib3 import BaseHTTPResponse, HTTPConnectionPool

from benchmarks.copied_topics import make_copies, register
from benchmarks.machine import described
from benchmarks.many_topics import Shape
from benchmarks.observation_text import TICKS_HEAD, TICKS_RULE, tick_row
from benchmarks.report import keep
from examples.lake.postgres import postgres
from examples.lake.rest_catalog import rest_catalog
from examples.lake.whole_lake import catalog_environment
from keptlog.passes.observer import Observer
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import CATALOG_NAME
from tests.logs import open_store

CATALOGS = ("sqlite", "postgres", "rest")
SHAPE = Shape(partitions=50, segments=5)
TICKS = 5
_SPAWN = multiprocessing.get_context("spawn")
DEFAULT_TOPICS = (200, 1_000, 2_000)


@dataclass(frozen=True, slots=True)
class Row:
    """Of one process. ``is_whole`` says whether each tick had asked for every topic before its time was up."""

    catalog: str
    topics: int
    logs: int
    first_cpu_s: float
    tick_wall_s: float
    tick_cpu_s: float
    tick_requests: int
    pss_bytes: int
    is_whole: bool


def looked(catalog: str, home: Path, topics: int) -> Row:
    """What this process pays; the catalog is the configured one."""
    requests_sent = 0
    send = HTTPConnectionPool.urlopen

    def counted_send(*given: Any, **named: Any) -> BaseHTTPResponse:
        nonlocal requests_sent
        requests_sent += 1
        return send(*given, **named)

    def counted(*_: object) -> None:
        nonlocal requests_sent
        requests_sent += 1

    event.listen(Engine, "before_cursor_execute", counted)
    observer = Observer(open_store(home), lambda: int(time.monotonic() * 1000))
    with mock.patch.object(HTTPConnectionPool, "urlopen", counted_send):
        begun_s = time.process_time()
        while len((seen := observer.look(_now_ms())).locations) < topics or seen.behind:
            pass
        first_s = time.process_time() - begun_s
        ticks = []
        for _ in range(TICKS):
            requests_sent, wall_s, cpu_s = 0, time.perf_counter(), time.process_time()
            seen = observer.look(_now_ms())
            is_whole = not seen.asked_ago_ms
            ticks.append((time.perf_counter() - wall_s, time.process_time() - cpu_s, requests_sent, is_whole))
    wall, cpu, sent, whole = zip(*ticks, strict=True)
    costs = (first_s, statistics.median(wall), statistics.median(cpu), int(statistics.median(sent)))
    return Row(catalog, topics, len(seen.assessments), *costs, _pss_bytes(), all(whole))


def measured(folder: Path, topics: int, catalogs: Sequence[str]) -> Iterator[Row]:
    """A row for each catalog, of one home of so many topics."""
    home = folder / "home"
    locations = make_copies(home, topics, SHAPE, _now_ms())
    for name in catalogs:
        with _catalog(name, home) as properties, mock.patch.dict("os.environ", catalog_environment(properties)):
            # The embedded catalog knows the first topic; the others are to be told of all.
            told = load_catalog(CATALOG_NAME, **properties) if properties else open_catalog(home)
            register(told, locations)
            with ProcessPoolExecutor(1, mp_context=_SPAWN) as pool:
                yield pool.submit(looked, name, home, topics).result()


@contextmanager
def _catalog(name: str, home: Path) -> Iterator[Mapping[str, str]]:
    """Its properties; none for the embedded one."""
    warehouse = str(home / "warehouse")
    if name == "sqlite":
        yield {}
    elif name == "postgres":
        with postgres() as database:
            yield {"type": "sql", "uri": database.uri(), "warehouse": f"file://{warehouse}"}
    else:
        with rest_catalog(warehouse, starts_soon=False) as catalog:
            yield {"type": "rest", "uri": catalog.uri}


def _now_ms() -> int:
    return int(time.time() * 1000)


def _pss_bytes() -> int:
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ticks", description="Measure quiet ticks.")
    parser.add_argument("--topics", type=int, nargs="+", default=DEFAULT_TOPICS)
    parser.add_argument("--catalogs", nargs="+", choices=CATALOGS, default=CATALOGS)
    wanted = parser.parse_args()
    rows: list[dict[str, Any]] = []
    on = described()
    print(TICKS_HEAD, TICKS_RULE, sep="\n", flush=True)
    for topics in wanted.topics:
        folder = Path(tempfile.mkdtemp(prefix="keptlog-ticks-"))
        try:
            for row in measured(folder, topics, wanted.catalogs):
                rows.append(asdict(row))
                print(tick_row(rows[-1]), flush=True)
        finally:
            shutil.rmtree(folder)
    result = {"case": "ticks", "on": on, "rows": rows}
    if tuple(wanted.topics) == DEFAULT_TOPICS and tuple(wanted.catalogs) == CATALOGS:
        keep(result)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
