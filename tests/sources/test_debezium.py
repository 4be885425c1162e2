"""Debezium's change events are records in all the shapes in which files of them are found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.sources.change_tables import TableChoice
from keptlog.sources.debezium import ChangeEvents
from keptlog.sources.unavailable import PLACEHOLDER

NOW_MS = 1_700_000_000_000
ADA = {"id": 1004, "name": "Ada ä", "balance": 1.5}
ADA_BYTES = '{"id":1004,"name":"Ada ä","balance":1.5}'.encode()
KEY = b'{"id":1004}'


def event(op: str, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    source = {"version": "3.0.0", "connector": "postgresql", "ts_ms": 111, "snapshot": "false", "table": "customers"}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 222} | more


def parsed(*lines: Any, key_fields: tuple[str, ...] = (), choice: TableChoice | None = None) -> list[NewRecord]:
    events = ChangeEvents(key_fields, NOW_MS, choice or TableChoice())
    return [
        record
        for line in lines
        for record in events.records(line if isinstance(line, bytes) else json.dumps(line).encode())
    ]


@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_a_row_that_was_written_is_the_value_at_the_time_of_the_database(op: str) -> None:
    assert parsed({"key": {"id": 1004}, "value": event(op, after=ADA)}) == [NewRecord(KEY, ADA_BYTES, 111)]


def test_a_delete_is_a_tombstone_and_the_null_behind_it_is_the_same_one_again() -> None:
    delete, null = parsed(
        {"key": {"id": 1004}, "value": event("d", before=ADA)}, {"key": {"id": 1004}, "value": None, "timestamp": 999}
    )
    assert delete == null == NewRecord(KEY, None, 111)


def test_a_null_that_stands_alone_is_a_tombstone_at_the_time_of_its_line() -> None:
    assert parsed({"key": {"id": 1}, "value": None, "timestamp": 7}, {"key": {"id": 2}, "value": None}) == [
        NewRecord(b'{"id":1}', None, 7),
        NewRecord(b'{"id":2}', None, NOW_MS),
    ]
    written = {"key": {"id": 1}, "value": event("c", after=ADA)}
    assert parsed(written, {"key": {"id": 1}, "value": None, "timestamp": 7})[1] == NewRecord(b'{"id":1}', None, 7)
    other = {"key": {"id": 2}, "value": None, "timestamp": 7}
    assert parsed({"key": {"id": 1}, "value": event("d")}, other)[1] == NewRecord(b'{"id":2}', None, 7)


def test_schemas_and_text_around_key_and_value_make_no_difference() -> None:
    key, value = {"id": 1004}, event("c", after=ADA)
    with_schema = {"key": {"schema": {"a": 1}, "payload": key}, "value": {"schema": {"b": 2}, "payload": value}}
    as_text = {name: json.dumps(each) for name, each in with_schema.items()}
    kcat = {"topic": "t", "partition": 3, "offset": 9, "tstype": "create", "ts": 5, "broker": 1}
    shapes = [
        {"key": key, "value": value},
        with_schema,
        as_text,
        {"key": json.dumps(key), "value": json.dumps(value)},
        kcat | {"key": json.dumps(key), "payload": json.dumps(value)},
        kcat | {"key": as_text["key"], "payload": as_text["value"]},
    ]
    assert parsed(*shapes) == [NewRecord(KEY, ADA_BYTES, 111)] * len(shapes)
    null_with_schema = {"key": key, "value": {"schema": None, "payload": None}}
    assert parsed(null_with_schema) == [NewRecord(KEY, None, NOW_MS)]


def test_the_value_alone_gets_a_key_of_the_columns_that_are_named() -> None:
    row = {"org": "x", "id": 7, "name": "n"}
    create, envelope, delete, null = parsed(
        event("c", after=row),
        {"schema": {}, "payload": event("u", after=row)},
        event("d", before=row),
        b"null",
        key_fields=("id", "org"),
    )
    assert {create.key, envelope.key, delete.key, null.key} == {b'{"id":7,"org":"x"}'}
    assert (delete.value, null) == (None, delete)


def test_named_columns_stand_in_for_a_null_key_and_are_refused_beside_another() -> None:
    line = {"key": {"pk": 1}, "value": event("c", after=ADA)}
    assert [record.key for record in parsed(line | {"key": None}, key_fields=("id",))] == [KEY]
    with pytest.raises(InvalidRecord, match="the event has a key of its own, which --key-field would put aside"):
        parsed(line, key_fields=("id",))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("user-7", b"user-7"),
        ('"quoted"', b'"quoted"'),
        ("1004", b"1004"),
        (1004, b"1004"),
        ("Struct{id=1}", b"Struct{id=1}"),
        ({"schema": {"type": "string"}, "payload": "user-7"}, b"user-7"),
        ('{"schema": {"type": "int32"}, "payload": 7}', b"7"),
        ('{ "b": 1, "a": "\\u00e4" }', '{"b":1,"a":"ä"}'.encode()),
        ("", b""),
    ],
)
def test_a_key_is_compact_json_in_its_own_order_or_the_text_that_it_is(key: Any, expected: bytes) -> None:
    assert parsed({"key": key, "value": event("c", after=ADA)})[0].key == expected


def test_a_document_of_mongodb_is_the_text_that_it_is() -> None:
    document = '{"_id": {"$oid": "1"},"n": 1}'
    [keyed] = parsed({"key": {"id": "1"}, "value": event("c", after=document)})
    [unkeyed] = parsed(event("c", after=document), key_fields=("_id",))
    assert keyed.value == unkeyed.value == document.encode()
    assert unkeyed.key == b'{"_id":{"$oid":"1"}}'


def test_the_time_is_the_first_that_is_known() -> None:
    line = {"key": {"id": 1}, "timestamp": 333}
    no_source = event("r", after=ADA, source={"ts_ms": 0, "snapshot": "true"})
    no_time = event("r", after=ADA, source=None, ts_ms=None)
    records = parsed(
        line | {"value": no_source},
        line | {"value": no_time},
        {"key": {}, "value": no_time},
        {"key": {}, "ts": 4, "value": no_time},
    )
    assert [record.timestamp_ms for record in records] == [222, 333, NOW_MS, 4]


def test_rows_that_debezium_has_flattened_are_taken_if_they_say_what_happened() -> None:
    flat = {"id": 7, "name": "n"}
    keyed = parsed(
        {"key": {"id": 7}, "value": flat | {"__deleted": "false", "__source_ts_ms": 5}},
        {"key": {"id": 7}, "value": flat | {"__op": "u", "__ts_ms": "6", "__table": "t"}},
    )
    unkeyed = (flat | {"__deleted": "true"}, flat | {"__deleted": True}, flat | {"__op": "d"})
    records = [*keyed, *parsed(*unkeyed, key_fields=("id",))]
    assert [record.value for record in records] == [
        b'{"id":7,"name":"n"}',
        b'{"id":7,"name":"n","__table":"t"}',
        None,
        None,
        None,
    ]
    assert [record.timestamp_ms for record in records] == [5, 6, NOW_MS, NOW_MS, NOW_MS]
    assert {record.key for record in records} == {b'{"id":7}'}


@pytest.mark.parametrize(
    "headers",
    [["a", "1", "a", None], [{"key": "a", "value": "1"}, {"key": "a", "value": None}]],
    ids=["kcat", "objects"],
)
def test_headers_come_along(headers: Any) -> None:
    [record] = parsed({"key": {"id": 1}, "value": event("c", after=ADA), "headers": headers})
    assert record.headers == (("a", b"1"), ("a", None))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            {"key": 1, "value": event("t")},
            "op 't': a truncate deletes rows without naming their keys: append what stands before it",
        ),
        ({"key": 1, "value": event("m", message={})}, "a message is no change of a row: leave such lines out"),
        ({"key": 1, "value": event("x", after=ADA)}, "unknown op 'x': it must be c (create)"),
        ({"key": 1, "value": event("c") | {"op": ["c"]}}, "unknown op ['c']"),
        ({"key": 1, "value": event("u")}, "op 'u' without an after image: let the connector capture whole rows"),
        ({"key": 1, "value": "plain"}, "the value is a string, not a change event"),
        ({"key": 1, "value": [1]}, "the value is a list, not a change event"),
        ({"key": 1, "value": ADA}, "no change event: it has no op but id, name, balance; rows that Debezium flattened"),
        (event("c", after=ADA), "the event has no key: name the columns of the primary key (--key-field id)"),
        (b"null", "a null without a key, and not right after a delete"),
        ({"key": None, "value": None}, "a null without a key"),
        ({"key": None, "value": event("c", after=ADA)}, "the event has no key"),
        ({"key": 1, "value": event("c", after=ADA, source={"ts_ms": "x"})}, "must be a whole number, milliseconds"),
        ({"key": 1, "value": event("c", after=ADA), "headers": ["a"]}, "names and values must take turns"),
        (b'{"key": 1, "value": {"op": "c", "after": {"n": NaN}}}', "JSON has no NaN: write it as a string, or null"),
        (b'{"key": "\\ud800", "value": {"op": "c", "after": {}}}', "text that UTF-8 can't hold"),
        (b"{", "not JSON"),
        (b"[]", "a record is a JSON object, not a list"),
    ],
)
def test_what_is_no_change_of_a_row_is_refused_with_what_to_do(line: Any, message: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        parsed(line)
    assert message in str(caught.value)


def test_what_an_update_does_not_tell_of_the_row_before_is_no_other_key() -> None:
    before = {"id": 7, "email": None}
    [record] = parsed(event("u", before=before, after=before | {"email": "a@x"}), key_fields=("email",))
    assert (record.key, record.value is None) == (b'{"email":"a@x"}', False)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (event("c", after={"name": "n"}), "the row has no 'id' for the key: it has name"),
        (event("d"), "the key can't be taken from a row that is null"),
        (event("c", after="text"), "the key can't be taken from a row that is a string"),
        (event("d", before={"id": None, "pk": 7}), "the event deletes a row without telling its 'id', so nobody knows"),
        (event("d", before={"id": PLACEHOLDER}), "(REPLICA IDENTITY FULL)"),
    ],
)
def test_a_row_without_the_columns_of_the_key_is_refused(line: Any, message: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        parsed(line, key_fields=("id",))
    assert message in str(caught.value)
