"""``keptlog status`` starts as little as it can, and says the same as if it had read everything."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.errors import Action
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.notify.checks import leave_checks
from keptlog.table.catalogs.embedded import embedded_location, embedded_locations
from keptlog.table.changes.mark import Failure
from keptlog.table.unopened import UnopenedStore
from tests.cli.conftest import Run
from tests.conftest import topics_asked_of

NOW_MS = "1800000000000"
_HEAVY = ("pyarrow", "pandas", "pyiceberg", "pyspark", "sqlalchemy", "dagster")


@pytest.fixture
def topics(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two topics, three logs; the clock stands."""
    monkeypatch.setenv("KEPTLOG_NOW_MS", NOW_MS)
    store = open_home().store
    for name, partitions in (("orders", 1), ("users", 2)):
        store.create_topic(name, partitions, {"cleanup.policy": "compact"})
        append(name)
    return home


def append(topic: str) -> None:
    store = open_home().store
    end_offset = store.logs(topic)[0].log_end_offset
    store.append(topic, [NewRecord(b"a", b"1", 1_700_000_000_000, 0)], f"append-{end_offset}", 1_700_000_000_000)


@pytest.mark.parametrize("names", [[], ["users-1", "orders"]])
def test_a_status_after_which_nothing_changed_imports_no_catalog_and_no_engine(
    keptlog: Run, topics: Path, names: list[str]
) -> None:
    first = keptlog("status", *names).out
    code = (
        f"import sys\nfrom keptlog.cli import cli\ncli.main({['status', *names]!r}, standalone_mode=False)\n"
        f"print([name for name in {_HEAVY!r} if name in sys.modules])"
    )
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert second == f"{first}[]\n"


def test_a_topic_that_is_made_anew_inherits_nothing_that_verify_has_found(keptlog: Run, topics: Path) -> None:
    leave_checks(topics, {"orders-0": {"G1": "offset 3 is gone"}, "users-0": {"G1": "offset 4 is gone"}})
    assert "verify found orders-0 broken" in keptlog("status").err

    assert keptlog("topic", "delete", "orders", "--yes").code == 0
    assert keptlog("topic", "create", "orders", "--config", "cleanup.policy=compact").code == 0

    told = keptlog("status")
    assert "verify found orders-0 broken" not in told.err
    assert "verify found users-0 broken" in told.err


def test_what_is_told_from_memory_is_what_is_told_without(keptlog: Run, topics: Path) -> None:
    for change in (lambda: None, lambda: append("users"), lambda: open_home().store.delete_topic("orders", 0)):
        change()
        warm = keptlog("status", "--json").json
        assert keptlog("status", "--json").json == warm
        shutil.rmtree(topics / "cache")
        assert keptlog("status", "--json").json == warm
    assert [row["topic_partition"] for row in warm["logs"]] == ["users-0", "users-1"]
    assert warm["logs"][0]["log_end_offset"] == 2


def test_named_logs_are_told_alike(keptlog: Run, topics: Path) -> None:
    of_all = keptlog("status", "--json").json["logs"]
    assert keptlog("status", "users", "--json").json["logs"] == of_all[1:]
    assert keptlog("status", "users-1", "--json").json["logs"] == of_all[2:]
    assert keptlog("status", "nobody").code == 2


def test_a_topic_that_is_not_compacted_is_not_late(keptlog: Run, topics: Path) -> None:
    (topics / "server.properties").write_text("log.cleaner.max.compaction.lag.ms=1000\n")
    open_home().store.create_topic("events", 1, {"cleanup.policy": "delete"})
    append("events")
    status = keptlog("status", "events", "--json").json
    (row,) = status["logs"]
    assert (row["max_compaction_delay_ms"], row["earliest_uncompacted_ms"]) == (0, None)
    assert (row["trigger"], row["due_ms"]) == (None, None)
    assert status["metrics"]["max-compaction-delay-secs"] == 0
    assert keptlog("verify", "events").code == 0


def test_a_log_that_only_new_records_make_due_is_due_at_no_time(keptlog: Run, topics: Path) -> None:
    open_home().store.alter_topic("orders", {"segment.ms": "9223372036854775807"})
    assert keptlog("status", "orders", "--json").json["logs"][0]["due_ms"] is None
    assert "92233" not in keptlog("status", "orders").out
    explained = keptlog("explain", "orders", "0").out
    assert "92233" not in explained.replace("=9223372036854775807 (unlimited)", "")


def test_a_log_that_failed_and_is_due_again_is_said_to_be_so(
    keptlog: Run, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, failed_ms = TopicPartition("orders", 0), int(NOW_MS)
    failure = Failure(name, "segment 7 is gone", None, Action.FIX_DATA)
    open_home().store.mark_uncleanable("orders", [failure], failed_ms, Backoff(1000, 1000))
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(failed_ms + 1000))
    told = keptlog("status", "orders").out
    assert "dirty_ratio" in told
    assert "1 clean failed with: segment 7 is gone; no clean succeeds before its data are repaired" in told
    assert "is not above" not in told


def test_a_topic_that_can_not_be_read_is_named_each_time_and_the_others_are_told(keptlog: Run, topics: Path) -> None:
    table = open_home().store.load_table("orders")
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    for _ in range(2):
        outcome = keptlog("status")
        assert outcome.code == 1
        assert "orders: topic orders: property log.p0.log-end-offset='many'" in outcome.err
        assert "users-1" in outcome.out


def test_the_embedded_catalog_tells_from_outside_what_it_tells_when_it_is_opened(topics: Path) -> None:
    opened = open_home().store.metadata_locations()
    assert embedded_locations(topics, {}) == opened
    assert {topic: embedded_location(topics, topic, {}) for topic in opened} == opened
    assert [embedded_location(topics, name, {}) for name in ("nothing", "", "\udcff", "u%", "USERS")] == [None] * 5


def test_where_another_catalog_may_be_configured_the_embedded_one_is_not_asked(
    topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert embedded_locations(topics, {"PYICEBERG_CATALOG__KEPTLOG__TYPE": "rest"}) is None
    elsewhere = topics.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".pyiceberg.yaml").touch()
    monkeypatch.chdir(elsewhere)
    assert embedded_locations(topics, {}) is None


def test_a_catalog_that_can_not_be_read_from_outside_is_left_to_the_opened_one(home: Path) -> None:
    assert embedded_locations(home, {}) is None
    home.mkdir()
    (home / "catalog.db").write_bytes(b"no database at all, but long enough for a header" * 100)
    assert embedded_locations(home, {}) is None


def test_a_last_pass_with_a_field_of_a_newer_version_hides_no_topic(keptlog: Run, topics: Path) -> None:
    last_pass = {"ended_ms": 1, "duration_ms": 5, "bytes_read": 9, "bytes_written": 9, "map_keys": 1, "map_slots": 9}
    set_property("users", "log.p0.last-pass", json.dumps(last_pass | {"colour": "blue"}))

    told = keptlog("status")

    assert told.code == 0, told.err
    assert "users-0" in told.out


def test_a_home_of_which_no_topic_can_be_read_is_not_said_to_have_none(keptlog: Run, topics: Path) -> None:
    for topic in ("orders", "users"):
        set_property(topic, "log.p0.last-pass", "nonsense")

    told = keptlog("status")

    assert told.code == 1
    assert "no topics in" not in told.out
    assert "orders: topic orders: property log.p0.last-pass='nonsense' is no record of a clean" in told.err


def test_what_verify_has_found_broken_is_told_until_it_is_whole(keptlog: Run, topics: Path) -> None:
    leave_checks(topics, {"orders-0": {"G1": "offset 3 is gone"}, "gone-0": {"G1": "of a topic that is gone"}})
    told = keptlog("status")
    assert (told.code, told.err) == (1, "keptlog: verify found orders-0 broken: G1: offset 3 is gone\n")
    assert "users-1" in told.out
    assert keptlog("status", "--json").json["broken"] == {
        "orders-0": "verify found orders-0 broken: G1: offset 3 is gone"
    }
    assert keptlog("status", "users").code == 0
    assert keptlog("verify").code == 0
    assert (keptlog("status").code, keptlog("status").err) == (0, "")


def set_property(topic: str, name: str, value: str) -> None:
    open_home().store.load_table(topic).transaction().set_properties({name: value}).commit_transaction()


def test_more_logs_than_a_person_reads_are_told_by_the_worst_of_them(
    keptlog: Run, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.cli.status.MOST_SHOWN", 2)
    failure = Failure(TopicPartition("users", 1), "segment 7 is gone", None, Action.FIX_DATA)
    open_home().store.mark_uncleanable("users", [failure], int(NOW_MS), Backoff(60_000, 60_000))
    shown = keptlog("status").out
    rows = [line.partition(" ")[0] for line in shown.splitlines()[1:3]]
    assert rows == ["users-1", "orders-0"]
    assert "these are the worst 2 of 3 logs; name topics to see theirs, --json has all" in shown
    assert len(keptlog("status", "--json").json["logs"]) == 3
    assert "worst" not in keptlog("status", "users", "orders").out


def test_a_volume_that_is_gone_is_told_in_a_few_lines_and_each_topic_is_looked_at_again_once(
    keptlog: Run, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.cli.status.MOST_DAMAGED", 1)
    for name in ("users", "shop"):
        if name == "shop":
            open_home().store.create_topic(name, 3, {"cleanup.policy": "compact"})
        records = [NewRecord(b"a", b"1", 1_700_000_000_000, partition) for partition in range(2)]
        open_home().store.append(name, records, f"all-{name}", 1_700_000_000_000)
    keptlog("status")
    for path in topics.rglob("*.parquet"):
        path.unlink()
    looked = topics_asked_of(UnopenedStore, monkeypatch)
    told = keptlog("status")
    assert told.code == 1
    first, rest = told.err.splitlines()
    assert "is missing from storage though the table lists it" in first
    assert rest == "keptlog: 4 more logs: files are missing or damaged; status --json and verify name them all"
    assert sorted(looked) == sorted(2 * ["orders", "shop", "users"])
    assert len(keptlog("status", "--json").json["damaged"]) == 5
