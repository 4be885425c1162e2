"""What the summaries of snapshots, in a table's metadata file, say of the values that another program partitioned by.

With ``write.summary.partition-limit`` Iceberg's writers put a line for each partition that a commit has changed into
the snapshot's summary: ``partitions.partition=0/key=YWRh``. Names and values are escaped as in a URL, and bytes are
written in base64. Every later metadata file repeats the line, as long as the snapshot is there.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

from keptlog.foreign_json import json_value
from keptlog.kernels.key_search import Bound
from keptlog.table.metadata.columns import DELETE_HORIZON, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE

PARTITION_VALUE = "partition value"
HOLD_NOTHING = frozenset({PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, DELETE_HORIZON})
"""Columns without personal data."""
_PREFIX = "partitions."
_NUMBERED = ("bucket", "void")
"""Transforms that leave nothing of a value."""


def bounds_in_summaries(content: bytes) -> Iterator[Bound]:
    """The values of keys and other personal data in the summaries of a metadata file; none in any other JSON.

    Raises:
        ValueError: it is no JSON.
    """
    metadata = json_value(content)
    if not isinstance(metadata, dict):
        return
    fields = _partition_fields(metadata)
    summaries = _dicts([snapshot.get("summary") for snapshot in _dicts(metadata.get("snapshots"))])
    told = {name.removeprefix(_PREFIX) for summary in summaries for name in summary if name.startswith(_PREFIX)}
    for path in sorted(told):
        for part in path.split("/"):
            name, _, value = part.partition("=")
            yield from _bound(fields.get(unquote_plus(name), []), unquote_plus(value))


def _partition_fields(metadata: Mapping[str, Any]) -> dict[str, list[tuple[int, str]]]:
    """Name of a partition field to the column that it is made of and how, in each spec that has it."""
    found: dict[str, list[tuple[int, str]]] = {}
    for spec in _dicts(metadata.get("partition-specs")):
        for field in _dicts(spec.get("fields")):
            found.setdefault(str(field.get("name")), []).append(
                (_number(field.get("source-id")), str(field.get("transform")))
            )
    return found


def _bound(made_of: list[tuple[int, str]], value: str) -> Iterator[Bound]:
    """A value as a bound; it is of a partition field that is unknown if its spec was taken out of the table."""
    telling = [each for each in made_of if each[0] not in HOLD_NOTHING and not each[1].startswith(_NUMBERED)]
    if value == "null" or (made_of and not telling):
        return
    try:
        content = base64.b64decode(value, validate=True)
    except ValueError:
        content = value.encode()
    is_key = bool(telling) and all(each == (KEY, "identity") for each in telling)
    yield Bound("key", content, is_whole=True) if is_key else Bound(PARTITION_VALUE, content)


def _number(stored: object) -> int:
    return stored if isinstance(stored, int) else 0


def _dicts(stored: object) -> list[dict[str, Any]]:
    return [each for each in stored if isinstance(each, dict)] if isinstance(stored, list) else []
