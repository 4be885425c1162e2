"""A row that lacks a value never supersedes the row that has it, unless somebody accepts that."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import pytest

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.sources.debezium import ChangeEvents
from keptlog.sources.unavailable import PLACEHOLDER

IN_BASE64 = base64.b64encode(PLACEHOLDER.encode()).decode()
LACKING = [PLACEHOLDER, IN_BASE64, [PLACEHOLDER], {PLACEHOLDER: PLACEHOLDER}]
WHOLE: list[Any] = ["", f"not {PLACEHOLDER}", [], {"a": PLACEHOLDER.upper()}, None, 7]


def event(document: Any, op: str = "u") -> dict[str, Any]:
    row = {"id": 1, "document": document}
    return {"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row}


def taken(value: Any, counter: Counter[str] | None = None) -> NewRecord:
    line = json.dumps({"key": {"id": 1}, "value": value}).encode()
    [record] = ChangeEvents((), 0, lacking=counter).records(line)
    return record


@pytest.mark.parametrize("document", LACKING, ids=str)
def test_a_row_without_an_unchanged_value_is_refused_or_counted(document: Any) -> None:
    flat = {"id": 1, "document": document, "__op": "u"}
    for value in (event(document), json.dumps(event(document)), {"schema": {}, "payload": event(document)}, flat):
        with pytest.raises(InvalidRecord, match=r"'document', which did not change .*REPLICA IDENTITY FULL.*--accept-"):
            taken(value)
        counter = Counter[str]()
        assert json.loads(taken(value, counter).value or b"") == {"id": 1, "document": document}
        assert counter == {"document": 1}


@pytest.mark.parametrize("document", WHOLE, ids=str)
def test_a_row_that_has_its_values_is_taken(document: Any) -> None:
    assert json.loads(taken(event(document)).value or b"")["document"] == document


def test_a_deleted_row_needs_no_values() -> None:
    assert taken(event(PLACEHOLDER, "d")).value is None
