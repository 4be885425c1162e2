"""Keys are looked up and grouped whatever number of bytes they have together."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keptlog.storage import keys, versions
from keptlog.storage.keys import (
    are_among,
    distinct,
    fixed_length,
    grouped_by_key,
    in_order_of_keys,
    key_bytes,
    rows_of,
)
from keptlog.storage.versions import latest_by_offset

KEYS = st.one_of(st.lists(st.binary(max_size=4), max_size=12), st.lists(st.binary(min_size=3, max_size=3), max_size=12))


@pytest.fixture(params=[1, 5, 2**30])
def most_key_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(keys, "MOST_KEY_BYTES", request.param)
    return int(request.param)


@pytest.fixture(params=[(1, 0), (5, 250_000), (2**30, 0), (2**30, 250_000)])
def way_to_look_up(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In lots and in one, by a join and by a lookup table."""
    most_key_bytes, joined_keys = request.param
    monkeypatch.setattr(keys, "MOST_KEY_BYTES", most_key_bytes)
    monkeypatch.setattr(keys, "JOINED_KEYS", joined_keys)


def column(values: list[bytes | None], chunk: int = 3) -> pa.ChunkedArray:
    return pa.chunked_array([values[start : start + chunk] for start in range(0, len(values), chunk)], pa.binary())


WANTED = st.lists(st.one_of(st.none(), st.binary(max_size=4)))
OF_ONE_LENGTH = st.lists(st.one_of(st.none(), st.binary(min_size=2, max_size=2)))


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.one_of(WANTED, OF_ONE_LENGTH), length=st.one_of(st.none(), st.just(2)), data=st.data())
def test_a_key_is_found_in_its_row(
    way_to_look_up: None, wanted: list[bytes | None], length: int | None, data: st.DataObject
) -> None:
    some = st.binary(max_size=4) if length is None else st.binary(min_size=length, max_size=length)
    among = data.draw(
        st.lists(st.one_of(some, *([st.sampled_from(known)] if (known := _known(wanted)) else [])), unique=True)
    )
    # Slices, because a row group's part of a column is one.
    keys_wanted, keys_among = column([None, *wanted]).slice(1), column([b"before", *among]).slice(1)
    found = rows_of(keys_wanted, keys_among)
    assert found.to_pylist() == [among.index(key) if key in among else None for key in wanted]
    assert are_among(keys_wanted, keys_among).to_pylist() == [key in among for key in wanted]


def _known(keys: list[bytes | None]) -> list[bytes]:
    return [key for key in keys if key is not None]


@pytest.fixture(params=[0, 3, 50_000])
def few_records(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records as a stream, or where there are more than a few, or none."""
    monkeypatch.setattr(versions, "_FEW_RECORDS", request.param)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_keys=KEYS)
def test_each_key_is_one_group(most_key_bytes: int, few_records: None, given_keys: list[bytes]) -> None:
    records = pa.table({"key": column(list(given_keys)), "offset": range(len(given_keys))})
    wanted = {key: offset for offset, key in enumerate(given_keys)}
    grouped = grouped_by_key(records, [("offset", "max")])
    assert dict(zip(grouped["key"].to_pylist(), grouped["offset_max"].to_pylist(), strict=True)) == wanted
    assert grouped.num_rows == len(wanted)
    latest = latest_by_offset(records.slice(row, 1) for row in range(len(given_keys)))
    assert latest.num_rows == len(wanted)
    assert dict(zip(latest["key"].to_pylist(), latest["offset"].to_pylist(), strict=True)) == wanted


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_keys=KEYS)
def test_records_come_in_the_order_of_their_keys(most_key_bytes: int, given_keys: list[bytes]) -> None:
    records = pa.table({"offset": range(len(given_keys)), "key": column(list(given_keys))})
    in_order = in_order_of_keys(records)
    assert in_order.schema == records.schema
    pairs = zip(given_keys, range(len(given_keys)), strict=True)
    assert list(zip(in_order["key"].to_pylist(), in_order["offset"].to_pylist(), strict=True)) == sorted(pairs)
    chunks = (chunk for chunk in in_order["key"].chunks if len(chunk) > 1)
    assert all(key_bytes(pa.chunked_array([chunk])) <= most_key_bytes for chunk in chunks)


def test_no_chunk_of_keys_comes_near_to_arrows_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of 64 KiB, a lot of 4 MiB, 16 lots: where one hash table took all, its offsets would go round at 2 GiB."""
    monkeypatch.setattr(keys, "MOST_KEY_BYTES", 2**22)
    tables = (
        pa.table({"key": [number.to_bytes(2**16, "big")], "offset": [number]}, schema=SCHEMA) for number in range(1024)
    )
    latest = latest_by_offset(tables)
    assert sorted(latest["offset"].to_pylist()) == list(range(1024))
    assert key_bytes(latest["key"]) == 2**26
    largest = max(key_bytes(pa.chunked_array([chunk])) for chunk in latest["key"].chunks)
    assert largest <= 2 * 2**22 + 2**16
    assert pc.all(are_among(latest["key"], latest["key"])).as_py()


def test_keys_of_one_length_take_no_more_memory_than_others() -> None:
    """Arrow gives grouped keys as slices of one buffer, and would copy all of it for each slice that is cast."""
    rows = 100_000
    for change in (b"", b"longer"):
        given = [b"%014d" % number for number in range(rows)]
        given[0] += change
        records = pa.table({"key": given, "offset": range(rows)}, schema=SCHEMA)
        del given
        for grouped in (latest_by_offset([records]), grouped_by_key(records, [("offset", "max")])):
            buffers = {buffer.address: buffer.size for chunk in grouped["key"].chunks for buffer in chunk.buffers()[1:]}
            assert sum(buffers.values()) < 3 * rows * 18
            assert sorted(grouped["key"].to_pylist()) == sorted(records["key"].to_pylist())


SCHEMA = pa.schema([("key", pa.binary()), ("offset", pa.int64())])


@pytest.mark.parametrize("length", [7, 8, 9])
def test_keys_of_eight_bytes_are_not_given_to_arrow_as_numbers(length: int) -> None:
    longs = column([number.to_bytes(length, "big") for number in range(10)])
    assert fixed_length(longs) == (None if length == 8 else length)


@pytest.mark.parametrize(
    "look",
    [
        lambda keys: rows_of(keys, keys),
        distinct,
        lambda keys: latest_by_offset([pa.table({"key": keys, "offset": range(len(keys))})]),
    ],
    ids=["looked up", "distinct", "latest"],
)
def test_keys_of_two_longs_are_given_to_arrows_tables_with_a_byte_more(
    look: Callable[[pa.ChunkedArray], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that end with their low byte, as Kafka writes them, would take a hundred times as long as others."""
    lengthened: list[pa.ChunkedArray] = []

    def with_one_more(given: pa.ChunkedArray) -> pa.ChunkedArray:
        lengthened.append(_LENGTHENED(given))
        return lengthened[-1]

    monkeypatch.setattr(keys, "_lengthened", with_one_more)
    look(column([b"".join(part.to_bytes(8, "big") for part in divmod(number, 20)) for number in range(400)], 100))
    assert lengthened
    assert all(set(pc.binary_length(each).to_pylist()) == {17} for each in lengthened)


_LENGTHENED = keys._lengthened
OF_SIXTEEN = st.lists(st.one_of(st.sampled_from([bytes(16), bytes(15), bytes(17), b"\0" * 15 + b"a"]), st.none()))


@pytest.fixture(params=[1, 100])
def many_halved(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_MANY_HALVED", request.param)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=OF_SIXTEEN, among=OF_SIXTEEN)
def test_keys_of_sixteen_bytes_are_told_from_longer_and_shorter_ones(
    many_halved: None, wanted: list[bytes | None], among: list[bytes | None]
) -> None:
    once = distinct(column(among)).to_pylist()
    assert sorted(once) == sorted(set(_known(among)))
    found = rows_of(column(wanted), column(once))
    assert found.to_pylist() == [once.index(key) if key in once else None for key in wanted]
    records = pa.table({"key": column(among), "offset": range(len(among))}, schema=SCHEMA)
    latest = latest_by_offset([records])
    pairs = dict(zip(latest["key"].to_pylist(), latest["offset"].to_pylist(), strict=True))
    assert pairs == {key: offset for offset, key in enumerate(among) if key is not None}
