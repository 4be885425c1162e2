"""A topic says which format it is stored in: a newer major is refused by whatever comes, a newer minor is read over."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import CommitTableResponse, Table

from keptlog.errors import Action, InvalidConfig, LogCorrupt, UnsupportedFormat
from keptlog.log.plan import make_retention_plan
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff, Uncleanable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.mark import Failure
from keptlog.table.metadata.format import SET_IT_BACK, format_of
from keptlog.table.metadata.state import SNAPSHOT_ID
from keptlog.table.reading.cache import FOLDER, TopicCache
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    create,
    new_id,
    rewritten,
    step_for,
    store_over,
    values,
)

VERSION = "keptlog.format-version"
INGESTED = "ingested"
LOG = TopicPartition(TOPIC, 0)
DAY_MS = 24 * 3_600_000
MARK = Uncleanable("no space", NOW_MS, 1, NOW_MS + 1)
LAST_PASS = LastPass(NOW_MS, 5, 100, 50, 2, 1000)
SOURCE = SourceIdentity("users", "id-1", "broker:9092")
UNKNOWN = {
    VERSION: "1.7",
    "keptlog.colour": "blue",
    "log.colour": "blue",
    "log.p0.colour": "blue",
    "kafka.keptlog.colour.ms": "7",
    "kafka.compression.type": "blue",
    "log.p0.uncleanable": json.dumps(asdict(MARK) | {"colour": "blue"}),
    "log.p0.last-pass": json.dumps(asdict(LAST_PASS) | {"colour": "blue"}),
}
"""A newer minor version, with fields, properties and settings that only it knows."""
STAYS = {name: value for name, value in UNKNOWN.items() if "p0.uncleanable" not in name and "last-pass" not in name}

Call = Callable[[], object]


def observe(store: LogStore) -> object:
    return store.observe(TOPIC, store.metadata_locations()[TOPIC])


def swap(store: LogStore) -> Call:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    return lambda: store.swap(TOPIC, [outcome], new_id(), {LOG: LAST_PASS})


def retain(store: LogStore) -> Call:
    steps = make_retention_plan(store.logs(TOPIC), NOW_MS + 30 * DAY_MS).steps
    assert steps
    return lambda: store.retain(TOPIC, steps, new_id())


def ingest(store: LogStore) -> Call:
    return lambda: store.ingest(INGESTED, [Arrival(OffsetRange(0, 5, 5, 7), ())], SOURCE, 1, new_id())


READS: dict[str, Callable[[LogStore], Callable[[], Any]]] = {
    "describe": lambda store: lambda: store.describe_topic(TOPIC),
    "logs": lambda store: lambda: store.logs(TOPIC),
    "observe": lambda store: lambda: observe(store),
    "where its data lie": lambda store: lambda: store.data_location(TOPIC),
    "source": lambda store: lambda: store.source_of(TOPIC),
    "source of an ingested topic": lambda store: lambda: store.source_of(INGESTED),
    "read": lambda store: lambda: values(store),
    "read the latest": lambda store: lambda: values(store, latest=True),
}
WRITES: dict[str, Callable[[LogStore], Call]] = {
    "append": lambda store: lambda: append_each(store, [("b", "2")]),
    "ingest": ingest,
    "swap": swap,
    "retain": retain,
    "delete records": lambda store: lambda: store.delete_records(LOG, 1, new_id()),
    "alter": lambda store: lambda: store.alter_topic(TOPIC, {"segment.ms": "7"}),
    "unset": lambda store: lambda: store.alter_topic(TOPIC, {}, ["retention.ms"]),
    "mark": lambda store: lambda: store.mark_uncleanable(TOPIC, [Failure(LOG, "x", None)], NOW_MS, Backoff(1, 1)),
    "purge": lambda store: lambda: store.purge(TOPIC, time.time_ns() // 1_000_000 + DAY_MS),
    "delete the topic": lambda store: lambda: store.delete_topic(TOPIC, NOW_MS),
}
"""Every way to a topic: what it needs is made before the topic becomes one of another version, then it is called."""


@dataclass(frozen=True)
class Home:
    """A topic with two segments that may be cleaned and retained, and one that is ingested."""

    path: Path

    @property
    def store(self) -> LogStore:
        return LogStore(open_catalog(self.path), {}, time.sleep, new_id, TopicCache(self.path))

    def table(self, topic: str = TOPIC) -> Table:
        return open_catalog(self.path).load_table(("keptlog", topic))

    def plant(self, properties: Mapping[str, str]) -> None:
        for topic in (TOPIC, INGESTED):
            self.table(topic).transaction().set_properties(dict(properties)).commit_transaction()

    def properties(self, topic: str = TOPIC) -> dict[str, str]:
        return self.table(topic).properties

    @property
    def content(self) -> dict[Path, bytes]:
        """Every file, but for what was only looked at."""
        files = (path for path in self.path.rglob("*") if path.is_file() and FOLDER not in path.parts)
        return {path: path.read_bytes() for path in files}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    store = create(tmp_path / "home", config={"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)})
    append_each(store, [("a", "1"), ("b", "1")], [("a", "2")])
    store.create_topic(INGESTED, 1, {})
    store.ingest(INGESTED, [Arrival(OffsetRange(0, None, 5, 5), ())], SOURCE, 1, new_id())
    return Home(tmp_path / "home")


def test_a_new_topic_is_of_this_version_and_every_write_leaves_it_so(home: Home) -> None:
    store = home.store
    assert home.properties()[VERSION] == "1.4"
    for name, way in WRITES.items():
        if name not in {"retain", "delete the topic"}:
            way(store)()
            assert home.properties()[VERSION] == "1.4"


@pytest.mark.parametrize("before", [None, "1.0", "1.1"])
@pytest.mark.parametrize("name", READS | WRITES)
def test_an_older_topic_gets_this_version_with_its_next_snapshot_and_no_sooner(
    home: Home, name: str, before: str | None
) -> None:
    call = (READS | WRITES)[name](home.store)
    for topic in (TOPIC, INGESTED):
        if before is None:
            home.table(topic).transaction().remove_properties(VERSION).commit_transaction()
        else:
            home.table(topic).transaction().set_properties({VERSION: before}).commit_transaction()
    topic = INGESTED if name == "ingest" else TOPIC
    snapshot_id = home.table(topic).metadata.current_snapshot_id
    call()
    if name != "delete the topic":
        is_new = home.table(topic).metadata.current_snapshot_id != snapshot_id
        assert home.properties(topic).get(VERSION) == ("1.4" if is_new else before)
        assert is_new == (name in {"append", "ingest", "swap", "retain", "delete records", "alter", "unset"})


def test_a_newer_major_version_is_refused_whatever_is_done_and_nothing_of_it_is_touched(home: Home) -> None:
    store = home.store
    calls = {name: way(store) for name, way in (READS | WRITES).items()}
    home.plant({VERSION: "2.0"})
    before = home.content

    said = {name: refusal(call) for name, call in calls.items()}

    line = "topic {} was written by a newer keptlog (format 2.0; this one reads 1.x): upgrade keptlog"
    assert said == {name: line.format(INGESTED if "ingest" in name else TOPIC) for name in calls}
    assert home.content == before


def test_a_version_that_is_raised_while_a_write_is_on_its_way_refuses_it(home: Home) -> None:
    catalog = FaultyCatalog(open_catalog(home.path))
    store = store_over(catalog)

    def raised_first(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        transaction = home.table().transaction()
        transaction.update_snapshot().fast_append().commit()
        transaction.set_properties({VERSION: "2.0", SNAPSHOT_ID: str(transaction.table_metadata.current_snapshot_id)})
        transaction.commit_transaction()
        return commit()

    for call in (swap(store), WRITES["append"](store), WRITES["mark"](store)):
        home.table().transaction().set_properties({VERSION: "1.0"}).commit_transaction()
        catalog.faults = [raised_first]
        assert "upgrade keptlog" in refusal(call)
        assert catalog.faults == []
        assert (home.properties()["log.p0.log-end-offset"], "log.p0.uncleanable" in home.properties()) == ("3", False)


def refusal(call: Call) -> str:
    with pytest.raises(UnsupportedFormat) as refused:
        call()
    assert refused.value.action is Action.UPGRADE
    return str(refused.value)


def test_a_newer_minor_version_is_read_like_any_other(home: Home) -> None:
    store = home.store
    before = {name: way(store)() for name, way in READS.items()}
    home.plant(UNKNOWN)

    after = {name: way(store)() for name, way in READS.items()}

    assert {name for name in READS if before[name] != after[name]} == {"describe", "logs", "observe"}
    described, logs = store.describe_topic(TOPIC), store.logs(TOPIC)
    assert after["describe"] == replace(before["describe"], raw_config=described.raw_config)
    assert after["logs"] == [replace(log, uncleanable=MARK, was_cleaned=True) for log in before["logs"]] == logs
    assert after["observe"].logs == tuple(logs)


@pytest.mark.parametrize("name", WRITES)
def test_a_newer_minor_version_is_written_and_keeps_what_is_not_known_here(home: Home, name: str) -> None:
    store = home.store
    call = WRITES[name](store)
    home.plant(UNKNOWN)
    before = home.properties(), home.properties(INGESTED), home.content

    call()

    if name == "delete the topic":
        assert store.topics() == [INGESTED]
        return
    for topic in (TOPIC, INGESTED):
        assert STAYS.items() <= home.properties(topic).items()
    assert (home.properties(), home.properties(INGESTED), home.content) != before
    assert store.logs(TOPIC)[0].config == home.store.describe_topic(TOPIC).config


def test_what_a_newer_minor_version_says_in_words_that_are_known_counts(home: Home) -> None:
    home.plant(UNKNOWN | {"kafka.segment.ms": "7"})
    store = home.store
    assert store.describe_topic(TOPIC).config.segment_ms == 7
    assert store.describe_topic(TOPIC).raw_config["keptlog.colour.ms"] == "7"
    assert store.logs(TOPIC)[0].uncleanable == MARK
    assert store.observe(TOPIC, "").last_passes == {LOG: LAST_PASS}


def test_a_setting_that_is_not_known_is_refused_where_the_version_knows_all_settings(home: Home) -> None:
    home.plant({VERSION: "1.0", "kafka.keptlog.colour.ms": "7"})
    with pytest.raises(InvalidConfig, match=r"there is no setting 'keptlog\.colour\.ms'"):
        home.store.describe_topic(TOPIC)


def test_a_setting_that_is_not_known_can_be_set_in_no_version(home: Home) -> None:
    home.plant(UNKNOWN)
    with pytest.raises(InvalidConfig, match="there is no setting"):
        home.store.alter_topic(TOPIC, {"keptlog.colour.ms": "8"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "1",
        "1.",
        ".1",
        "1.0.0",
        "v1.0",
        "1.-1",
        "01.0",
        "1.00",
        " 1.0",
        "1.0\n",
        "0.9",
        "\u0661.0",
        "1" * 9000,
    ],
)
def test_what_is_no_version_is_refused_with_the_topic_and_the_value(text: str) -> None:
    with pytest.raises(LogCorrupt) as refused:
        format_of("t", {VERSION: text})
    said = f"topic t: property {VERSION}={text!r} is no version such as 1.4; {SET_IT_BACK}"
    assert str(refused.value) == said


@pytest.mark.parametrize("text", ["1.0", "1.1", "1.4", "1.5", "1.10", "1.9999"])
def test_every_minor_version_is_read(text: str) -> None:
    assert str(format_of("t", {VERSION: text})) == text
    assert format_of("t", {VERSION: text}).is_newer == (text not in {"1.0", "1.1", "1.4"})


def test_a_topic_whose_version_is_none_is_refused_by_reads_and_writes(home: Home) -> None:
    home.plant({VERSION: "abc"})
    before = home.content
    with pytest.raises(LogCorrupt, match=VERSION):
        home.store.logs(TOPIC)
    with pytest.raises(LogCorrupt, match=VERSION):
        append_each(home.store, [("b", "2")])
    assert home.content == before


def test_a_topic_of_a_newer_major_version_stops_no_other(home: Home) -> None:
    home.table().transaction().set_properties({VERSION: "2.0"}).commit_transaction()
    store = home.store

    assert store.topics() == [INGESTED, TOPIC]
    assert set(store.metadata_locations()) == {INGESTED, TOPIC}
    assert [log.log_end_offset for log in store.logs(INGESTED)] == [5]


def test_where_a_topic_lies_is_told_by_any_catalog_whatever_its_version(home: Home) -> None:
    home.plant({VERSION: "2.0"})
    no_sql_catalog = FaultyCatalog(open_catalog(home.path))
    assert store_over(no_sql_catalog).metadata_locations() == home.store.metadata_locations()


def test_what_was_remembered_of_a_newer_major_version_is_refused_too(home: Home) -> None:
    entry = remembered(home)
    entry["properties"][VERSION] = "2.0"
    remember(home, entry)
    with pytest.raises(UnsupportedFormat):
        observe(home.store)


def test_what_a_keptlog_remembered_that_knew_no_versions_counts_as_none(home: Home) -> None:
    """Which has looked at the topic as if it were of its own version."""
    entry = remembered(home)
    home.plant({VERSION: "2.0"})
    entry["location"] = home.table().metadata_location
    del entry["kept"], entry["properties"][VERSION]
    remember(home, entry)
    with pytest.raises(UnsupportedFormat):
        observe(home.store)


def test_what_a_newer_minor_version_has_remembered_is_read_over(home: Home) -> None:
    before = observe(home.store)
    remember(home, remembered(home) | {"colour": "blue"})
    known = TopicCache(home.path).get(TOPIC, home.store.metadata_locations()[TOPIC])
    assert known
    assert known.observed({}) == before


def remembered(home: Home) -> Any:
    """The entry of the cache as it was written by a look."""
    if not (home.path / FOLDER).exists():
        observe(home.store)
    return json.loads((home.path / FOLDER / f"{TOPIC}.json").read_bytes().partition(b"\n")[2])


def remember(home: Home, entry: Any) -> None:
    text = json.dumps(entry).encode()
    (home.path / FOLDER / f"{TOPIC}.json").write_bytes(b"%08x\n" % zlib.crc32(text) + text)
