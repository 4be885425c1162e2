"""JSON lines that others write: what they are is told with what is wrong, and what is advised works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.sources.debezium import ChangeEvents
from keptlog.sources.json_lines import from_json

NOW_MS = 1_700_000_000_000
ROW = {"id": 7, "name": "Ada"}
EVENT = {"before": None, "after": ROW, "op": "c", "source": {"table": "users"}}
KCAT = {"topic": "users", "partition": 3, "offset": 5, "tstype": "create", "ts": NOW_MS - 1, "broker": 1}


def why(line: dict[str, Any]) -> str:
    with pytest.raises(InvalidRecord) as refused:
        from_json(json.dumps(line).encode(), now_ms=NOW_MS)
    return str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        EVENT,
        {"schema": {"type": "struct"}, "payload": EVENT},
        {"key": {"id": 7}, "value": EVENT},
        {"key": "7", "value": EVENT},
        {"key": {"id": 7}, "value": {"schema": {}, "payload": EVENT}},
        {"key": {"schema": {}, "payload": {"id": 7}}, "payload": EVENT | {"op": "d", "before": ROW, "after": None}},
        {**ROW, "__deleted": "false"},
        {**ROW, "value": "a column", "__op": "u"},
    ],
)
def test_a_change_event_is_told_as_one_and_read_as_it_is_told(line: dict[str, Any]) -> None:
    """Who wrote it as a string, as was advised, made a record of a delete, and no tombstone."""
    assert why(line).startswith("it seems to be a change event: say --format debezium; as a record: ")
    has_key = "key" in line
    assert ChangeEvents(() if has_key else ("id",), NOW_MS).records(json.dumps(line).encode())


@pytest.mark.parametrize(
    "line", [{"kye": "a", "value": "1"}, {"key": "a", "value": ROW}, {"key": "a", "value": "1", "op": "c"}, {"id": 7}]
)
def test_of_a_mistake_in_a_record_no_more_is_told(line: dict[str, Any]) -> None:
    assert "debezium" not in why(line)


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq")
@pytest.mark.parametrize(
    ("more", "record"),
    [
        (
            {"key": "a", "payload": "1", "headers": ["h", "x", "h", None]},
            NewRecord(b"a", b"1", NOW_MS - 1, headers=(("h", b"x"), ("h", None))),
        ),
        ({"key": "a", "payload": None}, NewRecord(b"a", None, NOW_MS - 1)),
        ({"key": None, "payload": "{}"}, NewRecord(None, b"{}", NOW_MS - 1)),
    ],
)
def test_kcats_lines_are_told_with_the_jq_that_makes_records_of_them(more: dict[str, Any], record: NewRecord) -> None:
    told = why(KCAT | more)
    assert "say --format debezium if it is a change event" in told
    found = re.search(r"jq -c '(.*)'\)", told)
    assert found
    made = subprocess.run(
        ["jq", "-c", found[1]], input=json.dumps(KCAT | more), capture_output=True, text=True, check=True
    )
    assert from_json(made.stdout.encode(), now_ms=NOW_MS) == record
