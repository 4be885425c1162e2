"""A row that lacks a value never supersedes the row that has it, unless somebody accepts that."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import pytest

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.sources.debezium import ChangeEvents
from keptlog.sources.unavailable import KNOWN, PLACEHOLDER, Placeholders

IN_BASE64 = base64.b64encode(PLACEHOLDER.encode()).decode()
NUMBERS = list(PLACEHOLDER.encode())
UUID = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
"""What Java makes of the placeholder (``UUID.nameUUIDFromBytes``)."""
LACKING = [
    *KNOWN,
    IN_BASE64,
    PLACEHOLDER.encode().hex(),
    [PLACEHOLDER],
    {PLACEHOLDER: PLACEHOLDER},
    NUMBERS,
    [float(each) for each in NUMBERS],
    [UUID],
]
WHOLE: list[Any] = ["", f"not {PLACEHOLDER}", [], {"a": PLACEHOLDER.upper()}, None, 7, NUMBERS[:-1], [True] * 28]


def event(document: Any, op: str = "u") -> dict[str, Any]:
    row = {"id": 1, "document": document}
    return {"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row}


def taken(value: Any, counter: Counter[str] | None = None, *given: str) -> NewRecord:
    line = json.dumps({"key": {"id": 1}, "value": value}).encode()
    [record] = ChangeEvents((), 0, lacking=counter, placeholders=Placeholders(given)).records(line)
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


OWN: list[tuple[str, list[Any]]] = [
    ("not told", ["not told", "bm90IHRvbGQ=", "6e6f7420746f6c64", [110, 111, 116, 32, 116, 111, 108, 100]]),
    ('"ä"/', ['"ä"/', base64.b64encode('"ä"/'.encode()).decode(), [34, -61, -92, 34, 47]]),
    ("?", ["?", "Pw==", [63], {"?": "?"}]),
    ("hex:676f6e65", ["gone", "Z29uZQ==", "676f6e65", ["gone"]]),
    ("hex:FF", ["\N{REPLACEMENT CHARACTER}", "/w==", "_w==", [-1]]),
]


@pytest.mark.parametrize(("given", "document"), [(given, each) for given, forms in OWN for each in forms], ids=str)
def test_a_placeholder_of_the_connectors_own_is_known_once_it_is_given(given: str, document: Any) -> None:
    for value in (event(document), json.dumps(event(document))):
        taken(value)
        with pytest.raises(InvalidRecord, match="'document', which did not change") as refused:
            taken(value, None, given)
        assert f"({given})" in str(refused.value)
    taken(event("some text that was told"), None, given)
    with pytest.raises(InvalidRecord, match=f"which did not change .{PLACEHOLDER}"):
        taken(event(PLACEHOLDER), None, given)


@pytest.mark.parametrize("given", ["", "hex:", "hex:no", "hex:abc"])
def test_what_can_be_no_placeholder_is_refused(given: str) -> None:
    with pytest.raises(InvalidConfig, match=f"--unavailable-value-placeholder '{given}' is .*unavailable.value.pl"):
        Placeholders([given])
