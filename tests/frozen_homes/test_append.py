"""A home of an older format takes more records, behind those that are there, and nothing else of it changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.frozen_homes import telling
from tests.frozen_homes.conftest import ARCHIVES, Frozen, name_of

INGESTED = [archive for archive in ARCHIVES if archive.name.startswith("ingested")]
APPENDED = [("a", "more"), ("a key of today", "1"), ("b", None)]


def without_what_follows(topics: dict[str, Any]) -> dict[str, Any]:
    """A home as it is told, but for what follows from its records."""
    left_out = {"segments", "latest"}
    return {
        topic: told | {"logs": [{key: log[key] for key in log.keys() - left_out} for log in told["logs"]]}
        for topic, told in topics.items()
    }


def with_appended(told: dict[str, Any], now_ms: int) -> None:
    """Change what is told of a topic's last log as the append of these records should have."""
    log = told["logs"][-1]
    kind = int(told["config"].get("message.timestamp.type") == "LogAppendTime")
    first = log["log_end_offset"]
    if log["records"] != "unreadable":
        log["records"] += [[first + n, now_ms, kind, key, value, []] for n, (key, value) in enumerate(APPENDED)]
    log["log_end_offset"] = told["positions"][-1] = first + len(APPENDED)


def test_topics_without_a_source_are_appended_to_and_ingested_ones_refuse(frozen: Frozen, tmp_path: Path) -> None:
    expected = without_what_follows(frozen.topics)
    for topic, told in frozen.topics.items():
        rows = [{"key": key, "value": value, "partition": len(told["logs"]) - 1} for key, value in APPENDED]
        lines = tmp_path / "records.jsonl"
        lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        appended = frozen.at(frozen.later_ms, "append", topic, "--file", str(lines))
        assert appended.code == (2 if told["source"] else 0), appended.err
        if not told["source"]:
            with_appended(expected[topic], frozen.later_ms)
    assert without_what_follows(telling.stored(frozen.home)) == expected


@pytest.mark.parametrize("frozen", INGESTED, ids=name_of, indirect=True)
def test_ingested_topics_go_on_at_their_positions(frozen: Frozen, tmp_path: Path) -> None:
    expected = without_what_follows(frozen.topics)
    for topic, told in frozen.topics.items():
        offset, partition = told["positions"][-1], len(told["logs"]) - 1
        rows = [
            {"at": offset + n, "in": partition, "key": key, "value": value, "timestamp": frozen.later_ms}
            for n, (key, value) in enumerate(APPENDED)
        ]
        file = tmp_path / "rows.parquet"
        pq.write_table(pa.Table.from_pylist(rows), file)
        columns = ["--column", "offset=at", "--column", "partition=in", "--source-topic", told["source"]["topic"]]
        appended = frozen.at(frozen.later_ms, "append", topic, "--file", str(file), *columns)
        assert appended.code == 0, appended.err
        with_appended(expected[topic], frozen.later_ms)
    assert without_what_follows(telling.stored(frozen.home)) == expected
