"""A value of another type than a call takes is refused with one of keptlog's errors, before any of it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.home import Home, open_home
from keptlog.log.record import NewRecord
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.passes.names import named_logs
from keptlog.passes.readers import ReaderStanding
from keptlog.table.reading.readers import PositionFiles, ReaderPosition, Registration


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A topic of one record and a reader of it."""
    home = open_home(tmp_path / "home", {})
    home.create_topic("users", 2, {"cleanup.policy": "compact"})
    home.append("users", [NewRecord(b"a", b"1", 5, 0)])
    home.readers.add("users", "search", now_ms=5)
    return home


def standing(home: Home) -> ReaderStanding:
    return home.readers.list(["users"], now_ms=5)[0]


@pytest.mark.parametrize("positions", [{0: 1.0}, {0: "1"}, {0: None}, {0: True}, {"0": 1}, {0.0: 1}, {1: 0, 0: 1.0}])
def test_a_position_that_is_no_whole_number_is_refused_and_none_is_stored(home: Home, positions: Any) -> None:
    with pytest.raises(InvalidConfig, match=r"reader search of topic users: .*give a whole number"):
        home.readers.commit("users", "search", positions)
    assert (standing(home).position, standing(home).problem) == (None, None)
    assert [record.offset for _, record in home.readers.read("users", "search")] == [0]


def test_no_other_caller_stores_such_a_position_either(home: Home) -> None:
    files = PositionFiles(home.store.files, home.describe_topic("users").location)
    with pytest.raises(InvalidConfig, match="give a whole number"):
        files.write("search", Registration("id", 0, 0), 0, ReaderPosition(1.0))  # type: ignore[arg-type]


def test_whole_numbers_of_numpy_are_whole_numbers(home: Home) -> None:
    zero: Any = np.int32(0)
    home.readers.commit("users", "search", {zero: np.int64(1)})  # type: ignore[dict-item]
    assert standing(home).position == 1
    home.append("users", [NewRecord(b"b", b"1", np.int64(7), np.int64(1))])  # type: ignore[arg-type]
    assert [(number, record.timestamp_ms) for number, record in home.read("users", 1)] == [(1, 7)]


@pytest.mark.parametrize("hold_max_ms", [5.0, "5", True])
def test_a_reader_is_not_registered_with_a_time_that_is_none(home: Home, hold_max_ms: Any) -> None:
    """A float made the registrations of the whole topic unreadable."""
    with pytest.raises(InvalidConfig, match=r"hold-max-ms is .*give a whole number"):
        home.readers.add("users", "late", hold_max_ms, now_ms=5)
    with pytest.raises(InvalidConfig, match=r"now_ms is .*give a whole number"):
        home.readers.add("users", "late", now_ms=hold_max_ms)
    assert [each.reader for each in home.readers.list(["users"], now_ms=5)] == ["search", "search"]


@pytest.mark.parametrize("partitions", [2.0, "2", None, True])
def test_a_topic_is_not_created_with_a_number_of_partitions_that_is_none(home: Home, partitions: Any) -> None:
    """With 2.0 it was created, and could not be opened."""
    with pytest.raises(InvalidConfig, match=r"topic orders: the number of partitions is .*give a whole number"):
        home.create_topic("orders", partitions)
    assert home.topics() == ["users"]


@pytest.mark.parametrize("value", [5, None, True, ["5"]])
def test_a_setting_that_is_no_text_is_refused_by_its_name(home: Home, value: Any) -> None:
    for name in ("segment.ms", "cleanup.policy", "min.cleanable.dirty.ratio", "compaction.strategy"):
        with pytest.raises(InvalidConfig) as refused:
            home.alter_topic("users", {name: value})
        told = f"{name} is {value!r}, of type {type(value).__name__}: give it as text (str)"
        assert told in str(refused.value)
    with pytest.raises(InvalidConfig, match=r"segment\.ms is .*give it as text"):
        home.create_topic("orders", 1, {"segment.ms": value})
    assert home.topics() == ["users"]
    assert home.describe_topic("users").raw_config == {"cleanup.policy": "compact"}


def test_a_name_of_a_setting_that_is_no_text_is_one_that_no_setting_has(home: Home) -> None:
    settings: Mapping[Any, str] = {5: "5"}
    with pytest.raises(InvalidConfig, match="there is no setting 5: known are "):
        home.alter_topic("users", settings)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("key", "a", "its key is of type str: give bytes, or None"),
        ("value", "text", "its value is of type str: give bytes, or None"),
        ("value", 5, "its value is of type int: give bytes, or None"),
        ("timestamp_ms", 5.5, "its timestamp is 5.5, of type float: give a whole number (int)"),
        ("timestamp_ms", "5", "its timestamp is '5', of type str: give a whole number (int)"),
        ("timestamp_ms", None, "its timestamp is None, of type NoneType: give a whole number (int)"),
        ("partition", "0", "its partition is '0', of type str: give a whole number (int)"),
        ("partition", 1.0, "its partition is 1.0, of type float: give a whole number (int)"),
        ("partition", True, "its partition is True, of type bool: give a whole number (int)"),
        ("headers", ((b"n", b"v"),), "its headers are not pairs of a name (str) and a value (bytes, or None)"),
        ("headers", (("n", "v"),), "its headers are not pairs of a name (str) and a value (bytes, or None)"),
        ("headers", ("nv",), "its headers are not pairs of a name (str) and a value (bytes, or None)"),
        ("headers", (("n",),), "its headers are not pairs of a name (str) and a value (bytes, or None)"),
        ("headers", {"n": b"v"}, "its headers are not pairs of a name (str) and a value (bytes, or None)"),
        ("headers", np.array(()), "its headers are not pairs of a name (str) and a value (bytes, or None)"),
        ("headers", None, "its headers are not pairs of a name (str) and a value (bytes, or None)"),
    ],
)
def test_a_record_with_a_part_of_another_type_is_refused_with_its_batch(
    home: Home, field: str, value: Any, told: str
) -> None:
    parts: dict[str, Any] = {"key": b"b", "value": b"1", "timestamp_ms": 5, field: value}
    with pytest.raises(InvalidRecord) as refused:
        home.append("users", [NewRecord(b"c", b"1", 5), NewRecord(**parts)])
    assert str(refused.value) == (f"topic users: record 2 can't be appended: {told}; nothing was appended")
    assert [record.key for _, record in home.read("users")] == [b"a"]


NO_TIME = 1795619412634.977
"""What ``time.time() * 1000`` gives: before it was refused, it was stored, and the topic could not be read again."""

TOLD_A_TIME: dict[str, Callable[[Home, Any], object]] = {
    "append": lambda home, time: home.append("users", [NewRecord(b"b", b"1", 5)], now_ms=time),
    "plan": lambda home, time: home.plan("users", now_ms=time),
    "clean": lambda home, time: home.clean("users", now_ms=time),
    "apply": lambda home, time: home.apply(home.path / "topics.yaml", now_ms=time),
    "repair": lambda home, time: home.repair("users", now_ms=time),
    "verify": lambda home, time: home.verify("users", now_ms=time),
    "retain": lambda home, time: home.retainer.retain(named_logs(home.store), "run", now_ms=time),
    "purge": lambda home, time: home.purger.purge(now_ms=time),
    "preview": lambda home, time: home.purger.preview(now_ms=time),
    "erase": lambda home, time: home.eraser.propose(ErasureRequest("r1", ["users"], [b"a"]), now_ms=time),
    "advance": lambda home, time: home.eraser.advance(now_ms=time),
    "list": lambda home, time: home.eraser.list(now_ms=time),
    "verify erasures": lambda home, time: home.eraser.verify(now_ms=time),
    "readers": lambda home, time: home.readers.list(["users"], now_ms=time),
    "a new reader": lambda home, time: home.readers.add("users", "late", now_ms=time),
}
NANOSECONDS = 1_800_000_000_000_000_000
"""What ``time.time_ns()`` gives: tombstones were stamped with the year 9999."""


@pytest.mark.parametrize("call", TOLD_A_TIME.values(), ids=TOLD_A_TIME.keys())
def test_a_time_that_is_no_whole_number_is_refused_before_anything_is_done(
    home: Home, call: Callable[[Home, Any], object]
) -> None:
    (home.path / "topics.yaml").write_text("topics: {users: {partitions: 3}}\n")
    before = home.store.metadata_locations()
    with pytest.raises(InvalidConfig, match=r"^now_ms is 1795619412634\.977, of type float: give a whole number"):
        call(home, NO_TIME)
    assert home.store.metadata_locations() == before


@pytest.mark.parametrize("call", TOLD_A_TIME.values(), ids=TOLD_A_TIME.keys())
def test_a_time_that_no_calendar_has_is_refused_before_anything_is_done(
    home: Home, call: Callable[[Home, Any], object]
) -> None:
    (home.path / "topics.yaml").write_text("topics: {users: {partitions: 3}}\n")
    before = home.store.metadata_locations()
    with pytest.raises(InvalidConfig, match=r"^now_ms=18\d* is after the year 9999: are these nanoseconds, of 2027-"):
        call(home, NANOSECONDS)
    assert home.store.metadata_locations() == before
    assert len(list(home.read("users"))) == 1


def test_an_erasure_is_asked_for_by_no_other_types(home: Home) -> None:
    request: Any = ErasureRequest
    with pytest.raises(InvalidConfig, match=r"^deadline_ms is .* give a whole number"):
        request("r1", ["users"], keys=[b"a"], deadline_ms=NO_TIME)
    with pytest.raises(InvalidConfig, match=r"^the reason of an erasure is 5, .* give it as text"):
        request("r1", ["users"], keys=[b"a"], reason=5)
    with pytest.raises(InvalidConfig, match=r"^a run id is 5, .* give it as text"):
        home.eraser.propose(request(5, ["users"], keys=[b"a"]), now_ms=5)
    assert request("r1", ["users"], deadline_ms=np.int64(7)).deadline_ms == 7


NAMED: dict[str, Callable[[Home, Any], object]] = {
    "a topic's name": lambda home, name: home.create_topic(name),
    "a run id": lambda home, name: home.append("users", [NewRecord(b"b", b"1", 5)], run_id=name),
    "a reader's name": lambda home, name: home.readers.add("users", name, now_ms=5),
}


@pytest.mark.parametrize(("what", "call"), NAMED.items())
def test_a_name_that_is_no_text_is_refused(home: Home, what: str, call: Callable[[Home, Any], object]) -> None:
    with pytest.raises(InvalidConfig, match=f"^{what} is 5, of type int: give it as text"):
        call(home, 5)


LISTED: dict[str, Callable[[Home, Any], object]] = {
    "the topics to delete": lambda home, names: home.apply(home.path / "topics.yaml", delete=names),
    "the topics to export": lambda home, names: home.applier.export(names),
    "the settings to unset": lambda home, names: home.alter_topic("users", {"segment.ms": "100000"}, names),
    "the patterns of topics": lambda home, names: home.only(names),
    "the names of topics and logs": lambda home, names: home.cleaner().plan(names, now_ms=5),
    "the topics of erasures": lambda home, names: home.eraser.list(names, now_ms=5),
    "the ids of erasures": lambda home, names: home.eraser.verify(names, now_ms=5),
    "the topics of readers": lambda home, names: home.readers.list(names, now_ms=5),
    "the topics to purge": lambda home, names: home.purger.purge(names, now_ms=5),
    "the topics to purge, told before": lambda home, names: home.purger.preview(names, now_ms=5),
}


@pytest.mark.parametrize("names", ["ab", b"ab", None, 5, ["a", None], [["a"]]], ids=repr)
@pytest.mark.parametrize(("what", "call"), LISTED.items(), ids=LISTED.keys())
def test_one_name_in_place_of_a_list_is_refused(
    home: Home, what: str, call: Callable[[Home, Any], object], names: Any
) -> None:
    """Its letters were taken for names: ``delete="ab"`` deleted the topics a and b, and left ab."""
    for topic in ("a", "b", "ab"):
        home.create_topic(topic, config={"cleanup.policy": "compact"})
    (home.path / "topics.yaml").write_text("topics: {}\n")
    before = home.store.metadata_locations()
    with pytest.raises(InvalidConfig, match=f"^{what.partition(',')[0]}: .*give (a list|it as str)"):
        call(home, names)
    assert home.store.metadata_locations() == before


def test_names_of_an_iterator_are_all_taken(home: Home) -> None:
    """The check used the iterator up, and then nothing was deleted, or unset."""
    home.create_topic("late", config={"cleanup.policy": "compact", "segment.ms": "100000"})
    altered = home.alter_topic("late", {"segment.bytes": "1048576"}, iter(["segment.ms"]))  # type: ignore[arg-type]
    assert altered.raw_config == {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    (home.path / "topics.yaml").write_text("topics: {}\n")
    applied = home.apply(home.path / "topics.yaml", delete=iter(["late"]))  # type: ignore[arg-type]
    assert (applied.plan.deletions, dict(applied.failed), home.topics()) == (("late",), {}, ["users"])


@pytest.mark.parametrize(
    "call",
    [
        lambda home: home.describe_topic(None),
        lambda home: home.describe_topic(["users"]),
        lambda home: home.delete_topic(["users"]),
        lambda home: home.append(["users"], []),
        lambda home: home.read(["users"]),
        lambda home: home.append(None, []),
        lambda home: home.plan(["users"]),
        lambda home: home.receipts.show(1),
        lambda home: home.eraser.hash_of("a"),
    ],
)
def test_what_is_no_name_key_or_number_ends_in_an_error_of_keptlog(home: Home, call: Callable[[Home], object]) -> None:
    with pytest.raises(InvalidConfig, match="of type"):
        call(home)


@pytest.mark.parametrize("offset", [0.5, 0.0, "0", None, True])
def test_an_offset_to_read_from_that_is_no_whole_number_is_refused(home: Home, offset: Any) -> None:
    """With 0.5 it was read from 1 on."""
    for latest in (False, True):
        with pytest.raises(InvalidConfig, match=r"^the offset to read from is .* give a whole number"):
            list(home.read("users", from_offset=offset, latest=latest))


def test_positions_that_are_not_given_by_partition_are_refused(home: Home) -> None:
    positions: Any = [1]
    with pytest.raises(InvalidConfig, match="reader search of topic users: positions are of type list"):
        home.readers.commit("users", "search", positions)


def test_what_is_no_new_record_is_refused(home: Home) -> None:
    record: Any = {"key": b"a", "value": b"1"}
    with pytest.raises(InvalidRecord, match="record 1 can't be appended: it is of type dict: give a NewRecord"):
        home.append("users", [record])


@pytest.mark.parametrize("records", [None, 5, NewRecord(b"a", b"1", 5)])
def test_what_is_no_list_of_records_is_refused(home: Home, records: Any) -> None:
    with pytest.raises(InvalidRecord, match=r"^topic users: what is to be appended is of type .* give a list of NewR"):
        home.append("users", records)
    assert len(list(home.read("users"))) == 1


@pytest.mark.parametrize("partition", ["0", 0.0, [0], True])
def test_a_partition_to_read_that_is_no_whole_number_is_refused(home: Home, partition: Any) -> None:
    with pytest.raises(InvalidConfig, match=r"^a partition is .* give a whole number"):
        list(home.read("users", partition))


@pytest.mark.parametrize("settings", [["segment.ms"], "segment.ms", [("segment.ms", "5")], None])
def test_settings_that_are_not_given_by_name_are_refused(home: Home, settings: Any) -> None:
    with pytest.raises(InvalidConfig, match=r"^the settings: of type .* give a dict"):
        home.alter_topic("users", settings)
