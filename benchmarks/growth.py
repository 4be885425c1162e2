"""How the cost of a clean grows with its work; ``make growth [RECORDS=…]``.

    records             1, 2, 5, 10, 20 M of one topic-partition, as in W1
    spread              2 M over 1, 10, 100, 1,000, 10,000 topic-partitions in one run
    topic_partitions    1, 10, 100, 1,000, 10,000 of 2,000 records each in one run

Each row is measured like a case (``run``): keptlog and the floor take turns, and what they leave must be right. It has
processes of its own, so that no other row's memory is in its; they warm up on a few small logs, which on the row's own
would take as long as a round. The last line on standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, all_cases
from benchmarks.figures import KEPTLOG
from benchmarks.generated_log import GeneratedLog, Shape, generate
from benchmarks.growth_text import growth_as_text
from benchmarks.machine import described
from benchmarks.peers import Setup, Work
from benchmarks.report import keep, kept
from benchmarks.run import Measurement, tell
from benchmarks.workers import ProcessWorker, Worker
from keptlog.table.io.files import TableFiles

RECORDS = 20_000_000
ROUNDS = 3
PARTITIONS = (1, 10, 100, 1_000)
"""The last one decides how many records each has where all have the same."""
MORE_PARTITIONS = (10_000,)
_CONTENDERS = (KEPTLOG, "floor")
_SHARES_OF_RECORDS = (20, 10, 4, 2, 1)
_SPREAD_SHARE = 10
_FEWEST_RECORDS = 10
"""Of a topic-partition: a row of which each would have less is left out, as there are few records to spread."""
_WARM_UP_RECORDS = 20_000
_WARM_UP_PARTITIONS = 20
"""Enough that each core has a task, and with it each Python worker is there."""


class NotRight(Exception):
    """A contender left something wrong, or broke down."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of which the cost by record, or by topic-partition, is to stay the same."""

    name: str
    title: str
    is_by_partition: bool
    shapes: tuple[Shape, ...]


def tables(records: int, partitions: Sequence[int] = PARTITIONS, more: Sequence[int] = MORE_PARTITIONS) -> list[Table]:
    """All tables; the largest log has so many records, those of many topic-partitions together a tenth of them.

    Of topic-partitions that are alike ``more`` have more records than that together, as many as the largest log.
    """
    total = records // _SPREAD_SHARE
    each = total // max(partitions)
    counts = (*partitions, *more)
    one = tuple(_updates(records // share) for share in _SHARES_OF_RECORDS)
    spread = tuple(_spread(total // count, count) for count in counts if total // count >= _FEWEST_RECORDS)
    alike = tuple(_spread(each, count) for count in counts)
    return [
        Table("records", "Records of one topic-partition", is_by_partition=False, shapes=one),
        Table("spread", f"{total:,} records over topic-partitions", is_by_partition=False, shapes=spread),
        Table("topic_partitions", f"Topic-partitions of {each:,} records", is_by_partition=True, shapes=alike),
    ]


@dataclass(frozen=True, slots=True)
class Growth:
    """Measures tables, row by row."""

    rounds: int
    folder: Path
    start_worker: Callable[[Setup], Worker] = ProcessWorker
    warm_up_records: int = _WARM_UP_RECORDS
    warm_up_partitions: int = _WARM_UP_PARTITIONS

    def measured(self, of: Sequence[Table]) -> dict[str, Any]:
        """The result, as it is stored.

        Raises:
            NotRight: a row does not count.
        """
        on = described()
        warm_up = generate(
            TableFiles(), self.folder / "warm-up", _spread(self.warm_up_records, self.warm_up_partitions)
        )
        # A row that two tables have is measured once.
        shapes = dict.fromkeys(shape for table in of for shape in table.shapes)
        rows = {shape: self._row(shape, warm_up) for shape in shapes}
        found = [
            {
                "name": table.name,
                "title": table.title,
                "is_by_partition": table.is_by_partition,
                "rounds": self.rounds,
                "rows": [rows[shape] for shape in table.shapes],
                "on": on,
            }
            for table in of
        ]
        return {"case": "growth", "equal": True, "tables": found}

    def _row(self, shape: Shape, warm_up: GeneratedLog) -> dict[str, Any]:
        tell(f"{shape.records:,} records in {shape.partitions:,} topic-partitions")
        case = _case(shape)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:

            def start(setup: Setup) -> Worker:
                worker = self.start_worker(setup)
                output = Path(folder) / f"{setup.peer}-warm-up"
                output.mkdir()
                variant = next(each.variant for each in case.contenders if each.setup == setup)
                worker.run(Work(warm_up, variant, output, "warm-up"))
                return worker

            result = Measurement(
                "growth", case, shape.records, self.rounds, Path(folder), start, warms_up=False
            ).measured()
        if result.unequal or result.absent:
            raise NotRight(result.unequal or str(dict(result.absent)))
        return _figures_of(result.last_line(), shape) | {
            "peak_rss_bytes": {name: result.figures.peak_rss_bytes(name) for name in _CONTENDERS}
        }


def with_others(result: Mapping[str, Any], before: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Any]:
    """A result with those tables of an older one that were not measured again, in the order of ``names``."""
    found = {table["name"]: table for each in (before, result) if each for table in each["tables"]}
    return {**result, "tables": [found[name] for name in names if name in found]}


def _updates(records: int) -> Shape:
    """As in W1."""
    return Shape(records - records // 5, records // 5)


def _spread(records: int, partitions: int) -> Shape:
    """So many topic-partitions of so many records, as in W5."""
    return replace(_updates(records), partitions=partitions, segments=4)


def _case(shape: Shape) -> Case:
    w1 = all_cases(os.cpu_count() or 1)["W1"]
    contenders = tuple(each for each in w1.contenders if each.name in _CONTENDERS)
    return replace(w1, contenders=contenders, goals=(), logs=lambda _: {"": shape})


def _figures_of(line: dict[str, Any], shape: Shape) -> dict[str, Any]:
    wall_s, cpu_s = line["wall_s"], line["cpu_s"]
    return {
        "partitions": shape.partitions,
        "records": shape.records,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "cpu_s_per_million": round(cpu_s[KEPTLOG] / shape.records * 1_000_000, 3),
        "cpu_ms_per_partition": round(cpu_s[KEPTLOG] / shape.partitions * 1_000, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="all unless some are named")
    parser.add_argument("--records", type=int, default=RECORDS, help="of the largest log; the others are shares of it")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    every = tables(given.records)
    if unknown := set(given.tables) - {table.name for table in every}:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(table.name for table in every)}")
    if given.rounds < 1 or given.records < 100_000:
        parser.error("at least 1 round and 100,000 records")
    chosen = [table for table in every if not given.tables or table.name in given.tables]
    with tempfile.TemporaryDirectory(prefix="keptlog-growth-") as folder:
        try:
            result = Growth(given.rounds, Path(folder)).measured(chosen)
        except NotRight as error:
            tell(str(error))
            print(json.dumps({"case": "growth", "rounds": given.rounds, "equal": False}))
            sys.exit(1)
    print(growth_as_text(result))
    if given.records == RECORDS and given.rounds >= ROUNDS:
        keep(with_others(result, kept("growth"), [table.name for table in every]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
