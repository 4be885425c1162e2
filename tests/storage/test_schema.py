"""Records survive their way through a segment file, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.record import Record, TimestampType
from keptlog.storage.schema import SCHEMA, from_arrow, to_arrow
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.io.files import TableFiles

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, beyond which no reader shows a time."""

bytes_or_null = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.text(max_size=5), bytes_or_null), max_size=3).map(tuple)
times = st.sampled_from([-1, 0, 1, LATEST_MS]) | st.integers(-1, LATEST_MS)


@st.composite
def batches(draw: st.DrawFn) -> list[Record]:
    """Records at rising offsets, with all that Kafka allows in them."""
    offsets = sorted(draw(st.sets(st.integers(0, 2**62), max_size=8)))
    return [
        Record(
            offset=offset,
            key=draw(bytes_or_null),
            value=draw(bytes_or_null),
            timestamp_ms=draw(times),
            timestamp_type=draw(st.sampled_from(TimestampType)),
            headers=draw(headers),
            delete_horizon_ms=draw(st.none() | times),
        )
        for offset in offsets
    ]


@given(batches())
def test_records_become_arrow_and_records_again(records: list[Record]) -> None:
    table = to_arrow(3, records)
    assert table.schema.equals(SCHEMA)
    table.validate(full=True)
    assert list(from_arrow(table.to_batches())) == records
    assert table["partition"].to_pylist() == [3] * len(records)


@given(records=batches().filter(bool))
def test_records_go_into_a_file_and_come_out_the_same(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record]
) -> None:
    folder = tmp_path_factory.mktemp("segments")
    files = TableFiles()
    writer = SegmentWriter(files, lambda base: str(folder / f"{base}.parquet"), target_bytes=2**20)
    writer.write(to_arrow(0, records))
    (segment,) = writer.finish()
    tables = read_row_groups(files, segment)
    assert [record for table in tables for record in from_arrow(table.to_batches())] == records


def test_null_and_empty_are_not_the_same() -> None:
    records = [
        Record(0, b"", b"", 0, headers=(("", b""),)),
        Record(1, None, None, 0, headers=(("", None),)),
    ]
    assert list(from_arrow(to_arrow(0, records).to_batches())) == records


def test_headers_may_repeat_and_keep_their_order() -> None:
    headers = (("b", b"1"), ("a", b"2"), ("b", None), ("b", b"1"))
    (record,) = from_arrow(to_arrow(0, [Record(0, b"k", b"v", 0, headers=headers)]).to_batches())
    assert record.headers == headers


def test_no_headers_are_an_empty_list_and_never_null() -> None:
    table = to_arrow(0, [Record(0, b"k", b"v", 0)])
    assert table["headers"].to_pylist() == [[]]
    assert not SCHEMA.field("headers").nullable


def test_no_records_are_a_table_too() -> None:
    assert to_arrow(0, []).num_rows == 0
    assert list(from_arrow(to_arrow(0, []).to_batches())) == []


def test_times_are_stored_as_utc_and_known_by_every_reader(tmp_path: Path) -> None:
    pq.write_table(to_arrow(0, [Record(0, b"k", b"v", 1_700_000_000_123)]), tmp_path / "x.parquet")
    column = pq.read_table(tmp_path / "x.parquet")["timestamp"]
    assert column.type == pa.timestamp("us", tz="UTC")
    assert column[0].as_py().isoformat() == "2023-11-14T22:13:20.123000+00:00"


def test_every_column_carries_the_field_id_by_which_iceberg_finds_it() -> None:
    ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in SCHEMA}
    assert ids == {
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "timestamp_type": 4,
        "key": 5,
        "value": 6,
        "headers": 7,
        "delete_horizon": 8,
    }
    element = SCHEMA.field("headers").type.value_field
    assert int(element.metadata[b"PARQUET:field_id"]) == 9
    assert [int(field.metadata[b"PARQUET:field_id"]) for field in element.type] == [10, 11]
