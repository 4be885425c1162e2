"""``keptlog history``: what was done to a topic, and what it cost a day."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keptlog.home import new_id, open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.clean import Cleaner
from tests.cli.conftest import Run
from tests.in_process import in_process_engine

OLD_MS = 1_700_000_000_000
DAY_MS = 24 * 3_600_000


@pytest.fixture
def users(keptlog: Run) -> str:
    """Two appends and a clean that takes one record away."""
    store = open_home().store
    store.create_topic("users", 2, {"cleanup.policy": "compact", "segment.ms": "1"})
    for value in (b"1", b"2"):
        store.append("users", [NewRecord(b"key-of-a-person", value, OLD_MS, 0)], f"append-{value.decode()}", OLD_MS)
    cleaner = Cleaner(store, in_process_engine(store.files))
    cleaner.commit(cleaner.stage(cleaner.begin(["users"], "nightly", now_ms=OLD_MS * 2, requested=True)))
    return "users"


def commits(outcome: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = outcome.json["commits"]
    return found


def test_each_commit_is_told_with_its_reason_its_cost_and_its_run(keptlog: Run, users: str) -> None:
    out = keptlog("history", users).out
    assert "records added  removed" in out.splitlines()[0]
    append, _, clean = [line.split() for line in out.splitlines()[1:4]]
    assert append[1:] == ["append", "-", "-", "-", *append[5:7], "1", "0", "-", "append-1"]
    assert (clean[1:4], clean[-1]) == (["clean", "dirty_ratio", "1"], "nightly")
    assert "key-of-a-person" not in out
    assert "records arrived" in out
    [one, two, cleaned] = commits(keptlog("history", users, "--json"))
    assert [each["operation"] for each in (one, two, cleaned)] == ["append", "append", "clean"]
    assert (one["run_id"], one["logs"], one["triggers"], one["duration_ms"]) == ("append-1", [], [], None)
    [log] = cleaned["logs"]
    assert (log["topic_partition"], log["superseded"], log["records_read"]) == ("users-0", 1, 2)
    assert (cleaned["records_removed"], cleaned["records_added"]) == (2, 1)


@pytest.mark.parametrize("is_purged", [False, True])
def test_a_deletion_is_told_also_if_no_whole_segment_went(keptlog: Run, is_purged: bool) -> None:
    store = open_home().store
    store.create_topic("orders", 1, {"cleanup.policy": "delete"})
    records = [NewRecord(b"k", b"%d" % number, OLD_MS, 0) for number in range(3)]
    store.append("orders", records, "append", OLD_MS)
    for offset, run_id in (("1", "within"), ("1", "nothing-left"), ("3", "all")):
        assert keptlog("delete-records", "orders-0", offset, "--yes", "--run-id", run_id).code == 0
    if is_purged:
        store.append("orders", records[:1], "later", OLD_MS)
        assert store.purge("orders", 2 * OLD_MS).expired_snapshots

    told = commits(keptlog("history", "orders", "--json"))

    deletions = [(each["run_id"], each["records_removed"]) for each in told if each["operation"] == "delete-records"]
    # What had nothing to do is remembered, so that it does nothing later.
    assert deletions == [("within", 0), ("nothing-left", 0), ("all", 3)]


def test_a_day_is_told_with_what_it_cost(keptlog: Run, users: str) -> None:
    [day] = keptlog("history", users, "--per-day", "--json").json["days"]
    at_ms = commits(keptlog("history", users, "--json"))[-1]["at_ms"]
    assert day["day"] == iso_time(at_ms)[:10]
    assert (day["commits"], day["cleans"], day["records_arrived"], day["records_removed"]) == (3, 1, 2, 1)
    lines = keptlog("history", users, "--per-day").out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith(day["day"])


def test_only_the_last_ones_are_shown_unless_all_are_wanted(keptlog: Run, users: str) -> None:
    out = keptlog("history", users, "--last", "2").out
    assert out.splitlines()[0] == "the last 2 of 3 commits (--all shows the others)"
    assert len(commits(keptlog("history", users, "--last", "2", "--json"))) == 2
    assert len(commits(keptlog("history", users, "--all", "--json"))) == 3
    assert keptlog("history", users, "--last", "2", "--all").code == 2


def test_what_is_not_remembered_any_more_is_not_told_as_nothing(
    keptlog: Run, users: str, at: Callable[[int], None]
) -> None:
    store, purged_ms = open_home().store, wall_clock_ms() + 10 * DAY_MS
    open_home().readers.add(users, "search", now_ms=OLD_MS)  # a commit that moves no record
    assert store.purge(users, purged_ms).expired_snapshots
    at(purged_ms + 80 * DAY_MS)
    assert len(commits(keptlog("history", users, "--json"))) == 3
    at(purged_ms + 100 * DAY_MS)
    for options in ([], ["--per-day"]):
        told = keptlog("history", users, *options)
        assert told.code == 0
        assert told.out.splitlines()[0] == (
            "no commit that wrote or removed records of users is remembered: that lasts for "
            "keptlog.history.retention.ms (90 d)"
        )


def test_a_topic_without_records_and_one_that_is_not_there(keptlog: Run) -> None:
    open_home().store.create_topic("empty", 1, {"cleanup.policy": "compact"})
    assert "no record of empty was ever written or removed" in keptlog("history", "empty").out
    missing = keptlog("history", "nobody")
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert new_id() not in missing.err
