"""Events of several tables never meet in one topic unseen, and what is no change of a row is said or left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.sources.change_tables import TableChoice
from keptlog.sources.debezium import ChangeEvents

KEY = b'{"id":1}'


def event(table: str, op: str = "c", schema: str | None = "public", **row: Any) -> dict[str, Any]:
    source = {"db": "shop", "schema": schema, "table": table, "ts_ms": 5}
    image = {"before" if op == "d" else "after": {"id": 1} | row}
    return {"key": {"id": 1}, "value": {"op": op, "source": source} | image}


NULL = {"key": {"id": 1}, "value": None}
HEARTBEAT = {"key": {"serverName": "shop"}, "value": {"ts_ms": 1}}
NO_ROWS = [
    (HEARTBEAT, "a heartbeat"),
    ({"ts_ms": 1}, "a heartbeat"),
    (
        {"key": {"databaseName": "shop"}, "value": {"source": {}, "ddl": "ALTER TABLE users", "tableChanges": []}},
        "a change of the schema",
    ),
    ({"status": "BEGIN", "id": "571:1", "event_count": None}, "the mark of a transaction"),
    ({"value": {"op": "m", "message": {}}, "key": {"prefix": "p"}}, "a message"),
]


def taken(choice: TableChoice, *lines: Any) -> list[NewRecord]:
    events = ChangeEvents((), 0, choice)
    return [record for line in lines for record in events.records(json.dumps(line).encode())]


def test_an_event_of_another_table_is_refused_because_equal_keys_would_be_one() -> None:
    with pytest.raises(InvalidRecord) as caught:
        taken(TableChoice(), event("users"), event("users", "d"), event("orders"))
    assert "of table shop.public.orders, and those before are of shop.public.users" in str(caught.value)
    assert "take one of them (--table shop.public.orders), or both" in str(caught.value)


def named(db: str, table: str) -> dict[str, Any]:
    return {"key": {"id": 1}, "value": {"op": "c", "source": {"db": db, "table": table}, "after": {"id": 1}}}


def test_a_name_that_two_tables_have_is_refused_unless_both_are_meant() -> None:
    events = (named("eu", "users"), named("us", "orders"), named("us", "users"))
    with pytest.raises(InvalidRecord) as caught:
        taken(TableChoice("users"), *events)
    assert "'users' means both eu.users and us.users: equal keys of two tables would be one" in str(caught.value)
    assert "take one of them (--table us.users)" in str(caught.value)
    assert "or both if they belong together (--table '*.users')" in str(caught.value)
    choice = TableChoice("us.users")
    assert len(taken(choice, *events)) == 1
    assert choice.left_out == {"an event of eu.users": 1, "an event of us.orders": 1}
    assert len(taken(TableChoice("*.users"), *events)) == 2


@pytest.mark.parametrize("pattern", ["users", "public.users", "shop.public.users", "shop.*.users", "us*"])
def test_a_chosen_table_is_taken_and_the_others_are_counted(pattern: str) -> None:
    choice = TableChoice(pattern)
    records = taken(choice, event("users", n=1), event("orders"), event("users", n=2), event("orders", "d"))
    assert [record.value for record in records] == [b'{"id":1,"n":1}', b'{"id":1,"n":2}']
    assert choice.left_out == {"an event of shop.public.orders": 2}


def test_the_null_after_a_delete_that_was_left_out_is_left_out_with_it() -> None:
    lines = (event("users"), event("orders", "d"), NULL, event("users", "d"), NULL)
    assert [record.value for record in taken(TableChoice("users"), *lines)] == [b'{"id":1}', None, None]


def test_a_chosen_table_may_be_told_without_its_database() -> None:
    flat = {"key": {"id": 1}, "value": {"id": 1, "__op": "u", "__table": "users"}}
    assert len(taken(TableChoice("users"), named("eu", "users"), flat)) == 2
    assert len(taken(TableChoice("users"), flat, named("eu", "users"))) == 2
    with pytest.raises(InvalidRecord, match=r"'users' means both eu\.users and us\.users"):
        taken(TableChoice("users"), named("eu", "users"), flat, named("us", "users"))
    with pytest.raises(InvalidRecord, match=r"'users' means both eu\.users and us\.users"):
        taken(TableChoice("users"), flat, named("eu", "users"), named("us", "users"))


@pytest.mark.parametrize("told", [{"__deleted": "true"}, {"__deleted": True}, {"__op": "d"}])
def test_so_is_the_null_after_a_flattened_delete(told: dict[str, Any]) -> None:
    deleted = {"key": {"id": 1}, "value": {"id": 1, "__table": "orders", **told}}
    assert taken(TableChoice("users"), deleted, NULL) == []


def test_a_flattened_row_that_was_left_out_is_no_delete_whatever_its_columns_are_called() -> None:
    row = {"key": {"id": 1}, "value": {"id": 1, "op": "d", "__op": "u", "__table": "orders"}}
    with pytest.raises(InvalidRecord, match="a null that stands alone tells no table"):
        taken(TableChoice("users"), row, NULL)


def test_a_truncate_of_a_table_that_is_not_wanted_is_left_out() -> None:
    flat = {"key": None, "value": {"__op": "t", "__table": "orders"}}
    assert taken(TableChoice("users"), event("orders", "t"), flat) == []


@pytest.mark.parametrize(
    "lines", [(event("users"), event("orders"), NULL), (NULL, event("orders"), event("users")), (NULL, event("users"))]
)
def test_a_null_that_may_be_of_another_table_is_refused(lines: Sequence[Any]) -> None:
    """Its delete may stand at the end of the file before, and be one of another table."""
    with pytest.raises(InvalidRecord, match="a null that stands alone tells no table"):
        taken(TableChoice("users"), *lines)
    assert taken(TableChoice(), NULL, event("users"))[0].value is None


@pytest.mark.parametrize("columns", [{"status": "END"}, {"ddl": "x"}, {"op": "m"}, {"tableChanges": []}])
def test_a_flattened_row_is_one_whatever_its_columns_are_called(columns: dict[str, Any]) -> None:
    row = {"id": 1, **columns}
    [set_to, deleted] = taken(
        TableChoice(rows_only=True),
        {"key": {"id": 1}, "value": {**row, "__op": "u", "__deleted": "false"}},
        {"key": {"id": 1}, "value": {**row, "__op": "d", "__deleted": "true"}},
    )
    assert set_to.value is not None
    assert json.loads(set_to.value).items() >= row.items()
    assert deleted.value is None


def test_tables_that_belong_together_are_taken_together() -> None:
    assert len(taken(TableChoice("*"), event("users_1"), event("users_2", schema=None))) == 2


def test_flattened_rows_tell_their_table_too() -> None:
    rows = [{"id": 1, "__op": "c", "__table": table} for table in ("users", "orders")]
    with pytest.raises(InvalidRecord, match="of table orders, and those before are of users"):
        taken(TableChoice(), *({"key": {"id": 1}, "value": row} for row in rows))


@pytest.mark.parametrize(("line", "what"), NO_ROWS)
def test_what_is_no_change_of_a_row_is_refused_or_left_out(line: Any, what: str) -> None:
    with pytest.raises(InvalidRecord, match=f"{what} is no change of a row: leave such lines out with --rows-only"):
        taken(TableChoice(), line)
    choice = TableChoice(rows_only=True)
    assert len(taken(choice, event("users"), line, event("users"))) == 2
    assert choice.left_out == {what: 1}


MAXWELL = {"database": "shop", "table": "users", "type": "update", "xid": 2, "data": {"id": 1}, "old": {}}
CANAL = {
    "database": "shop",
    "table": "users",
    "type": "INSERT",
    "isDdl": False,
    "data": [{"id": "1"}],
    "es": 1,
    "old": None,
}
GOLDEN_GATE = {"table": "SHOP.USERS", "op_type": "I", "op_ts": "2024-01-01", "pos": "0", "after": {"ID": 1}}


@pytest.mark.parametrize(
    ("line", "program"), [(MAXWELL, "Maxwell"), (CANAL, "Canal"), (GOLDEN_GATE, "Oracle GoldenGate")]
)
def test_the_forms_of_other_programs_are_named(line: Any, program: str) -> None:
    with pytest.raises(InvalidRecord, match=f"the event is in {program}'s form"):
        taken(TableChoice(), {"key": KEY.decode(), "value": line})


def test_a_row_that_gets_another_key_leaves_a_tombstone_under_its_old_one() -> None:
    update = {"op": "u", "before": {"id": 1, "n": 1}, "after": {"id": 2, "n": 1}, "source": {"ts_ms": 5}}
    old, new = ChangeEvents(("id",), 0).records(json.dumps(update).encode())
    assert old == NewRecord(KEY, None, 5)
    assert new == NewRecord(b'{"id":2}', b'{"id":2,"n":1}', 5)


@pytest.mark.parametrize("before", [None, {"n": 0}, {"id": 2, "n": 0}])
def test_a_row_that_keeps_its_key_is_one_record(before: Any) -> None:
    update = {"op": "u", "before": before, "after": {"id": 2, "n": 1}}
    assert len(ChangeEvents(("id",), 0).records(json.dumps(update).encode())) == 1


def test_a_flattened_row_may_have_columns_called_key_and_value() -> None:
    row = {"id": 1, "key": "k", "value": "v", "__deleted": "false"}
    [record] = ChangeEvents(("id",), 0).records(json.dumps(row).encode())
    assert (record.key, record.value) == (KEY, b'{"id":1,"key":"k","value":"v"}')
