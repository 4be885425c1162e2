"""Records are ranked by version and offset, whether the two fit into one number or span too much for that."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.storage.versions import latest_of_each_key, ranks

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_FITTING = st.integers(-1000, 1000)
_ANY = st.one_of(_FITTING, st.integers(_LONG_MIN, _LONG_MAX), st.sampled_from([_LONG_MIN, _LONG_MAX]))
_Record = tuple[bytes, int | None, int]
"""Key, version, offset."""


def _records(versions: st.SearchStrategy[int], offsets: st.SearchStrategy[int]) -> st.SearchStrategy[list[_Record]]:
    record = st.tuples(st.sampled_from([b"a", b"b", b"cc"]), st.none() | versions, offsets)
    return st.lists(record, max_size=30, unique_by=lambda record: record[2])


def _table(records: list[_Record]) -> pa.Table:
    keys, versions, offsets = zip(*records, strict=True) if records else ((), (), ())
    columns = [pa.array(keys, pa.binary()), pa.array(offsets, pa.int64()), pa.array(versions, pa.int64())]
    return pa.table(columns, names=["key", "offset", "version"])


def _order(record: _Record) -> tuple[bool, int, int]:
    _, version, offset = record
    return version is not None, version or 0, offset


_RECORDS = st.one_of(
    _records(_FITTING, st.integers(0, 2**40)),
    _records(_ANY, st.integers(0, _LONG_MAX)),
    _records(_ANY, st.integers(0, 3)),
    _records(st.sampled_from([_LONG_MIN, _LONG_MIN + 1]), st.integers(-1, 50)),
)


@given(_RECORDS)
def test_ranks_rise_with_version_and_offset(records: list[_Record]) -> None:
    ranked = sorted(zip(ranks(_table(records)).to_pylist(), records, strict=True))
    assert [record for _, record in ranked] == sorted(records, key=_order)


@given(_RECORDS)
def test_the_latest_of_a_key_is_the_last_by_version_and_offset(records: list[_Record]) -> None:
    latest = latest_of_each_key([_table(records[:5]), _table(records[5:])]).to_pylist()
    expected = {record[0]: record for record in sorted(records, key=_order)}
    assert len(latest) == len(expected)
    assert {each["key"]: (each["key"], each["version"], each["offset"]) for each in latest} == expected


@pytest.mark.parametrize("versions", [[_LONG_MIN, _LONG_MAX, None], [2**62, None, -(2**62)], [None, None, None]])
def test_the_widest_versions_are_ranked_as_all_others(versions: list[int | None]) -> None:
    records = [(b"k", version, offset) for offset, version in enumerate(versions)]
    ranked = sorted(zip(ranks(_table(records)).to_pylist(), records, strict=True))
    assert [record for _, record in ranked] == sorted(records, key=_order)
