"""What a JSON object may be that is no record as ``json_lines`` has them, and what helps.

    {"before": null, "after": {…}, "op": "c", …}                 a change event, which has a format of its own
    {"topic": "users", "offset": 7, "key": "a", "payload": …}    a record as kcat -J writes it

What is wrong with a field of it (write JSON as a string) is the wrong advice then: of an event that deletes a row a
record would become that says so, and no tombstone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keptlog.sources.change_tables import is_flat

_KCAT = {"topic", "partition", "offset", "payload"}
_HEADERS_OF_KCAT = "[(.headers // []) | range(0; length; 2) as $i | {key: .[$i], value: .[$i + 1]}]"
AS_RECORDS = f"{{key, value: .payload, timestamp: .ts, headers: {_HEADERS_OF_KCAT}}}"
"""For jq: a line of kcat's as a record; its headers are names and values in turn."""
_SAY_DEBEZIUM = "say --format debezium"


def what_else(fields: Mapping[str, Any]) -> str:
    """What an object may be instead, to be put before what is wrong with it as a record; empty if nobody knows."""
    if fields.keys() >= _KCAT:
        records = f"else make records of it (jq -c '{AS_RECORDS}')"
        return f"it seems to be kcat's: {_SAY_DEBEZIUM} if it is a change event, {records}; as a record: "
    is_event = _is_event(fields) or _is_event(fields.get("value", fields.get("payload")))
    return f"it seems to be a change event: {_SAY_DEBEZIUM}; as a record: " if is_event else ""


def _is_event(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    if value.keys() == {"schema", "payload"}:
        return value["payload"] is None or _is_event(value["payload"])
    return is_flat(value) or ("op" in value and not value.keys().isdisjoint({"before", "after"}))
