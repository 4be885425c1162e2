"""``keptlog reader`` and ``keptlog read --as-reader``: who reads on from time to time, and what waits for him."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome, Run

DAY_MS = 24 * 3_600_000
NOW_MS = time.time_ns() // 1_000_000
Lines = Callable[..., str]


@pytest.fixture
def users(keptlog: Run, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    settings = ["cleanup.policy=compact", f"segment.ms={1}", "delete.retention.ms=1000"]
    keptlog("topic", "create", "users", *[word for setting in settings for word in ("--config", setting)])
    old = {"timestamp": NOW_MS - DAY_MS}
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"} | old)).code == 0
    return "users"


def deleted(keptlog: Run, lines: Lines) -> None:
    assert (
        keptlog("append", "users", "--file", lines({"key": "a", "value": None, "timestamp": NOW_MS - DAY_MS})).code == 0
    )


def read(keptlog: Run, *more: str) -> Outcome:
    return keptlog("read", "users", "--as-reader", "search", *more)


@pytest.mark.usefixtures("spark")
def test_a_tombstone_waits_for_a_reader_and_past_the_bound_it_goes_and_he_is_told(
    keptlog: Run, users: str, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keptlog("reader", "add", users, "search", "--hold-max-ms", "5000").code == 0
    assert [each["offset"] for each in read(keptlog).json_lines] == [0]
    deleted(keptlog, lines)
    assert keptlog("clean", users).code == 0

    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS + 2000))
    assert "nothing to do" in keptlog("clean").out
    explained = keptlog("explain", users, "0").out
    assert "for reader search, whose position is 1; the first of them until" in explained
    [listed] = keptlog("reader", "list", users, "--json").json["readers"]
    assert (listed["position"], listed["lag"], listed["holds_until_ms"]) == (1, 1, NOW_MS + 6000)
    assert keptlog("status", "--json").json["logs"][0]["trigger"] is None

    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS + 6000))
    assert keptlog("status", "--json").json["logs"][0]["trigger"] == "tombstone_expiry"
    cleaned = keptlog("clean", "--json")
    assert cleaned.json["committed"][0]["counts"]["expired"] == 1
    told = read(keptlog)
    assert (told.code, told.out) == (1, "")
    assert (
        "reader search of topic users was too slow: 1 tombstone between offsets 1 and 1 of users-0 went at" in told.err
    )
    assert "keptlog reader add users search --start-over" in told.err
    assert "users-0" in keptlog("reader", "list").out
    assert read(keptlog, "--start-over").json_lines == []
    assert read(keptlog).code == 0


def test_tombstones_that_wait_for_ever_are_not_told_with_a_limit(keptlog: Run, users: str) -> None:
    told = keptlog("reader", "add", users, "search", "--hold-max-ms", str(2**63 - 1)).out
    assert told == "reader search of users: tombstones wait for it without a limit\n"


def test_how_long_tombstones_wait_is_given_as_people_say_it(keptlog: Run, users: str) -> None:
    told = keptlog("reader", "add", users, "search", "--hold-max", "36h", "--json")
    assert told.json["hold_max_ms"] == 36 * 3_600_000
    both = keptlog("reader", "add", users, "search", "--hold-max", "36h", "--hold-max-ms", "5")
    assert (both.code, "give one of them" in both.err) == (2, True)
    wrong = keptlog("reader", "add", users, "search", "--hold-max", "soon")
    assert (wrong.code, "'soon' is no span of time: write 30d, 12h or 90m" in wrong.err) == (2, True)


def test_a_reader_reads_on_and_says_by_itself_how_far_it_has_come(keptlog: Run, users: str, lines: Lines) -> None:
    assert "up to 7 d past their horizon" in keptlog("reader", "add", users, "search").out
    assert [each["offset"] for each in read(keptlog).json_lines] == [0]
    assert read(keptlog).json_lines == []
    deleted(keptlog, lines)
    assert [(each["offset"], each["value"]) for each in read(keptlog, "--partition", "0").json_lines] == [(1, None)]
    assert [each["offset"] for each in read(keptlog, "--start-over").json_lines] == [0, 1]


def test_who_reads_by_other_means_commits_and_leaves(keptlog: Run, users: str) -> None:
    keptlog("reader", "add", users, "search")
    assert keptlog("reader", "commit", users, "search", "0=1").out == "reader search: users-0 at 1\n"
    assert keptlog("reader", "commit", users, "search", "0=1", "--json").json["positions"] == {"users-0": 1}
    table = keptlog("reader", "list").out.splitlines()
    assert table[0].split("  ")[0] == "topic-partition"
    assert table[1].split()[:4] == ["users-0", "search", "1", "0"]
    assert keptlog("reader", "remove", users, "search").out == "removed reader search of users\n"
    assert keptlog("reader", "list").out == "no readers yet: keptlog reader add TOPIC NAME\n"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["reader", "add", "users", "a/b"], "reader name 'a/b' is not allowed"),
        (["reader", "add", "users", "r", "--hold-max-ms", "-1"], "hold-max-ms=-1 is not between"),
        (["reader", "commit", "users", "search", "0"], "'0' is not PARTITION=OFFSET"),
        (["reader", "commit", "users", "search", "0=1", "0=1"], "a partition is given twice"),
        (["reader", "commit", "users", "search", "0=2"], "which ends at 1: 2 lies outside of that"),
        (["reader", "commit", "users", "other", "0=1"], "has no reader 'other'"),
        (["read", "users", "--as-reader", "other"], "has no reader 'other'"),
        (["read", "users", "--as-reader", "other", "--start-over"], "has no reader 'other'"),
        (["read", "users", "--as-reader", "search", "--latest"], "leave out --latest and --from-offset"),
        (["read", "users", "--as-reader", "search", "--from-offset", "0"], "leave out --latest and --from-offset"),
        (["read", "users", "--as-reader", "search", "--start-over", "--partition", "0"], "leave out --partition"),
        (["read", "users", "--start-over"], "without --as-reader"),
        (["reader", "add", "nobody", "r"], "there is no topic 'nobody'"),
    ],
)
def test_what_can_not_be_accepted_is_told_and_changes_nothing(
    keptlog: Run, users: str, typed: list[str], told: str
) -> None:
    keptlog("reader", "add", users, "search")
    before = keptlog("reader", "list", "--json").json
    outcome = keptlog(*typed)
    assert (outcome.code, told in outcome.err) == (2, True), outcome.err
    assert keptlog("reader", "list", "--json").json == before


def test_a_topic_that_can_not_be_read_costs_only_its_own_readers(keptlog: Run, users: str, home: Path) -> None:
    keptlog("topic", "create", "broken", "--config", "cleanup.policy=compact")
    assert keptlog("reader", "add", users, "search").code == 0
    for path in (home / "warehouse").rglob("broken/metadata/*.metadata.json"):
        path.write_text("{")

    listed = keptlog("reader", "list")

    assert (listed.code, "users-0" in listed.out) == (1, True)
    assert listed.err.startswith("keptlog: broken: ")
    assert [each["reader"] for each in keptlog("reader", "list", "--json").json["readers"]] == ["search"]
