"""What lies beside log files of tests: the records that are in them, as JSON lines, found by somebody else."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path

from keptlog.log.record import Record, TimestampType


def write_expected(path: Path, records: Iterable[Record]) -> None:
    path.write_text("".join(f"{_to_json(record)}\n" for record in records))


def read_expected(path: Path) -> list[Record]:
    return [_from_json(line) for line in path.read_text().splitlines()]


def _to_json(record: Record) -> str:
    headers = [[name, _encoded(value)] for name, value in record.headers]
    rest = [_encoded(record.key), _encoded(record.value), headers]
    return json.dumps([record.offset, record.timestamp_ms, record.timestamp_type, *rest])


def _from_json(line: str) -> Record:
    offset, timestamp_ms, kind, key, value, headers = json.loads(line)
    names = tuple((name, _decoded(each)) for name, each in headers)
    return Record(offset, _decoded(key), _decoded(value), timestamp_ms, TimestampType(kind), names)


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
