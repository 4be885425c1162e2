"""Records come in as JSON lines, or not at all, with a message that says what would be right."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord, Record
from keptlog.sources.json_lines import from_json, to_json

NOW_MS = 1_700_000_000_000


def parsed(*lines: str | bytes) -> list[NewRecord]:
    return [from_json(line if isinstance(line, bytes) else line.encode(), now_ms=NOW_MS) for line in lines]


def test_a_record_without_a_timestamp_gets_the_time_of_the_append() -> None:
    assert parsed('{"key": "k", "value": "v"}') == [NewRecord(b"k", b"v", NOW_MS)]


def test_null_is_a_tombstone_and_an_empty_string_is_a_value() -> None:
    tombstone, empty = parsed('{"key": "k", "value": null}', '{"key": "k", "value": ""}')
    assert (tombstone.value, empty.value) == (None, b"")


def test_bytes_that_are_not_text_come_as_base64() -> None:
    assert parsed('{"key_base64": "/wA=", "value_base64": "/w=="}') == [NewRecord(b"\xff\x00", b"\xff", NOW_MS)]


def test_headers_keep_their_order_their_repeats_and_their_nulls() -> None:
    headers = '[{"key":"h","value":"1"},{"key":"h","value":null},{"key":"b","value_base64":"/w=="}]'
    (record,) = parsed(f'{{"key":"k","value":"v","headers":{headers}}}')
    assert record.headers == (("h", b"1"), ("h", None), ("b", b"\xff"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "a record is a JSON object, not a list"),
        ('{"key": "k"}', 'no "value": write null for a tombstone'),
        ('{"key": "k", "vlaue": "v"}', "unknown field 'vlaue': did you mean 'value'?"),
        ('{"key": 7, "value": "v"}', '"key" is a number: it must be a string or null'),
        ('{"key": "k", "value": {"a": 1}}', '"value" is an object: it must be a string or null'),
        ('{"key": "k", "key_base64": "aw==", "value": "v"}', 'both "key" and "key_base64": give one'),
        ('{"key_base64": "?", "value": "v"}', '"key_base64" is not base64'),
        ('{"key": "\\ud800", "value": "v"}', '"key" is not text that UTF-8 can hold'),
        ('{"key": "k", "value": "v", "timestamp": "now"}', "\"timestamp\" is 'now': it must be a whole number"),
        ('{"key": "k", "value": "v", "timestamp": true}', '"timestamp" is True'),
        ('{"key": "k", "value": "v", "partition": 1.5}', '"partition" is 1.5'),
        ('{"key": "k", "value": "v", "headers": {"a": "b"}}', '"headers" is an object: it must be a list'),
        ('{"key": "k", "value": "v", "headers": [{"value": "b"}]}', "a header must be"),
        ('{"key": "k", "value": "v", "headers": [{"key": "\\ud800"}]}', "a header's key is not text"),
        (b'{"key": "\xff", "value": "v"}', "not UTF-8 at byte 9"),
        ("{", "not JSON: Expecting property name"),
        ('{"key": "k", "value": "v", "timestamp": ' + "1" * 5000 + "}", "not JSON: a number has thousands of digits"),
        (
            '{"key": "k", "value": "v", "headers": [{"key": "h", "valeu": "b"}]}',
            "a header has an unknown field 'valeu': did you mean 'value'?",
        ),
        ('{"key": "k", "value": "v", "headers": [{"key": "h", "hex": "00"}]}', "a header has an unknown field 'hex'"),
    ],
)
def test_a_wrong_line_is_refused_with_what_would_be_right(line: str | bytes, message: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        parsed(line)
    assert message in str(caught.value)


@given(
    key=st.none() | st.binary(max_size=8),
    value=st.none() | st.binary(max_size=8),
    timestamp_ms=st.integers(-1, 2**52),
    headers=st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3),
)
def test_what_is_printed_can_be_read_again(
    key: bytes | None, value: bytes | None, timestamp_ms: int, headers: list[tuple[str, bytes | None]]
) -> None:
    record = Record(9, key, value, timestamp_ms, headers=tuple(headers), delete_horizon_ms=5)
    line = to_json(3, record)
    assert json.loads(line)["offset"] == 9
    assert parsed(line) == [NewRecord(key, value, timestamp_ms, 3, tuple(headers))]
