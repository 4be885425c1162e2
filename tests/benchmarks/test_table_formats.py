"""The table formats are compared by the rows that they leave, and do leave those of a clean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.digest import digests_of, tables_of
from benchmarks.generated_log import Expect, GeneratedLog, Shape, generate
from benchmarks.peers.table_formats import FORMATS, is_fetched
from benchmarks.run import Measurement
from benchmarks.table_state import as_cleaned
from keptlog.table.io.files import TableFiles
from tests.benchmarks.here import CASES


@pytest.fixture
def log(tmp_path: Path) -> GeneratedLog:
    return generate(TableFiles(), tmp_path, Shape(400, 100, partitions=2))


def state_of(log: GeneratedLog) -> pa.Table:
    """The latest row of each key, as a table would have them: by key, in no order of offsets."""
    rows = pa.concat_tables(tables_of(log.paths)).sort_by("offset")
    keys = zip(*(rows[name].to_pylist() for name in ("partition", "key")), strict=True)
    latest = {key: at for at, key in enumerate(keys)}
    return rows.take([at for _, at in sorted(latest.items())])


def test_the_latest_rows_in_any_order_are_what_a_clean_leaves(log: GeneratedLog) -> None:
    assert digests_of(as_cleaned([state_of(log)], log.steps)) == log.expected[Expect.LATEST_BY_OFFSET]


def test_a_row_too_few_or_an_older_one_is_not(log: GeneratedLog) -> None:
    state = state_of(log)
    for wrong in (state.slice(1), pa.concat_tables([state, *tables_of(log.paths[:1])])):
        assert digests_of(as_cleaned([wrong], log.steps)) != log.expected[Expect.LATEST_BY_OFFSET]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_leaves_what_a_clean_leaves(name: str, tmp_path: Path) -> None:
    if not is_fetched(name):
        pytest.skip(f"{name} and a Spark for it take 400 MB: python -m benchmarks.run W5-formats fetches them")
    case = CASES["W5-formats"]
    case = replace(case, contenders=tuple(each for each in case.contenders if each.name == name))
    result = Measurement("W5-formats", case, 400, 1, tmp_path, warms_up=False).measured()
    assert result.last_line()["wall_s"].keys() == {name}
    assert not result.unequal
    assert not result.absent
