"""``keptlog plan``, ``clean``, ``expire``, ``purge`` and what is said about them, on real Spark."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.cli.conftest import Run

DAY_MS = 24 * 3_600_000
NOW_MS = time.time_ns() // 1_000_000 + DAY_MS
"""A day ahead of the clock, so that files written now are older than any delay."""

Lines = Callable[..., str]


@pytest.fixture
def users(keptlog: Run, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log with three dirty records, all of them late by an hour."""
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    settings = ["cleanup.policy=compact", f"max.compaction.lag.ms={DAY_MS}", "delete.retention.ms=1000"]
    keptlog("topic", "create", "users", *[word for setting in settings for word in ("--config", setting)])
    old_ms = NOW_MS - DAY_MS - 3_600_000
    records = [
        {"key": "a", "value": "1", "timestamp": old_ms},
        {"key": "b", "value": "1", "timestamp": old_ms},
        {"key": "a", "value": None, "timestamp": old_ms},
    ]
    assert keptlog("append", "users", "--file", lines(*records)).code == 0
    return "users"


def test_a_log_goes_from_dirty_to_clean_to_empty_of_tombstones_to_purged(
    keptlog: Run, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "compact offsets [0, 3)" in keptlog("plan").out
    assert "a record is 3600000 ms past max.compaction.lag.ms" in keptlog("explain", users, "0").out
    assert keptlog("status", "--json").json[0]["trigger"] == "max_compaction_lag"

    cleaned = keptlog("clean", "--json")
    assert cleaned.code == 0
    assert cleaned.json["committed"][0]["counts"] == {
        "kept": 1,
        "stamped": 1,
        "superseded": 1,
        "expired": 0,
        "unkeyed": 0,
    }
    assert [(each["offset"], each["key"], each["value"]) for each in keptlog("read", users).json_lines] == [
        (1, "b", "1"),
        (2, "a", None),
    ]
    assert "nothing to do" in keptlog("clean").out
    assert "left alone, clean" in keptlog("clean", users).out

    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS + 1000))
    assert keptlog("expire", "--json").json["committed"][0]["counts"]["expired"] == 1
    assert [each["key"] for each in keptlog("read", users).json_lines] == ["b"]
    verified = keptlog("verify", "--json")
    assert verified.code == 0
    assert {row["check"] for row in verified.json} >= {"G1", "G2", "G3", "G4", "G5"}

    purged = keptlog("purge", "--json")
    assert purged.json[users]["deleted_files"] >= 2
    assert [each["key"] for each in keptlog("read", users).json_lines] == ["b"]


def test_a_log_is_left_alone_with_its_reason_until_it_is_asked_for(keptlog: Run, users: str, lines: Lines) -> None:
    keptlog("clean")
    keptlog("append", users, "--file", lines({"key": "c", "value": "1", "timestamp": NOW_MS - 1000}))
    assert "all dirty records are in the active segment" in keptlog("plan").out
    explained = keptlog("explain", users, "0", "--json").json
    assert explained["verdict"].startswith("left alone")
    assert explained["due"].startswith("by ")


def test_a_name_that_means_nothing_is_bad_input_and_starts_no_spark(keptlog: Run, users: str) -> None:
    for arguments in (["clean", "usres"], ["clean", f"{users}-7"], ["explain", users, "7"], ["verify", "usres"]):
        refused = keptlog(*arguments)
        assert refused.code == 2
        assert refused.err.count("\n") == 1


def test_nothing_due_is_fine(keptlog: Run) -> None:
    assert keptlog("clean").code == 0
    assert keptlog("purge").code == 0
