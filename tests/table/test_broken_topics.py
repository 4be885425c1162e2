"""One topic that is broken, in whatever way, says what is wrong and what to do, and costs only itself."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable, UnsupportedFormat
from keptlog.home import new_id, open_home
from keptlog.ingest.kafka_brokers import topics_from_brokers
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import NewRecord
from keptlog.passes.names import named_logs
from keptlog.passes.observer import Observer, observe
from keptlog.passes.purge import Purger
from keptlog.passes.retain import Retainer
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.broken_topics import BREAKAGES, Breakage, metadata_file
from tests.logs import open_store

NOW_MS = 1_800_000_000_000

every_breakage = pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: breakage.id)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Three topics, of which ``odd`` is to be broken."""
    store = open_store(tmp_path)
    for topic in ("first", "odd", "users"):
        store.create_topic(topic, 1, {"cleanup.policy": "compact"})
        store.append(topic, [NewRecord(b"k", b"1", NOW_MS, 0)], new_id(), NOW_MS)
    return store


@every_breakage
def test_a_broken_topic_is_refused_with_the_file_or_the_setting_and_what_to_do(
    store: LogStore, tmp_path: Path, breakage: Breakage
) -> None:
    breakage(store, "odd")
    for broken in (store, open_store(tmp_path)):
        for read in (broken.logs, broken.observe):
            with pytest.raises((LogCorrupt, InvalidConfig, UnsupportedFormat)) as refused:
                read("odd")
            assert breakage.said in str(refused.value)
            assert "odd" in str(refused.value)
            assert "\n" not in str(refused.value)


def test_no_append_takes_the_place_of_all_records_where_main_is_not_the_current_snapshot(store: LogStore) -> None:
    file = metadata_file(store, "odd")
    content = file.read_bytes()
    next(each for each in BREAKAGES if each.id == "main is not the current snapshot")(store, "odd")
    with pytest.raises(LogCorrupt, match="main is at snapshot 1, and the current one is"):
        store.append("odd", [NewRecord(b"k", b"2", NOW_MS, 0)], new_id(), NOW_MS)
    file.write_bytes(content)
    assert [log.log_end_offset for log in store.logs("odd")] == [1]


@every_breakage
def test_whoever_looks_at_all_topics_sees_the_others(store: LogStore, tmp_path: Path, breakage: Breakage) -> None:
    breakage(store, "odd")
    anew = open_store(tmp_path)
    unopened = UnopenedStore(tmp_path, {}, lambda: open_home(tmp_path).store)
    observer = Observer(anew, lambda: 0)
    looks = (observe(anew, now_ms=NOW_MS), observe(unopened, now_ms=NOW_MS), named_logs(anew))
    for seen in (*looks, observer.look(NOW_MS), observer.look(NOW_MS)):
        assert [str(log.topic_partition) for log in seen.logs] == ["first-0", "users-0"]
        assert list(seen.unreadable) == ["odd"]


@every_breakage
def test_passes_over_all_topics_do_the_others(store: LogStore, tmp_path: Path, breakage: Breakage) -> None:
    breakage(store, "odd")
    anew = open_store(tmp_path)
    assert {"first", "users"} <= Purger(anew).purge(now_ms=NOW_MS).receipts.keys()
    assert list(Retainer(anew).retain(named_logs(anew), "retain", now_ms=NOW_MS).failed) == ["odd"]
    assert topics_from_brokers(anew).keys() <= {"odd"}
    scan = LagScanner(anew).scan(ClientSettings.load({}, {}), NOW_MS)
    assert (scan.topics, scan.unanswered) == ((), ())


@every_breakage
def test_a_catalog_that_is_asked_topic_by_topic_still_tells_where_the_others_are(
    store: LogStore, tmp_path: Path, breakage: Breakage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a REST catalog, Glue or Hive is."""
    breakage(store, "odd")
    monkeypatch.setattr("keptlog.table.commits.locations.SqlCatalog", type("NoSqlCatalog", (), {}))
    anew = open_store(tmp_path)
    assert anew.metadata_locations().keys() >= {"first", "users"}
    seen = Observer(anew, lambda: 0).look(NOW_MS)
    assert [str(log.topic_partition) for log in seen.logs] == ["first-0", "users-0"]
    assert list(seen.unreadable) == ["odd"]


def test_a_topic_whose_file_is_put_back_is_seen_again_at_the_next_look(store: LogStore, tmp_path: Path) -> None:
    file = Path(store.metadata_locations()["odd"].removeprefix("file://"))
    content = file.read_bytes()
    observer = Observer(open_store(tmp_path), lambda: 0)
    file.write_bytes(content[:100])
    assert list(observer.look(NOW_MS).unreadable) == ["odd"]
    file.write_bytes(content)
    assert observer.look(NOW_MS).unreadable == {}


def test_a_disk_that_is_not_mounted_is_an_outage_and_no_damage(store: LogStore, tmp_path: Path) -> None:
    shutil.move(tmp_path / "warehouse", tmp_path / "elsewhere")
    with pytest.raises(StorageUnavailable):
        store.logs("users")
    shutil.move(tmp_path / "elsewhere", tmp_path / "warehouse")
    assert len(store.logs("users")) == 1


def test_a_catalog_whose_topics_all_fail_to_answer_is_an_outage_of_all(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(*_: object) -> object:
        raise ConnectionError("connection refused")

    monkeypatch.setattr("keptlog.table.commits.locations.SqlCatalog", type("NoSqlCatalog", (), {}))
    monkeypatch.setattr(type(store._catalog), "load_table", no_answer)
    with pytest.raises(StorageUnavailable, match="connection refused"):
        store.metadata_locations()


def test_a_topic_that_does_not_answer_costs_only_itself(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    load = type(store._catalog).load_table

    def forbidden(catalog: Catalog, identifier: tuple[str, str]) -> object:
        if identifier[-1] == "odd":
            raise PermissionError("odd/metadata is not yours")
        return load(catalog, identifier)

    monkeypatch.setattr(type(store._catalog), "load_table", forbidden)
    seen = Observer(store, lambda: 0).look(NOW_MS)
    assert [str(log.topic_partition) for log in seen.logs] == ["first-0", "users-0"]
    assert "not yours" in str(seen.unreadable["odd"])


def test_a_foreign_setting_is_removed_by_the_command_that_the_error_names(store: LogStore) -> None:
    table = store.load_table("odd")
    table.transaction().set_properties({"kafka.of.mine": "x", "kafka.of.yours": "y"}).commit_transaction()
    options = r"--delete-config of\.mine --delete-config of\.yours"
    with pytest.raises(InvalidConfig, match=f"keptlog topic alter odd {options}"):
        store.logs("odd")
    store.alter_topic("odd", {}, ["of.mine", "of.yours"])
    assert len(store.logs("odd")) == 1


def damaged(content: bytes) -> Iterator[bytes]:
    """Cut off at every few bytes, and with single bytes changed."""
    for end in range(0, len(content), len(content) // 40):
        yield content[:end]
    for index in range(0, len(content), len(content) // 80):
        yield content[:index] + bytes([content[index] ^ 0xFF]) + content[index + 1 :]


@pytest.mark.parametrize("kind", ["metadata", "manifest list", "manifest"])
def test_wherever_a_file_is_damaged_it_is_refused_or_read_and_never_a_bare_error(
    store: LogStore, tmp_path: Path, kind: str
) -> None:
    table = store.load_table("odd")
    snapshot = table.current_snapshot()
    assert snapshot
    paths = {
        "metadata": table.metadata_location,
        "manifest list": snapshot.manifest_list,
        "manifest": snapshot.manifests(table.io)[0].manifest_path,
    }
    file = Path(paths[kind].removeprefix("file://"))
    for content in damaged(file.read_bytes()):
        file.write_bytes(content)
        with contextlib.suppress(LogCorrupt, InvalidConfig, UnsupportedFormat):
            open_store(tmp_path).logs("odd")
