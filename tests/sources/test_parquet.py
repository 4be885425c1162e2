"""Rows of Parquet files are records, whatever their columns are called and typed, or refused with what would help."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.sources import parquet
from keptlog.sources.parquet import ParquetRows
from keptlog.sources.place import Place
from tests.logs import open_store
from tests.profiles import examples

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def read(path: Path, place: Place | None = None, **columns: str) -> list[NewRecord]:
    return list(ParquetRows(str(path), columns, NOW_MS).records(place or Place()))


def test_a_name_of_a_header_that_is_not_text_is_a_bad_row(file: Path) -> None:
    names = pa.array([b"a", b"b", b"\xff"]).view(pa.string())
    pairs = pa.StructArray.from_arrays([names, pa.nulls(3, pa.binary())], ["key", "value"])
    write(file, key=["k"] * 3, value=["v"] * 3, headers=pa.ListArray.from_arrays([0, 2, 2, 3], pairs))
    place = Place()
    with pytest.raises(InvalidRecord, match="a header's name is not UTF-8"):
        read(file, place)
    assert place.number == 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.parquet"


def write(file: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), file, row_group_size=3)
    return file


def test_columns_are_found_by_the_names_of_fields(file: Path) -> None:
    write(file, key=["a", "b"], value=[b"1", None], timestamp=[5, None], partition=[1, None], other=[1, 2])
    assert read(file) == [NewRecord(b"a", b"1", 5, 1), NewRecord(b"b", None, NOW_MS)]


def test_columns_of_other_names_are_named_and_those_that_only_seem_to_be_fields_left_out(file: Path) -> None:
    write(file, id=["a"], doc=["1"], key=["x"], timestamp=["yesterday"], headers=[1], partition=["p"])
    assert read(file, key="id", value="doc", timestamp="", headers="", partition="") == [NewRecord(b"a", b"1", NOW_MS)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary(3),
        pa.dictionary(pa.int16(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_binary()),
    ],
    ids=str,
)
def test_text_and_bytes_of_all_kinds_are_bytes(file: Path, kind: pa.DataType) -> None:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_text = "string" in str(plain)
    written = pa.array(["äb", None, "xyz"] if is_text else ["äb".encode(), None, b"xyz"], plain)
    write(file, key=["k"] * 3, value=written.dictionary_encode() if plain is not kind else written)
    assert [record.value for record in read(file)] == ["äb".encode(), None, b"xyz"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
def test_a_whole_number_is_its_digits(file: Path, kind: pa.DataType) -> None:
    write(file, key=pa.array([7, 120], kind), value=pa.array([0, None], kind))
    assert [(record.key, record.value) for record in read(file)] == [(b"7", b"0"), (b"120", None)]


def test_a_column_without_a_name_is_no_field(file: Path) -> None:
    """``--column key=`` names none, and nobody asked for offsets."""
    names = ["", "timestamp", "headers", "partition", "value"]
    pq.write_table(pa.table([["row-1"], [5], [[]], [0], ["v"]], names=names), file)
    assert read(file, key="", timestamp="", headers="", partition="") == [NewRecord(None, b"v", NOW_MS)]
    pq.write_table(pa.table([[7], [8], ["k"], ["v"]], names=["", "", "key", "value"]), file)
    assert next(ParquetRows(str(file), {}, NOW_MS).batches(Place())).column("offset").to_pylist() == [None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_times_are_milliseconds_whatever_their_unit_and_utc_if_they_have_no_zone(
    file: Path, unit: str, zone: str | None
) -> None:
    when = datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC)
    times = pa.array([int(when.timestamp())], pa.timestamp("s")).cast(pa.timestamp(unit)).cast(pa.int64())
    write(file, key=["k"], value=["v"], timestamp=times.cast(pa.timestamp(unit, tz=zone)))
    assert read(file)[0].timestamp_ms == int(when.timestamp()) * 1000


@pytest.mark.parametrize("stored", [True, False])
def test_times_as_spark_and_hive_write_them_are_right_in_all_years(file: Path, *, stored: bool) -> None:
    """Their twelve bytes have nanoseconds, and as a long those end in the year 2262: 2600 became 2015."""
    times = [datetime(2600, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
    column = pa.array([*times, datetime(1970, 1, 1, tzinfo=UTC)], pa.timestamp("us"))
    table = pa.table({"key": ["k"] * 3, "value": ["v"] * 3, "timestamp": column})
    pq.write_table(table, file, use_deprecated_int96_timestamps=True, store_schema=stored)
    assert [record.timestamp_ms for record in read(file)] == [19_880_899_200_000, LATE * 1000 - 1, 0]
    early = table.slice(0, 1).set_column(2, "timestamp", pa.array([datetime(1500, 1, 1, tzinfo=UTC)], column.type))
    pq.write_table(early, file, use_deprecated_int96_timestamps=True, store_schema=stored)
    with pytest.raises(InvalidRecord, match=r"timestamp 1500-01-01 .* is no time in ms"):
        read(file)


def test_headers_are_a_list_of_structs_or_a_map_and_keep_order_repeats_and_nulls(file: Path) -> None:
    pairs = [("h", b"1"), ("h", None), ("b", b"\xff")]
    kinds = {
        "key": HEADERS,
        "name": pa.large_list(pa.struct([("name", pa.large_string()), ("value", pa.binary())])),
    }
    for name, kind in kinds.items():
        rows = [None, [], [{name: each, "value": value} for each, value in pairs]]
        write(file, key=["k"] * 3, value=["v"] * 3, headers=pa.array(rows, kind))
        assert [record.headers for record in read(file)] == [(), (), tuple(pairs)]
    write(file, key=["k"] * 3, value=["v"] * 3, headers=pa.array([None, pairs[:1], []], pa.map_("string", "binary")))
    assert [record.headers for record in read(file)] == [(), (("h", b"1"),), ()]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"id": ["a"], "value": ["v"]},
            "no column 'key' for key: name it with --column key=NAME, or --column key= for",
        ),
        ({"key": ["a"], "doc": ["v"]}, "no column 'value' for value: name it with --column value=NAME; it has the"),
        ({"key": [1.5], "value": ["v"]}, "column 'key' is double, and key must be text, bytes or a whole number"),
        ({"key": [Decimal("1.5")], "value": ["v"]}, "column 'key' is decimal128(2, 1)"),
        ({"key": [True], "value": ["v"]}, "column 'key' is bool"),
        ({"key": ["k"], "value": [{"a": 1}]}, "with that column as JSON (to_json)"),
        ({"key": ["k"], "value": ["v"], "timestamp": ["now"]}, "--column timestamp= leaves it out"),
        ({"key": ["k"], "value": ["v"], "headers": [{"a": 1}]}, "headers must be a map of text to bytes"),
        (
            {"key": ["k"], "value": ["v"], "headers": [[{"key": b"\xff", "value": b""}]]},
            "headers must be a map of text",
        ),
        ({"key": ["k"], "value": ["v"], "partition": ["one"]}, "partition must be a whole number"),
    ],
)
def test_a_file_without_a_fitting_column_is_refused_with_what_it_has(
    file: Path, columns: dict[str, list[Any]], message: str
) -> None:
    place = Place()
    with pytest.raises(InvalidRecord) as caught:
        read(write(file, **columns), place)
    assert message in str(caught.value)
    assert place.number == 0


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("field", ["key", "value"])
def test_a_uuid_is_refused_because_it_is_sixteen_bytes_and_a_text(file: Path, field: str, *, stored: bool) -> None:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16)))
    pq.write_table(pa.table({"key": ["k"], "value": ["v"]} | {field: ids}), file, store_schema=stored)
    with pytest.raises(InvalidRecord, match=f"column '{field}' is .*uuid.*, and {field} must be text, bytes or a"):
        read(file)


@pytest.mark.parametrize("field", ["key", "value", "timestamp", "partition"])
def test_a_truth_value_of_eight_bits_is_refused_as_one_of_a_bit(file: Path, field: str) -> None:
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))
    with pytest.raises(InvalidRecord, match=f"column '{field}' is .*bool8.*, and {field} must be"):
        read(write(file, **({"key": ["k"], "value": ["v"]} | {field: flags})))


def test_json_is_the_text_that_it_is(file: Path) -> None:
    document = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}']))
    assert read(write(file, key=["k"], value=document))[0].value == b'{"a": 1}'


def test_a_column_that_was_named_must_be_there(file: Path) -> None:
    with pytest.raises(InvalidRecord, match=r"no column 'when' for timestamp: .* the columns key, value"):
        read(write(file, key=["k"], value=["v"]), timestamp="when")


LATE = 253_402_300_800


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("timestamp", pa.array([0, -2], pa.int64()), "timestamp -2 is no time"),
        ("timestamp", pa.array([0, LATE], pa.timestamp("s")), "timestamp 10000-01-01 00:00:00.000 is no time"),
        ("timestamp", pa.array([0, 2**64 - 1], pa.uint64()), "timestamp 18446744073709551615 is no time"),
        ("timestamp", pa.array([0, -500], pa.timestamp("us")), "timestamp 1969-12-31 23:59:59.999500 is no time"),
        ("offset", pa.array([0, 2**63 - 1]), f"offset {2**63 - 1}: it must be 0 or more, and at most {2**63 - 2}"),
        ("timestamp", pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms")), "is no time"),
        ("partition", pa.array([0, -1], pa.int32()), "partition -1: it must be 0 or more"),
        ("headers", pa.array([[], [{"key": None, "value": b""}]], HEADERS), "a header has no name"),
    ],
)
def test_a_bad_row_is_refused_by_its_number_in_the_file_after_those_before_it(
    file: Path, column: str, values: pa.Array, message: str
) -> None:
    good = pa.array([values[0].as_py()] * 5, values.type)
    rows: Sequence[Any] = pa.concat_arrays([good, values, good])
    write(file, key=["k"] * 12, value=["v"] * 12, **{column: rows})
    place = Place()
    records: list[NewRecord] = []
    named = {"offset": "offset"} if column == "offset" else {}
    with pytest.raises(InvalidRecord, match=message):
        records.extend(ParquetRows(str(file), named, NOW_MS).records(place))
    assert place.number == 7
    assert len(records) == 6


def test_a_pipe_is_no_file_that_parquet_can_be_read_from(file: Path) -> None:
    write(file, key=["k"], value=["v"])
    pipe = file.with_name("pipe")
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(file.read_bytes()))
    writer.start()
    with pytest.raises(InvalidRecord, match="Parquet can't be read from a pipe, its end comes first: name a file"):
        list(ParquetRows(str(pipe), {}, NOW_MS).records(Place()))
    with pipe.open("rb") as left:
        left.read()
    writer.join()


def test_of_several_bad_rows_the_first_is_named_whichever_field_it_is(file: Path) -> None:
    write(file, key=["k"] * 4, value=["v"] * 4, timestamp=[0, 0, -9, 0], partition=[0, -3, 0, 0])
    place = Place()
    with pytest.raises(InvalidRecord, match="partition -3"):
        read(file, place)
    assert place.number == 2


def test_names_with_dots_are_names_and_a_name_that_comes_twice_is_refused(file: Path) -> None:
    write(file, **{"a.b": ["k"], "a": [{"b": "no"}], "value": ["v"]})
    assert read(file, key="a.b") == [NewRecord(b"k", b"v", NOW_MS)]
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 3, names=["key", "value", "value"]), file)
    with pytest.raises(InvalidRecord, match="it has several columns 'value'"):
        read(file)


def test_what_is_no_parquet_file_or_a_part_of_one_is_refused(file: Path) -> None:
    for content in (b"", b"{}\n", write(file, key=["k"] * 100, value=["v" * 99] * 100).read_bytes()[:-20]):
        file.write_bytes(content)
        with pytest.raises(InvalidRecord, match="it is no Parquet file"):
            read(file)


def test_a_page_that_is_broken_ends_the_reading(file: Path) -> None:
    write(file, key=[f"{number:050d}" for number in range(1000)], value=["v"] * 1000)
    content = bytearray(file.read_bytes())
    content[10:400] = b"\xff" * 390
    file.write_bytes(content)
    with pytest.raises(InvalidRecord, match="it can't be read further"):
        read(file)


def test_batches_hold_some_mib_however_long_the_row_group(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 10_000)
    value = pa.array([bytes([number % 251, number // 251] * 500) for number in range(300)])
    pq.write_table(pa.table({"key": ["k"] * 300, "value": value}), file, compression="none", use_dictionary=False)
    batches = list(ParquetRows(str(file), {}, NOW_MS).batches(Place()))
    assert max(batch.num_rows for batch in batches) <= 10
    assert sum(batch.num_rows for batch in batches) == 300


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.binary(max_size=5),
            st.none() | st.binary(max_size=5),
            st.integers(-1, 2**40),
            st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3),
            st.integers(0, 2),
        ),
        max_size=20,
    ),
)
def test_what_was_written_is_appended_and_read_as_it_was(
    tmp_path: Path, file: Path, rows: list[tuple[Any, ...]]
) -> None:
    store = open_store(tmp_path / "home")
    topic = f"t{len(store.topics())}"
    store.create_topic(topic, 3, {"cleanup.policy": "compact", "message.timestamp.after.max.ms": str(2**60)})
    keys, values, times, headers, partitions = zip(*rows, strict=True) if rows else ([], [], [], [], [])
    write(
        file,
        key=pa.array(keys, pa.binary()),
        value=pa.array(values, pa.binary()),
        timestamp=pa.array(times, pa.int64()),
        headers=pa.array([[{"key": k, "value": v} for k, v in each] for each in headers], HEADERS),
        partition=pa.array(partitions, pa.int32()),
    )
    store.append(topic, ParquetRows(str(file), {}, NOW_MS).records(Place()), "run", NOW_MS)
    found = [
        (record.key, record.value, record.timestamp_ms, list(record.headers), partition)
        for partition, record in store.read(topic)
    ]
    assert found == sorted(rows, key=lambda row: int(row[4]))
