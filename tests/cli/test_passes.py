"""``keptlog plan``, ``clean``, ``expire``, ``purge`` and what is said about them, on real Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.log.result import RewriteResult
from keptlog.passes import in_legs
from keptlog.table.catalogs.catalog import open_catalog
from tests.cli.conftest import Run

DAY_MS = 24 * 3_600_000
NOW_MS = time.time_ns() // 1_000_000 + DAY_MS
"""A day ahead of the clock, so that files written now are older than any delay."""

Lines = Callable[..., str]

pytestmark = pytest.mark.usefixtures("spark")


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


def test_a_clean_that_ends_where_its_map_is_full_says_so_below_the_table_and_in_json(
    keptlog: Run, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_CLEANER_IO_BUFFER_LOAD_FACTOR", str(1.01 / (134_217_728 // 24)))
    first = keptlog("clean")
    assert first.code == 0
    assert first.out.splitlines()[-1].startswith(
        "users-0: its offset map was full at offset 1, and 3 was to be reached"
    )
    checks = {each["name"]: each for each in keptlog("doctor", "--json", "--quiet").json["checks"]}
    [problem] = checks["conditions"]["problems"]
    assert problem["cause"].endswith("ended where its offset map was full")

    [second] = keptlog("clean", "--json").json["committed"]
    assert (second["end_offset"], second["planned_end_offset"], second["ends_early"]) == (2, 3, True)
    [last] = keptlog("clean", "--json").json["committed"]
    assert (last["end_offset"], last["planned_end_offset"], last["ends_early"]) == (3, 3, False)


def test_a_log_goes_from_dirty_to_clean_to_empty_of_tombstones_to_purged(
    keptlog: Run, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "compact offsets [0, 3)" in keptlog("plan").out
    assert "a record is 1 h past max.compaction.lag.ms" in keptlog("explain", users, "0").out
    assert keptlog("status", "--json").json["logs"][0]["trigger"] == "max_compaction_lag"

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
    assert {row["check"] for row in verified.json["checks"]} >= {"G1", "G2", "G3", "G4", "G5"}

    purged = keptlog("purge", "--json")
    assert purged.json["topics"][users]["deleted_files"] >= 2
    assert purged.json["topics"][users]["deleted_metadata_files"] > 0
    assert [each["key"] for each in keptlog("read", users).json_lines] == ["b"]


def test_a_log_is_left_alone_with_its_reason_until_it_is_asked_for(keptlog: Run, users: str, lines: Lines) -> None:
    keptlog("clean")
    keptlog("append", users, "--file", lines({"key": "c", "value": "1", "timestamp": NOW_MS - 1000}))
    assert "all dirty records are in the active segment" in keptlog("plan").out
    explained = keptlog("explain", users, "0", "--json").json
    assert explained["verdict"].startswith("left alone")
    assert explained["due"].startswith("by ")


def broken_segment(home: Path, topic: str) -> Callable[[], object]:
    """Make a topic's first segment unreadable; call what is returned to repair it."""
    path = min((home / "warehouse" / "keptlog" / topic).rglob("*.parquet"))
    content = path.read_bytes()
    path.write_bytes(b"this is no Parquet file")
    return lambda: path.write_bytes(content)


def test_a_log_that_fails_is_uncleanable_until_it_heals_and_stops_no_other(
    keptlog: Run, home: Path, users: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "other", "--config", "cleanup.policy=compact")
    old_ms = NOW_MS - 8 * DAY_MS
    records = [{"key": "a", "value": value, "timestamp": old_ms} for value in "12"]
    keptlog("append", "other", "--file", lines(*records))
    repair = broken_segment(home, users)

    failed = keptlog("clean", "--json")
    assert failed.code == 1
    assert [each["subject"] for each in failed.json["errors"]] == ["users-0"]
    assert [each["offset"] for each in keptlog("read", "other").json_lines] == [1]

    status = keptlog("status", "--json").json
    assert status["metrics"]["uncleanable-partitions-count"] == 1
    assert status["metrics"]["uncleanable-bytes"] > 0
    (marked,) = [row for row in status["logs"] if row["uncleanable"]]
    assert (marked["topic_partition"], marked["uncleanable"]["attempts"], marked["trigger"]) == ("users-0", 1, None)
    for command in (["status"], ["plan"], ["explain", users, "0"]):
        assert "uncleanable since" in keptlog(*command).out
    assert keptlog("clean", "--json").json["errors"] == []

    again = keptlog("clean", "users", "--quiet")
    assert (again.code, again.out) == (1, "nothing was cleaned\n")
    (marked,) = keptlog("status", users, "--json").json["logs"]
    assert marked["uncleanable"]["attempts"] == 2

    repair()
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS + 120_000))
    assert [row["topic_partition"] for row in keptlog("clean", "--json").json["committed"]] == ["users-0"]
    assert keptlog("status", "--json").json["metrics"]["uncleanable-partitions-count"] == 0


def test_the_metrics_have_kafkas_names_and_outlive_the_process(keptlog: Run, users: str) -> None:
    before = keptlog("status", "--json").json
    assert before["metrics"]["time-since-last-run-ms"] is None
    assert before["metrics"]["max-compaction-delay-secs"] == 3600
    assert before["metrics"]["max-dirty-percent"] == 100
    keptlog("clean")
    after = keptlog("status", "--json").json
    assert after["metrics"]["max-dirty-percent"] == 0
    assert after["metrics"]["time-since-last-run-ms"] <= 0
    assert after["metrics"]["cleaner-recopy-percent"] > 0
    assert after["logs"][0]["metrics"].keys() == after["metrics"].keys()
    assert "max-dirty-percent 0" in keptlog("status").out


def test_a_disabled_cleaner_cleans_nothing_and_says_so(
    keptlog: Run, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_CLEANER_ENABLE", "false")
    disabled = keptlog("clean", users)
    assert disabled.code == 0
    assert "log.cleaner.enable=false" in disabled.err
    assert "log.cleaner.enable=false" in disabled.out
    assert "log.cleaner.enable=false" in keptlog("plan").out
    assert len(keptlog("read", users).json_lines) == 3


def test_a_topic_that_cannot_be_read_is_named_and_the_others_are_shown(keptlog: Run, home: Path, users: str) -> None:
    keptlog("topic", "create", "odd", "--config", "cleanup.policy=compact")
    table = open_catalog(home).load_table(("keptlog", "odd"))
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    for command in ("status", "plan", "verify"):
        shown = keptlog(command)
        assert shown.code == 1
        assert "users-0" in shown.out
        assert "odd: topic odd: property log.p0.log-end-offset='many'" in shown.err


@pytest.mark.parametrize("command", ["clean", "expire"])
def test_where_all_failed_it_is_not_said_that_there_is_nothing_to_do(keptlog: Run, home: Path, command: str) -> None:
    keptlog("topic", "create", "odd", "--config", "cleanup.policy=compact")
    table = open_catalog(home).load_table(("keptlog", "odd"))
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    failed = keptlog(command)
    assert (failed.code, failed.out) == (1, "nothing was cleaned\n")
    assert "odd: topic odd: property log.p0.log-end-offset='many'" in failed.err


def test_where_a_clean_breaks_off_whose_first_leg_is_live_it_is_not_said_that_nothing_was_cleaned(
    keptlog: Run, users: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("append", "users", "--file", lines({"key": "b", "value": "2", "timestamp": NOW_MS - 2 * DAY_MS}))
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_CLEANER_COMMIT_MAX_BYTES", "1")

    def breaks_off(outcome: RewriteResult) -> None:
        if outcome.ends_step:
            raise LogCorrupt("it broke off")

    monkeypatch.setattr(in_legs, "verify", breaks_off)
    failed = keptlog("clean")
    assert (failed.code, failed.out) == (1, "no clean came to its end\n")
    assert "users-0: 1 leg of its clean is live, and the next one goes on from there: it broke off" in failed.err


def test_a_topic_that_cannot_be_purged_is_named_and_the_others_are_purged(keptlog: Run, home: Path, users: str) -> None:
    keptlog("topic", "create", "odd", "--config", "cleanup.policy=compact")
    table = open_catalog(home).load_table(("keptlog", "odd"))
    table.transaction().set_properties({"log.partitions": "many"}).commit_transaction()
    purged = keptlog("purge", "--json")
    assert purged.code == 1
    assert list(purged.json["topics"]) == [users]
    assert "odd: topic odd: property log.partitions='many'" in purged.err
    unknown = keptlog("purge", users, "usres")
    assert (unknown.code, unknown.out) == (2, "")


def test_the_files_that_a_purge_tells_are_those_that_it_foretold_and_its_receipt_has(
    keptlog: Run, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that what is freed is made of: also the manifests of expired snapshots."""
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    keptlog("topic", "create", "orders", "--config", "cleanup.policy=delete")
    keptlog("append", "orders", "--file", lines({"key": "a", "value": "1"}))
    assert keptlog("delete-records", "orders-0", "1", "--yes").code == 0
    foretold = keptlog("purge", "--dry-run", "--json").json["topics"]["orders"]
    row = keptlog("purge").out.splitlines()[1].split()
    [receipt] = keptlog("receipt", "list", "--json").json["receipts"]
    assert foretold["files"] > foretold["segments"] > 0
    assert (int(row[2]), receipt["files"]) == (foretold["files"], foretold["files"])


def test_a_purge_says_what_may_still_hold_values_and_until_when(keptlog: Run, home: Path, users: str) -> None:
    folder = open_catalog(home).load_table(("keptlog", users)).location().removeprefix("file://")
    left = Path(folder) / "data" / "partition=0" / "left.parquet"
    left.write_bytes(b"of a run that died")
    line = f"{users}: 1 file of runs that are under way, or died: nothing refers to them; deleted after the grace"
    assert line in keptlog("purge").out.splitlines()
    told = keptlog("purge", "--json").json["topics"][users]
    assert told["held_files"] == [{"path": f"file://{left}", "bytes": 18, "holder": "staged"}]
    assert told["unreadable"] == []
    assert keptlog("purge", "--orphan-grace-ms", "0", "--json").json["topics"][users]["held_files"] == []


def test_a_topic_partition_goes_before_a_topic_of_that_name(keptlog: Run) -> None:
    for topic, partitions in (("a", "2"), ("a-1", "1")):
        keptlog("topic", "create", topic, "--partitions", partitions, "--config", "cleanup.policy=compact")
    named = {name: list(keptlog("plan", name, "--json").json["left_alone"]) for name in ("a", "a-1", "a-1-0")}
    assert named == {"a": ["a-0", "a-1"], "a-1": ["a-1"], "a-1-0": ["a-1-0"]}


def test_a_name_that_means_nothing_is_bad_input_and_starts_no_spark(keptlog: Run, users: str) -> None:
    for arguments in (["clean", "usres"], ["clean", f"{users}-7"], ["explain", users, "7"], ["verify", "usres"]):
        refused = keptlog(*arguments)
        assert refused.code == 2
        assert refused.err.count("\n") == 1


def test_nothing_due_is_fine(keptlog: Run) -> None:
    assert keptlog("topic", "create", "users").code == 0
    assert keptlog("clean").code == 0
    assert keptlog("purge").code == 0
