"""What a clean costs as its work grows: every row is right, and says what its records and logs cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.growth import Growth, NotRight, tables, with_others
from benchmarks.peers import Left, Setup, Work
from benchmarks.report import keep, kept
from benchmarks.workers import Outcome, Worker
from tests.benchmarks.here import Peers

TABLES = tables(800, partitions=(1, 4), more=())


def growth_of(start: Callable[[Setup], Worker], folder: Path) -> Growth:
    """One round of each row. Two logs warm up: these workers have no cores that twenty would keep busy."""
    return Growth(1, folder, start, warm_up_records=10, warm_up_partitions=2)


def test_each_row_of_a_table_has_more_work_than_the_one_above() -> None:
    records, spread, alike = tables(20_000_000)
    assert [shape.records // 1_000_000 for shape in records.shapes] == [1, 2, 5, 10, 20]
    assert [shape.partitions for shape in spread.shapes] == [1, 10, 100, 1_000, 10_000]
    assert {shape.records for shape in spread.shapes} == {2_000_000}
    assert [shape.records for shape in alike.shapes] == [2_000, 20_000, 200_000, 2_000_000, 20_000_000]


def test_too_few_records_are_not_spread_over_very_many_logs() -> None:
    _, spread, alike = tables(200_000)
    assert [(shape.partitions, shape.records) for shape in spread.shapes][-1] == (1_000, 20_000)
    assert [(shape.partitions, shape.records) for shape in alike.shapes][-1] == (10_000, 200_000)


def test_rows_are_measured_and_stand_on_the_page(peers: Peers, tmp_path: Path) -> None:
    result = growth_of(peers.worker, tmp_path).measured(TABLES)
    rows = [row for table in result["tables"] for row in table["rows"]]
    assert [(row["partitions"], row["records"]) for row in rows] == [
        *((1, records) for records in (40, 80, 200, 400, 800)),
        *((1, 80), (4, 80)),
        *((1, 20), (4, 80)),
    ]
    assert all(set(row["wall_s"]) == {"keptlog", "floor"} for row in rows)
    assert all(row["peak_rss_bytes"]["keptlog"] > 0 for row in rows)
    keep(result, tmp_path)
    keep(peers.measured("W7", tmp_path / "W7").to_dict(), tmp_path)
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert page.index("## W7:") < page.index("## Growth:") < page.index("| 1 | 40 |") < page.index("| 1 | 800 |")
    assert "### Topic-partitions of 20 records" in page


def test_a_table_that_is_measured_alone_takes_the_place_of_its_older_one(peers: Peers, tmp_path: Path) -> None:
    shortest = [replace(table, shapes=table.shapes[:1]) for table in TABLES]
    names = [table.name for table in shortest]
    assert kept("growth", tmp_path) is None
    first = growth_of(peers.worker, tmp_path).measured(shortest[:2])
    keep(with_others(first, None, names), tmp_path)
    alone = growth_of(peers.worker, tmp_path).measured(shortest[1:])
    keep(with_others(alone, kept("growth", tmp_path), names), tmp_path)
    assert (kept("growth", tmp_path) or {})["tables"] == [first["tables"][0], *alone["tables"]]


def test_a_row_that_is_wrong_ends_it(peers: Peers, tmp_path: Path) -> None:
    class Forgetful:
        """Leaves one file out."""

        def __init__(self, worker: Worker) -> None:
            self.worker = worker
            self.start_s = 0.0

        def run(self, work: Work) -> Outcome:
            outcome = self.worker.run(work)
            return replace(outcome, left=Left(outcome.left.paths[1:]))

        def close(self) -> None:
            pass

    def start(setup: Setup) -> Worker:
        return Forgetful(peers.worker(setup))

    table = replace(TABLES[0], shapes=TABLES[0].shapes[:1])
    with pytest.raises(NotRight, match="left a wrong log"):
        growth_of(start, tmp_path).measured([table])
