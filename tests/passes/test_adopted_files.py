"""Files of another program that are adopted: what can be cleaned later is taken, and what would be lost then is not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.errors import LogCorrupt
from keptlog.log.segment import Segment
from keptlog.storage.schema import SCHEMA
from keptlog.table.metadata.file_metrics import data_file_of
from tests.passes.story import DAY_MS, HOUR_MS, Story, T
from tests.table.foreign import rows_at, table_of, update_rows
from tests.table.stores import NOW_MS


def add(home: Path, rows: pa.Table, offset: int, last_offset: int | None = None) -> None:
    """As a program does that writes a file by itself, and adds it."""
    path = home / "of-another-program.parquet"
    pq.write_table(rows, path)
    last_offset = offset if last_offset is None else last_offset
    segment = Segment(f"file://{path}", offset, last_offset, NOW_MS, NOW_MS, len(rows), path.stat().st_size)
    with table_of(home, T).transaction() as transaction, transaction.update_snapshot().fast_append() as added:
        added.append_data_file(data_file_of(0, segment))


def loosely(rows: pa.Table, *names: str) -> pa.Table:
    """These columns as ones that may have nulls, inside too, as Trino and DuckDB write each."""
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    kinds = {name: headers if name == "headers" else SCHEMA.field(name).type for name in names}
    fields = [pa.field(each.name, kinds[each.name]) if each.name in kinds else each for each in rows.schema]
    return pa.Table.from_arrays(
        [rows[each.name].combine_chunks().cast(each.type) for each in fields], schema=pa.schema(fields)
    )


@pytest.mark.parametrize("names", [tuple(SCHEMA.names), ("headers",), ("partition", "offset")], ids=len)
def test_columns_that_may_have_nulls_and_have_none_are_adopted_and_cleaned(
    story: Story, names: tuple[str, ...]
) -> None:
    add(story.home, loosely(rows_at(2), *names), 2)
    story.repair(adopt=True)
    story.append(("a", "9"))
    story.clean(2 * HOUR_MS)
    assert {record.offset for record in story.real.records()} >= {2, 3}


def test_values_of_further_columns_are_counted_before_for_a_clean_drops_them(story: Story) -> None:
    rows = rows_at(2, 3, 4)
    notes = pa.array(["one", None, "three"])
    place = pa.array([{"x": 1}, {"x": 2}, {"x": 3}])
    rows = rows.append_column("note", notes).append_column("place", place).append_column("none", pa.nulls(3))
    add(story.home, rows, 2, 4)
    proposal = story.repair(adopt=True)
    assert proposal.other_columns == {"note": 2, "place": 3}
    assert proposal.lost == {}


def test_where_no_file_has_one_none_is_told(story: Story) -> None:
    add(story.home, rows_at(2), 2)
    assert story.repair(adopt=True).other_columns == {}


def test_headers_that_are_null_are_not_adopted(story: Story) -> None:
    rows = rows_at(2)
    kind = pa.list_(SCHEMA.field("headers").type.value_type)
    place = rows.schema.get_field_index("headers")
    add(story.home, rows.set_column(place, pa.field("headers", kind), pa.array([None], kind)), 2)
    with pytest.raises(LogCorrupt, match="has nulls in headers"):
        story.repair(adopt=True)


def test_a_value_in_the_place_of_a_tombstone_is_not_adopted_for_it_would_expire_as_that(story: Story) -> None:
    """What an UPDATE of a deleted key's row makes: it keeps the row's delete horizon."""
    story.append(("a", None))
    story.clean(2 * HOUR_MS)
    update_rows(story.home, [2], b"back again", T)
    with pytest.raises(LogCorrupt, match=r"a value with a delete horizon, .* at offset 2; .*keptlog repair"):
        story.repair(adopt=True)
    story.repair()
    story.append(("z", "1"))
    story.clean(9 * DAY_MS)
    assert all(record.key != b"a" for record in story.real.records())
