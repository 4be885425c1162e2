"""What is kept of a table by views of its values is what a filter keeps of it, and no buffer is copied for it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.record import Record
from keptlog.storage.schema import SCHEMA, to_arrow
from keptlog.storage.value_views import VIEWED_SCHEMA, bytes_of, kept, with_views

LONG = b"longer than the twelve bytes that a view itself can hold"


def table_of(values: list[bytes | None]) -> pa.Table:
    return to_arrow(0, [Record(offset, b"k%d" % offset, value, 1000) for offset, value in enumerate(values)])


def kept_of(table: pa.Table, mask: list[bool]) -> pa.Table:
    return kept(table, pa.chunked_array([pa.array(mask, pa.bool_())]), sum(mask))


@given(
    st.lists(st.tuples(st.none() | st.sampled_from([b"", b"short", LONG]) | st.binary(max_size=40), st.booleans())),
    st.integers(0, 3),
)
def test_the_records_kept_are_those_of_a_plain_filter(records: list[tuple[bytes | None, bool]], skipped: int) -> None:
    table = table_of([value for value, _ in records]).slice(skipped)
    mask = [keep for _, keep in records][skipped:]

    left = kept_of(table, mask)

    assert left.schema.equals(VIEWED_SCHEMA)
    assert left.cast(SCHEMA).equals(table.filter(pa.array(mask, pa.bool_())))


def test_a_mask_may_come_in_several_chunks() -> None:
    table = table_of([LONG, b"b", None, LONG + b"d"])
    mask = pa.chunked_array([[True, False], [True, True]])
    assert kept(table, mask, 3)["value"].to_pylist() == [LONG, None, LONG + b"d"]


def test_values_may_come_in_several_chunks() -> None:
    table = pa.concat_tables([table_of([LONG, b"b"]), table_of([None, LONG + b"d"])])
    assert kept_of(table, [True, False, True, True])["value"].to_pylist() == [LONG, None, LONG + b"d"]


@pytest.mark.parametrize("keep", [[True, False, True, True], [False, True, False, False]])
@pytest.mark.parametrize("chunks", [1, 2])
def test_values_that_were_read_as_views_are_kept_as_well(keep: list[bool], chunks: int) -> None:
    pieces = [with_views(table_of([LONG, b"b", None, LONG + b"d"])) for _ in range(chunks)]
    left = kept_of(pa.concat_tables(pieces), keep * chunks)
    expected = [value for value, stays in zip([LONG, b"b", None, LONG + b"d"], keep, strict=True) if stays]
    assert left.schema.equals(VIEWED_SCHEMA)
    assert left["value"].to_pylist() == expected * chunks


def test_what_is_kept_of_most_records_refers_to_the_buffer_that_was_read() -> None:
    table = table_of([LONG] * 10)
    read = table["value"].chunk(0).buffers()[2].address
    left = kept_of(table, [True] * 9 + [False])["value"].chunk(0)
    assert left.buffers()[2].address == read


def test_what_is_kept_of_few_records_lets_go_of_the_buffer_that_was_read() -> None:
    table = table_of([LONG] * 100)
    left = kept_of(table, [True] + [False] * 99)["value"].chunk(0)
    assert sum(buffer.size for buffer in left.buffers() if buffer) < 10 * len(LONG)


@pytest.mark.parametrize("start", [0, 3])
def test_bytes_count_the_values_that_are_viewed_and_not_their_buffer(start: int) -> None:
    values = [b"", None, b"short", LONG, LONG * 2]
    viewed = with_views(table_of(values)).slice(start)
    without = viewed.drop_columns(["value"]).nbytes
    assert bytes_of(viewed) == without + sum(len(value or b"") + 16 for value in values[start:])
