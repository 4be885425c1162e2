"""Runs one case and tells what came of it; ``make bench CASE=W1 [RECORDS=…] [ROUNDS=…]``.

    generate -> start all processes -> warm up -> round 1: keptlog, floor, duckdb, ... -> round 2: ...

Contenders take turns, so that a noisy machine is noisy for all of them, and each round begins with another one. What a
run leaves is compared with what it should be before its time counts, and deleted. The last line on standard output is
one JSON object. Exit 1 means that something left was wrong, or that keptlog broke down.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from benchmarks.cases import Case, Contender, all_cases
from benchmarks.digest import digests_of, digests_of_parquet, tables_of
from benchmarks.figures import Figures
from benchmarks.generated_log import GeneratedLog, generate
from benchmarks.machine import described
from benchmarks.peers import Left, PeerMissing, Setup, Work
from benchmarks.report import FULL_ROUNDS, Result, as_text, keep
from benchmarks.table_state import as_cleaned
from benchmarks.workers import Outcome, ProcessWorker, RunFailed, Worker
from keptlog.sources.kafka_log.reader import read_segment
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.transactions import scan_log
from keptlog.table.io.files import TableFiles

_WARM_UP = -1
_SLOW_SECONDS = 20
"""A contender whose first run took longer takes part in one round only: it is not what decides."""


class Unequal(Exception):
    """What a contender left is not what it should have left."""


@dataclass
class Measurement:
    """One case while it is measured."""

    name: str
    case: Case
    records: int
    rounds: int
    folder: Path
    start_worker: Callable[[Setup], Worker] = ProcessWorker
    warms_up: bool = True
    """Whether a round that does not count comes first."""
    _workers: dict[Setup, Worker] = field(default_factory=dict)
    _outcomes: dict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))
    _first_s: dict[str, float] = field(default_factory=dict)
    _absent: dict[str, str] = field(default_factory=dict)

    def measured(self) -> Result:
        """Run everything."""
        on = described()
        logs: dict[str, GeneratedLog] = {}
        for name, shape in self.case.logs(self.records).items():
            tell(f"generating {shape.records:,} records with values of {shape.value_bytes} bytes")
            logs[name] = generate(TableFiles(), self.folder / f"log-{name}", shape)
        unequal = ""
        try:
            for number in range(_WARM_UP if self.warms_up else 0, self.rounds):
                first = max(number, 0) % len(self.case.contenders)
                for contender in (*self.case.contenders[first:], *self.case.contenders[:first]):
                    self._run(contender, logs[contender.log], number)
        except Unequal as error:
            unequal = str(error)
        finally:
            for worker in self._workers.values():
                worker.close()
        start_s = {
            contender.name: self._workers[contender.setup].start_s
            for contender in self.case.contenders
            if contender.setup in self._workers
        }
        places = [contender.place for contender in self.case.contenders]
        figures = Figures(places, dict(self._outcomes), self._first_s, start_s)
        return Result(self.name, self.case, self.records, self.rounds, figures, on, unequal, self._absent)

    def _run(self, contender: Contender, log: GeneratedLog, number: int) -> None:
        if contender.name in self._absent or (number > 0 and self._first_s.get(contender.name, 0) > _SLOW_SECONDS):
            return
        output = self.folder / f"{contender.name}-{number + 1}"
        output.mkdir()
        work = Work(log, contender.variant, output, f"round-{number + 1}")
        try:
            outcome = self._worker(contender.setup).run(work)
        except (PeerMissing, RunFailed) as error:
            self._absent[contender.name] = str(error)
            tell(f"{contender.name} is left out: {error}")
            return
        is_equal = _digests(outcome.left, log) == log.expected[contender.expect]
        # Contenders are to have it.
        pa.default_memory_pool().release_unused()
        if not is_equal:
            raise Unequal(f"{contender.name} left a wrong log")
        shutil.rmtree(output)
        tell(f"{'warm-up' if number == _WARM_UP else f'round {number + 1}'}: {contender.name} {outcome.wall_s:.2f} s")
        if number == _WARM_UP:
            self._first_s[contender.name] = outcome.wall_s
        else:
            self._outcomes[contender.name].append(outcome)

    def _worker(self, setup: Setup) -> Worker:
        if setup not in self._workers:
            self._workers[setup] = self.start_worker(setup)
        return self._workers[setup]


def _digests(left: Left, log: GeneratedLog) -> dict[int, str]:
    if left.is_state:
        return digests_of(as_cleaned(tables_of(left.paths), log.steps))
    if left.kafka_log is None:
        return digests_of_parquet(left.paths)
    partition = log.steps[0].topic_partition.partition
    segments = segments_to_read(left.kafka_log)
    scan = scan_log(segments)
    return digests_of(table for segment in segments for table in read_segment(segment, partition, scan))


def tell(line: str) -> None:
    """Progress, on standard error: the last line of standard output is the result."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    cases = all_cases(os.cpu_count() or 1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=cases, metavar="CASE", help=", ".join(cases))
    parser.add_argument("--records", type=int, help="in place of the case's own number")
    parser.add_argument("--rounds", type=int, default=FULL_ROUNDS)
    parser.add_argument("--only", help="contenders, with commas between them; all unless given")
    arguments = parser.parse_args()
    case = cases[arguments.case]
    if arguments.only:
        names = arguments.only.split(",")
        chosen = tuple(each for each in case.contenders if each.name in names)
        if len(chosen) < len(names):
            parser.error(f"--only: the contenders are {', '.join(each.name for each in case.contenders)}")
        case = replace(case, contenders=chosen)
    if arguments.rounds < 1 or (arguments.records is not None and arguments.records < 100):
        parser.error("at least 1 round and 100 records")
    with tempfile.TemporaryDirectory(prefix="keptlog-benchmark-") as folder:
        records = arguments.records or case.records
        result = Measurement(arguments.case, case, records, arguments.rounds, Path(folder)).measured()
    described = result.to_dict()
    print(as_text(described))
    if result.is_good and not arguments.only and records == case.records and arguments.rounds >= FULL_ROUNDS:
        keep(described)
    if result.unequal:
        print(result.unequal)
    print(json.dumps(result.last_line()))
    sys.exit(0 if result.is_good else 1)


if __name__ == "__main__":
    main()
