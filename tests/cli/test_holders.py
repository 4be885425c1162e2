"""A superseded value is gone by its deadline, or every command that looks says what holds it, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keptlog.home import new_id, open_home
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.cli.conftest import Run
from tests.table.foreign import table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, clean

COMMANDS = (("status",), ("explain", TOPIC, "0"), ("plan",), ("verify", "--full"))


@pytest.fixture
def store(home: Path) -> LogStore:
    """A log of which one value was superseded."""
    store = open_home(home).store
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "a secret")], [("a", "public")])
    return store


def at(monkeypatch: pytest.MonkeyPatch, now_ms: int) -> None:
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(now_ms))


def codes(keptlog: Run) -> list[int]:
    return [keptlog(*command).code for command in COMMANDS]


def told(keptlog: Run) -> list[str]:
    outcomes = [keptlog(*command) for command in COMMANDS]
    return [outcome.out + outcome.err for outcome in outcomes]


def test_a_tag_of_another_engine_that_keeps_a_deleted_value_is_named_with_what_to_do_until_it_is_dropped(
    keptlog: Run, store: LogStore, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = table_of(home).metadata.snapshots[0].snapshot_id
    table_of(home).manage_snapshots().create_tag(first, "audit_2026").commit()
    clean(store)
    assert codes(keptlog) == [0, 0, 0, 0]
    at(monkeypatch, clock_ms() + 2 * DAY_MS)
    assert keptlog("purge").code == 0
    assert codes(keptlog) == [1, 0, 0, 1]
    for text in told(keptlog):
        assert f"tag audit_2026 of {TOPIC}" in text
        assert "keeps 1 retired segment, past its deadline (" in text
        assert f"ALTER TABLE <catalog>.keptlog.`{TOPIC}` DROP TAG `audit_2026`" in text
        assert "manage_snapshots().remove_tag('audit_2026').commit()" in text
    [late] = keptlog("status", "--json").json["holders"]
    assert (late["kind"], late["name"], late["late_files"], late["is_late"]) == ("tag", "audit_2026", 1, True)
    assert [row["result"] for row in keptlog("verify", "--json").json["checks"] if row["check"] == "G8"] == ["BROKEN"]
    table_of(home).manage_snapshots().remove_tag("audit_2026").commit()
    assert keptlog("purge").code == 0
    assert codes(keptlog) == [0, 0, 0, 0]
    assert not any("audit_2026" in text for text in told(keptlog))


def test_retired_segments_are_told_with_their_time_and_are_late_when_no_purge_comes(
    keptlog: Run, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(store)
    for text in told(keptlog):
        assert "older snapshots of" in text
        assert "keep 2 retired segments until 20" in text
    at(monkeypatch, clock_ms() + 2 * DAY_MS)
    assert codes(keptlog) == [1, 0, 0, 1]
    assert all("past their deadline" in text for text in told(keptlog))
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(3 * DAY_MS))
    assert codes(keptlog) == [0, 0, 0, 0]
    assert keptlog("purge").code == 0
    assert keptlog("status", "--json").json["holders"] == []


def test_where_a_live_file_is_lost_nobody_is_sent_to_the_purge_that_refuses(
    keptlog: Run, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(store)
    Path(store.logs(TOPIC)[0].segments[0].path.removeprefix("file://")).unlink()
    at(monkeypatch, clock_ms() + 2 * DAY_MS)
    assert "nothing was deleted" in keptlog("purge").err

    [held] = [each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "holders"]
    [problem] = held["problems"]
    assert problem["command"] is None
    assert problem["cause"] == "a purge deletes nothing of the topic before that is mended"
    assert "is not there, and no purge deletes anything: put it back from a copy of the storage" in problem["todo"]

    status = keptlog("status")
    [late] = [line for line in status.err.splitlines() if "past their deadline" in line]
    assert "is not there, and no purge deletes anything: put it back from a copy of the storage; after that" in late
    [holder] = keptlog("status", "--json").json["holders"]
    assert "no purge deletes anything" in holder["remedy"]


@pytest.fixture
def idle(home: Path) -> LogStore:
    """The same in a home to which nobody has committed for years."""
    store = LogStore(open_catalog(home, lambda: NOW_MS), {}, lambda _: None, new_id)
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "a secret")], [("a", "public")])
    clean(store)
    return store


def test_where_a_purge_does_not_believe_the_clock_nobody_is_sent_to_it_before_a_commit_confirms_it(
    keptlog: Run, idle: LogStore
) -> None:
    commands = [*COMMANDS, ("status",), ("status", TOPIC), ("plan", TOPIC), ("status", "--json"), ("plan", "--json")]
    sent = f"keptlog purge {TOPIC} deletes what was replaced"
    mended = "raise keptlog.clock.max.jump.ms (broker settings) for once; after that "
    assert "nothing was deleted; set the clock right" in keptlog("purge").err
    for command in commands:
        outcome = keptlog(*command)
        assert f"no purge deletes anything: set the clock right, or, if it is, {mended}{sent}" in str(outcome), command
    open_home().store.create_topic("another", 1, COMPACTED)
    for command in commands:
        text = str(keptlog(*command))
        assert (sent in text, "no purge deletes anything" in text) == (True, False), command
    assert keptlog("purge").code == 0


def test_what_only_the_storage_knows_is_told_by_explain_and_verify(
    keptlog: Run, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{store.describe_topic(TOPIC).location}/data/partition=0/left.parquet"
    store.files.write_bytes(path, b"a secret")
    assert "keep 1 staged file until 20" in keptlog("explain", TOPIC, "0").out
    assert keptlog("verify").code == 0
    at(monkeypatch, clock_ms() + 3 * DAY_MS)
    assert "keep 1 orphan, past its deadline" in keptlog("explain", TOPIC, "0").out
    assert keptlog("verify").code == 1
    assert keptlog("purge").code == 0
    assert "orphan" not in keptlog("explain", TOPIC, "0").out
    assert keptlog("verify").code == 0


def test_a_storage_that_cannot_be_listed_is_not_looked_at(
    keptlog: Run, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("the bucket does not answer")

    monkeypatch.setattr("keptlog.table.io.files.TableFiles.list", fails)
    verified = keptlog("verify", "--json")
    [gone] = [row for row in verified.json["checks"] if row["check"] == "G8"]
    assert (verified.code, gone["result"]) == (1, "not looked at")
    assert "the bucket does not answer" in gone["what"]
    assert "not looked at: " in keptlog("explain", TOPIC, "0").out


def test_what_a_spark_that_is_gone_has_left_is_told_of_this_machine(
    keptlog: Run, store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    left = tmp_path / "blockmgr-1" / "0a" / "shuffle_0_0_0.data"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"a secret")
    for path in (left, left.parent, left.parent.parent):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    status, verified = keptlog("status"), keptlog("verify")
    assert (status.code, verified.code) == (1, 1)
    for text in (status.err, verified.out):
        assert f"spark {left.parent.parent} keeps 1 file, past its deadline (2020-09-14" in text
        assert f"rm -r {left.parent.parent}" in text
    [held] = [each for each in keptlog("status", "--json").json["holders"] if each["is_late"]]
    assert (held["kind"], held["name"], held["topic"]) == ("spark", str(left.parent.parent), "")
    left.unlink()
    assert (keptlog("status").code, keptlog("verify").code) == (0, 0)
