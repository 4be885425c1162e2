"""A row that another program has written, and that no record is like, is told by its offset."""

from __future__ import annotations

import pyarrow as pa
import pytest

from keptlog.errors import LogCorrupt
from keptlog.log.record import Record
from keptlog.storage.schema import from_arrow, to_arrow

ROWS = to_arrow(3, [Record(7, b"a", b"1", 1000), Record(8, b"b", b"2", 2000)])


@pytest.mark.parametrize(
    ("column", "value"), [("timestamp_type", 7), ("timestamp_type", None), ("timestamp", None), ("headers", [None])]
)
def test_it_is_told_by_its_offset_and_what_to_do(column: str, value: object) -> None:
    at = ROWS.schema.get_field_index(column)
    kind = ROWS.schema.field(column).type
    first = ROWS[column].to_pylist()[0]
    rows = ROWS.set_column(at, pa.field(column, kind), pa.array([first, value], kind))
    found = from_arrow(rows.to_batches())
    assert next(found).offset == 7
    with pytest.raises(LogCorrupt, match=r"partition 3, offset 8: no record is as this row .*keptlog repair"):
        next(found)
