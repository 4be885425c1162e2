"""Numbers in rows are stored as the database's connector wrote them, digit by digit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.sources.debezium import ChangeEvents
from keptlog.sources.exact_json import compact, loads

WRITTEN = [
    b"12345678901234567.89",
    b"1.10",
    b"-0.0",
    b"-0",
    b"1e999",
    b"1E+2",
    b"0.1000000000000000055511151231257827",
    b"123456789012345678901234567890",
]


@pytest.mark.parametrize("number", WRITTEN, ids=bytes.decode)
def test_a_number_in_a_row_and_in_its_key_is_stored_as_it_was_written(number: bytes) -> None:
    after = b'{"id": %b, "nested": {"list": [%b, "a"]}}' % (number, number)
    [record] = ChangeEvents(("id",), 0).records(b'{"op": "c", "after": %b}' % after)
    assert record.key == b'{"id":%b}' % number
    assert record.value == b'{"id":%b,"nested":{"list":[%b,"a"]}}' % (number, number)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    )
)
def test_all_else_is_written_as_pythons_own_encoder_does_it(value: object) -> None:
    expected = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert compact(value) == expected
    assert compact(loads(expected)) == expected
    assert compact(loads(f"[{expected},1.0]")) == f"[{expected},1.0]"
