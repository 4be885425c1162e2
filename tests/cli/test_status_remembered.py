"""What ``keptlog status`` tells from the numbers that it remembers is what it tells when it judges every log anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import Action
from keptlog.home import open_home
from keptlog.log import assessment as assessments
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.resident import likeness
from keptlog.table.changes.mark import Failure
from keptlog.table.reading.cache import STANDING
from keptlog.table.unopened import UnopenedStore
from tests.cli.conftest import Outcome, Run
from tests.conftest import topics_asked_of
from tests.table.foreign import insert, table_of

NOW_MS, HOUR_MS = 1_800_000_000_000, 3_600_000
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.ms": str(2 * HOUR_MS),
    "min.compaction.lag.ms": str(HOUR_MS),
    "max.compaction.lag.ms": str(5 * HOUR_MS),
}


@pytest.fixture
def topics(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two topics, four logs, of which one is empty and one has failed; the clock stands."""
    set_clock(monkeypatch, NOW_MS)
    store = open_home().store
    for name, partitions in (("orders", 1), ("users", 3)):
        store.create_topic(name, partitions, SETTINGS)
        append(name)
    append("users", 1, NOW_MS - HOUR_MS)
    failure = Failure(TopicPartition("users", 1), "segment 7 is gone", None, Action.FIX_DATA)
    store.mark_uncleanable("users", [failure], NOW_MS - 1, Backoff(3 * HOUR_MS, 3 * HOUR_MS))
    return home


@pytest.fixture
def looked(topics: Path, keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics whose logs were put together since, in a home that is remembered."""
    remember(keptlog)
    return topics_asked_of(UnopenedStore, monkeypatch)


def set_clock(monkeypatch: pytest.MonkeyPatch, now_ms: int) -> None:
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(now_ms))


def append(topic: str, partition: int = 0, time_ms: int = NOW_MS) -> None:
    open_home().store.append(topic, [NewRecord(b"a", b"1", time_ms, partition)], None, NOW_MS)


def remember(keptlog: Run) -> None:
    """The first look reads the tables, the second one remembers the numbers."""
    keptlog("status")
    keptlog("status")


def told(keptlog: Run) -> tuple[Outcome, Outcome]:
    return keptlog("status"), keptlog("status", "--json")


def told_without(keptlog: Run, home: Path) -> tuple[Outcome, Outcome]:
    shutil.rmtree(home / "cache")
    return told(keptlog)


def segments(home: Path, topic: str) -> list[Path]:
    return sorted(home.glob(f"warehouse/keptlog/{topic}/data/**/*.parquet"))


def test_where_nothing_has_changed_no_log_is_put_together(keptlog: Run, topics: Path, looked: list[str]) -> None:
    text, document = told(keptlog)
    assert looked == []
    assert "users-1: uncleanable since" in text.out
    assert len(document.json["logs"]) == 4
    assert (text, document) == told_without(keptlog, topics)


@pytest.mark.parametrize("hours", [-24, -1, 0.5, 1, 2, 2.001, 3, 4, 5, 5.001, 24, 10**5])
def test_what_the_clock_changes_is_told_as_of_now(
    keptlog: Run, topics: Path, looked: list[str], monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    set_clock(monkeypatch, NOW_MS + int(hours * HOUR_MS))
    remembered = told(keptlog)
    assert remembered == told_without(keptlog, topics)


def test_a_log_that_is_late_is_later_at_each_look_without_being_judged_again(
    keptlog: Run, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_ms = NOW_MS + 20 * HOUR_MS
    set_clock(monkeypatch, late_ms)
    remember(keptlog)
    looked = topics_asked_of(UnopenedStore, monkeypatch)
    delays = []
    for passed_ms in (0, 7):
        set_clock(monkeypatch, late_ms + passed_ms)
        document = keptlog("status", "--json").json
        delays.append(document["logs"][0]["max_compaction_delay_ms"])
        assert document["logs"][0]["due_ms"] == late_ms + passed_ms
    assert delays == [15 * HOUR_MS, 15 * HOUR_MS + 7]
    assert looked == []


def test_other_broker_settings_are_judged_by(keptlog: Run, topics: Path, looked: list[str]) -> None:
    (topics / "server.properties").write_text("log.cleaner.enable=false\nkeptlog.purge.interval.ms=5\n")
    remembered = told(keptlog)
    assert remembered[1].json["cleaner_disabled"] is not None
    assert remembered == told_without(keptlog, topics)


def _appended(home: Path) -> None:
    append("orders", time_ms=NOW_MS - 9 * HOUR_MS)


def _altered(home: Path) -> None:
    open_home().store.alter_topic("orders", {"segment.ms": "5400000"})


def _changed_by_another_program(home: Path) -> None:
    table_of(home, "orders").transaction().set_properties({"kafka.segment.ms": "5400001"}).commit_transaction()


def _written_by_another_program(home: Path) -> None:
    insert(home, 900, topic="orders")


def _deleted(home: Path) -> None:
    open_home().store.delete_topic("orders", NOW_MS)


@pytest.mark.parametrize(
    "change", [_appended, _altered, _changed_by_another_program, _written_by_another_program, _deleted]
)
def test_a_commit_is_noticed_whoever_made_it(
    keptlog: Run, topics: Path, looked: list[str], change: Callable[[Path], None]
) -> None:
    before = told(keptlog)
    change(topics)
    remembered = told(keptlog)
    assert remembered != before
    assert set(looked) <= {"orders"}
    assert remembered == told_without(keptlog, topics)


@pytest.mark.parametrize("content", [None, b"", b"cut short"])
def test_a_file_that_is_gone_or_cut_off_is_told_and_one_that_is_put_back_is_not(
    keptlog: Run, topics: Path, looked: list[str], content: bytes | None
) -> None:
    path = segments(topics, "users")[0]
    whole = path.read_bytes()
    path.unlink() if content is None else path.write_bytes(content)
    damaged = told(keptlog)
    assert damaged[0].code == 1
    assert path.name in damaged[0].err
    assert list(damaged[1].json["damaged"]) == ["users-0"]
    assert set(looked) == {"users"}
    path.write_bytes(whole)
    assert told(keptlog)[0].code == 0
    path.unlink()
    assert told(keptlog)[1].json["damaged"].keys() == told_without(keptlog, topics)[1].json["damaged"].keys()


def test_a_file_of_watermarks_that_is_gone_is_told_too(keptlog: Run, topics: Path) -> None:
    marks = topics / "warehouse" / "keptlog" / "orders" / "data" / "marks"
    marks.write_bytes(b"any")
    properties = {"log.p0.watermarks": str(marks)}
    table_of(topics, "orders").transaction().set_properties(properties).commit_transaction()
    remember(keptlog)
    assert keptlog("status").code == 0
    marks.unlink()
    assert "with its watermarks is missing from storage" in keptlog("status").err


def test_a_folder_that_is_gone_is_told_and_one_that_may_not_be_listed_is_not(
    keptlog: Run, topics: Path, looked: list[str]
) -> None:
    folder = topics / "warehouse" / "keptlog" / "users" / "data"
    folder.rename(folder.with_name("elsewhere"))
    assert sorted(keptlog("status", "--json").json["damaged"]) == ["users-0", "users-1"]
    folder.with_name("elsewhere").rename(folder)
    folder.chmod(0o100)
    try:
        assert keptlog("status").code == 0
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("remembered", [False, True])
def test_a_file_that_can_not_be_asked_for_costs_its_log_alone(keptlog: Run, topics: Path, *, remembered: bool) -> None:
    if remembered:
        remember(keptlog)
    segment = segments(topics, "users")[0]
    folder = segment.parent
    folder.rename(folder.with_name("aside"))
    folder.symlink_to(folder.name)  # whoever follows it never comes to an end: root is no exception
    segments(topics, "users")[-1].unlink()
    for _ in range(2):
        text, document = told(keptlog)
        assert (text.code, document.code) == (1, 1)
        assert "orders-0" in text.out
        assert [each["topic_partition"] for each in document.json["logs"]] == [
            "orders-0",
            "users-0",
            "users-1",
            "users-2",
        ]
        assert list(document.json["damaged"]) == ["users-1"]
        assert list(document.json["files_not_looked_at"]) == ["users-0"]
        [unseen, missing] = text.err.splitlines()
        assert unseen.startswith("keptlog: users-0: its files could not be looked at: ")
        assert str(segment) in unseen
        assert "missing" not in unseen
        assert "users-1" in missing
    folder.unlink()
    folder.with_name("aside").rename(folder)
    assert keptlog("status", "--json").json["files_not_looked_at"] == {}


def test_a_topic_that_is_called_like_a_log_of_another_one_is_looked_for_too(keptlog: Run, topics: Path) -> None:
    open_home().store.create_topic("users-2", 1, SETTINGS)
    append("users-2")
    for _ in range(3):
        segment = segments(topics, "users-2")[0]
        whole = segment.read_bytes()
        segment.unlink()
        assert list(keptlog("status", "--json").json["damaged"]) == ["users-2-0"]
        segment.write_bytes(whole)


@pytest.mark.parametrize("cut", [lambda content: content[: len(content) // 2], lambda content: content[:-9] + b"}" * 9])
def test_numbers_that_are_damaged_count_as_none(
    keptlog: Run, topics: Path, looked: list[str], cut: Callable[[bytes], bytes]
) -> None:
    file = topics / "cache" / f"orders{STANDING}"
    file.write_bytes(cut(file.read_bytes()))
    remembered = told(keptlog)
    assert set(looked) == {"orders"}
    assert remembered == told_without(keptlog, topics)


def test_numbers_of_another_keptlog_count_as_none(
    keptlog: Run, topics: Path, looked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its rules may be others: a module that was changed makes it another one."""
    package = tmp_path / "another" / "keptlog"
    shutil.copytree(Path(assessments.__file__).parent, package / "log")
    monkeypatch.setattr(likeness, "_PACKAGE", str(package))
    remember(keptlog)
    assert set(looked) == {"orders", "users"}
    looked.clear()
    keptlog("status")
    assert looked == []
    os.utime(package / "log" / "assessment.py", ns=(1, 1))
    keptlog("status")
    assert set(looked) == {"orders", "users"}


def test_a_topic_with_readers_is_looked_at_each_time(keptlog: Run, topics: Path, looked: list[str]) -> None:
    assert keptlog("reader", "add", "users", "search").code == 0
    for _ in range(3):
        looked.clear()
        keptlog("status")
        assert looked == ["users"]


def test_what_is_remembered_of_a_deleted_topic_goes_with_it(keptlog: Run, topics: Path, looked: list[str]) -> None:
    names = [path.name for path in (topics / "cache").iterdir()]
    assert sorted(names) == ["orders.json", "orders.standing", "users.json", "users.standing"]
    _deleted(topics)
    assert sorted(path.name for path in (topics / "cache").iterdir()) == ["users.json", "users.standing"]


def test_where_nothing_can_be_written_all_is_told(
    keptlog: Run, topics: Path, looked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(topics / "cache")
    (topics / "cache").write_bytes(b"in the way")
    assert told(keptlog) == told(keptlog)
    assert len(keptlog("status", "--json").json["logs"]) == 4
