"""The version in a record's headers, read a column at a time, is the one that the rule for one record reads."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from keptlog.log.strategy import Strategy, StrategyKind, version_in
from keptlog.storage.schema import SCHEMA
from keptlog.storage.versions import with_versions

NAME = "version"
BY_HEADER = Strategy(StrategyKind.HEADER, NAME)
LONGS = st.integers(-(2**63), 2**63 - 1).map(lambda number: number.to_bytes(8, signed=True))
VALUES = LONGS | st.none() | st.binary(max_size=9)
HEADERS = st.tuples(st.sampled_from([NAME, "trace", ""]), VALUES)
ONE, TWO, THREE = ([(NAME, number.to_bytes(8))] for number in (1, 2, 3))
"""What records have whose producer sets nothing but the version."""

Given = list[tuple[str, bytes | None]]


@given(st.lists(st.lists(HEADERS, max_size=3), max_size=8), st.integers(0, 3))
@example([ONE, TWO, THREE], 1)
@example([ONE, [(NAME, b"seven"), *TWO], [*THREE, (NAME, b"seven")]], 0)
@example([ONE, [*TWO, ("trace", b"x" * 8)], THREE], 1)
@example([ONE, [(NAME, None)], TWO], 0)
@example([], 0)
def test_versions_are_those_that_the_rule_reads_also_from_the_middle_of_a_table(
    records: list[Given], skipped: int
) -> None:
    headers = [[{"key": key, "value": value} for key, value in each] for each in records]
    table = pa.table({"headers": pa.array(headers, SCHEMA.field("headers").type)}).slice(skipped)
    found = with_versions(table, BY_HEADER)
    expected = [version_of(each) for each in records[skipped:]]
    assert found["version"].to_pylist() == [version for version, _ in expected]
    assert found["is_malformed"].to_pylist() == [is_malformed for _, is_malformed in expected]


def version_of(headers: Given) -> tuple[int | None, bool]:
    """Of the last header of the name, and whether it is there and holds none."""
    named = [value for key, value in headers if key == NAME]
    version = version_in(named[-1]) if named else None
    return version, bool(named) and version is None
