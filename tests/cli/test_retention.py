"""``keptlog retain`` and ``delete-records``, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.table.catalogs.catalog import open_catalog
from tests.cli.conftest import Run
from tests.table.stores import new_id, new_records

NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000

Lines = Callable[..., str]


@pytest.fixture
def events(keptlog: Run, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log of two segments: offset 0 is two hours old, offsets 1 and 2 are new; the topic keeps an hour."""
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    keptlog("topic", "create", "events", "--config", "cleanup.policy=delete", "--config", f"retention.ms={HOUR_MS}")
    keptlog("append", "events", "--file", lines({"key": "a", "value": "1", "timestamp": NOW_MS - 2 * HOUR_MS}))
    keptlog("append", "events", "--file", lines({"key": "a", "value": "2"}, {"key": "b", "value": "1"}))
    return "events"


def test_old_segments_are_announced_explained_and_removed(keptlog: Run, events: str) -> None:
    assert "events-0: remove 1 old segment" in keptlog("plan").out
    assert "is to be removed, retention_ms" in keptlog("explain", events, "0").out
    assert keptlog("plan", "--json").json["retention"][0]["new_log_start_offset"] == 1

    retained = keptlog("retain", "--json")

    assert retained.code == 0
    (row,) = retained.json["committed"]
    assert (row["topic_partition"], row["records"], row["log_start_offset"]) == ("events-0", 1, 1)
    assert [each["offset"] for each in keptlog("read", events).json_lines] == [1, 2]
    assert keptlog("status", "--json").json["logs"][0]["log_start_offset"] == 1
    assert "left alone, no segment is old" in keptlog("retain", "events-0").out
    assert "nothing is old" in keptlog("retain").out


def test_where_all_failed_it_is_not_said_that_nothing_is_old(keptlog: Run, home: Path, events: str) -> None:
    table = open_catalog(home).load_table(("keptlog", events))
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    failed = keptlog("retain")
    assert (failed.code, failed.out) == (1, "nothing was removed\n")
    assert "events: topic events: property log.p0.log-end-offset='many'" in failed.err


def test_records_are_deleted_before_an_offset_and_stay_deleted(keptlog: Run, events: str) -> None:
    deleted = keptlog("delete-records", events, "0", "2", "--json").json
    assert deleted["log_start_offset"] == 2
    assert deleted["segments"] == 1
    assert [each["offset"] for each in keptlog("read", events, "--from-offset", "0").json_lines] == [2]
    assert {row["result"] for row in keptlog("verify", events, "--json").json["checks"]} == {"ok"}
    assert "begins at offset 3 now" in keptlog("delete-records", events, "0", "--", "-1").out
    assert keptlog("read", events).out == ""


def test_a_deletion_says_which_segment_still_holds_deleted_records(keptlog: Run, home: Path) -> None:
    store = open_home(home).store
    store.create_topic("users", 1, {})
    store.append("users", new_records(("a", "1"), ("b", "2"), ("c", "3")), new_id(), NOW_MS)
    deleted = keptlog("delete-records", "users", "0", "1", "--json").json
    [held] = deleted["held_files"]
    assert held["holder"] == "live segment [0,1) in [0,3)"
    told = keptlog("delete-records", "users-0", "1").out.splitlines()
    assert told[1] == "deleted records still lie in 1 live segment, [0,1) in [0,3): they go with their segment"
    assert "offsets [0,1) of users-0 are below the log start" in keptlog("explain", "users-0").out
    assert "offsets [0,1) of users-0 are below the log start" in keptlog("verify", "users", "--full").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["delete-records", "events", "0", "4"], "offsets up to 3, or -1 for all"),
        (["delete-records", "events", "7", "1"], "no partition 7"),
        (["delete-records", "evnts", "0", "1"], "there is no topic 'evnts'"),
        (["delete-records", "events", "0"], "'events' is no log: write users-0 or users 0"),
        (["delete-records", "events", "x", "0"], "'events x' is no log"),
        (["delete-records", "0"], "Missing argument"),
        (["delete-records", "events", "0", "4", "--dry-run"], "offsets up to 3, or -1 for all"),
        (["retain", "evnts"], "there is no topic or topic-partition 'evnts'"),
    ],
)
def test_bad_input_gets_one_line_and_removes_nothing(
    keptlog: Run, events: str, arguments: list[str], message: str
) -> None:
    refused = keptlog(*arguments)
    assert refused.code == 2
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert [each["offset"] for each in keptlog("read", events).json_lines] == [0, 1, 2]


def test_a_misspelt_name_beside_a_right_one_removes_nothing(keptlog: Run, events: str) -> None:
    refused = keptlog("retain", events, "evnts")
    assert refused.code == 2
    assert "there is no topic or topic-partition 'evnts'" in refused.err
    assert [each["offset"] for each in keptlog("read", events).json_lines] == [0, 1, 2]


def test_a_policy_that_is_altered_takes_effect_with_the_next_retention(keptlog: Run, events: str) -> None:
    keptlog("topic", "alter", events, "--config", "cleanup.policy=compact")
    assert keptlog("retain", "--json").json["committed"] == []
    keptlog("topic", "alter", events, "--config", "cleanup.policy=compact,delete")
    assert len(keptlog("retain", "--json").json["committed"]) == 1


def test_a_disabled_cleaner_retains_no_compacted_log_and_all_others(
    keptlog: Run, events: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "state", "--config", "cleanup.policy=compact,delete")
    old_ms = NOW_MS - 8 * 24 * HOUR_MS
    keptlog("append", "state", "--file", lines({"key": "a", "value": "1", "timestamp": old_ms}))
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_CLEANER_ENABLE", "false")
    retained = keptlog("retain", "--json").json
    assert [row["topic_partition"] for row in retained["committed"]] == ["events-0"]
    assert retained["left_alone"]["state-0"].startswith("log.cleaner.enable=false")
