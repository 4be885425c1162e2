"""What a clean or a verify does grows with the files that are lost, and not with their square.

A topic that has lost its volume misses thousands of files, in the hour in which somebody wants to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.home import Home, new_id, open_home
from keptlog.log.broker import BrokerConfig
from keptlog.log.record import NewRecord
from keptlog.passes.clean import Cleaner
from keptlog.passes.verify import verify_log
from keptlog.table.metadata import logs as metadata_logs
from keptlog.table.unopened import UnopenedStore
from tests.in_process import in_process_engine
from tests.passes.conftest import DAY_MS, NOW_MS
from tests.table.stores import counted_loads


@pytest.fixture
def logs_built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that were put together from what a table says, each time anew."""
    built: list[str] = []
    really = metadata_logs._log

    def build(topic_partition: object, *given: object) -> object:
        built.append(str(topic_partition))
        return really(topic_partition, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(metadata_logs, "_log", build)
    return built


@pytest.fixture
def tables_loaded() -> Iterator[list[str]]:
    """The topics whose tables were asked for at the catalog."""
    with counted_loads() as loaded:
        yield loaded


def all_lost(home: Home, topic: str, logs: int, segments: int = 1) -> None:
    """Make a topic, and take its data away."""
    home.store.create_topic(topic, logs, {"cleanup.policy": "compact"})
    for number in range(segments):
        old_ms = NOW_MS - 8 * DAY_MS + number
        records = [NewRecord(b"k", b"1", old_ms, partition) for partition in range(logs)]
        home.store.append(topic, records, new_id(), NOW_MS)
    for log in home.store.logs(topic):
        for segment in log.segments:
            Path(segment.path.removeprefix("file://")).unlink()


def clean(home: Home, topic: str) -> None:
    cleaner = Cleaner(home.store, in_process_engine(home.store.files), BrokerConfig())
    done = cleaner.commit(cleaner.stage(cleaner.begin([topic], new_id(), now_ms=NOW_MS, requested=True)))
    assert all(isinstance(error, LogCorrupt) for error in done.failed.values())
    assert len(done.failed) == len(home.store.logs(topic))


def verify(home: Home, topic: str) -> None:
    found = home.verify(topic)
    assert all("is missing from storage" in results[0].description for results in found.values())
    assert found


def verify_unopened(home: Home, topic: str) -> None:
    """As the command does, without a catalog that is opened."""
    store = UnopenedStore(home.path, {}, lambda: home.store, trusts=False)
    for log in store.logs(topic):
        assert "is missing from storage" in verify_log(store, log, NOW_MS)[0].description


@pytest.mark.parametrize("look", [clean, verify, verify_unopened])
def test_the_logs_of_a_topic_are_not_put_together_again_for_each_that_lost_a_file(
    look: Callable[[Home, str], None], logs_built: list[str], tmp_path: Path
) -> None:
    home = open_home(tmp_path, {})
    counts = {}
    for logs in (8, 16):
        all_lost(home, topic := f"t{logs}", logs)
        logs_built.clear()
        look(home, topic)
        counts[logs] = len(logs_built)
    assert counts[16] == 2 * counts[8]


def test_a_clean_asks_the_catalog_once_why_files_of_many_logs_are_missing(
    tables_loaded: list[str], tmp_path: Path
) -> None:
    home = open_home(tmp_path, {})
    counts = set()
    for logs in (2, 6):
        all_lost(home, topic := f"t{logs}", logs)
        tables_loaded.clear()
        clean(home, topic)
        counts.add(len(tables_loaded))
    assert len(counts) == 1


def test_a_look_at_a_log_asks_the_catalog_once_why_many_of_its_segments_are_missing(
    tables_loaded: list[str], tmp_path: Path
) -> None:
    store = open_home(tmp_path, {}).store
    all_lost(open_home(tmp_path, {}), "t", 1, segments=5)
    (log,) = store.logs("t")
    assert len(log.segments) == 5
    tables_loaded.clear()

    results = verify_log(store, log, NOW_MS)

    assert tables_loaded == ["t"]
    assert results[0].metadata["problems"] == 5


@pytest.mark.parametrize("is_opened", [True, False])
def test_what_another_commit_replaces_between_two_looks_is_not_taken_for_lost(tmp_path: Path, is_opened: bool) -> None:
    """What is remembered of a topic counts only while its metadata lies where it lay."""
    home = open_home(tmp_path, {})
    all_lost(home, "t", 2)
    store = home.store if is_opened else UnopenedStore(tmp_path, {}, lambda: home.store, trusts=False)
    first, second = home.store.logs("t")
    assert "is missing from storage" in verify_log(store, first, NOW_MS)[0].description
    home.store.delete_records(second.topic_partition, -1, None)

    g1 = verify_log(store, second, NOW_MS)[0]

    assert not g1.is_looked_at
    assert "it was replaced and purged meanwhile" in g1.description


def test_where_nobody_can_say_whether_a_file_was_replaced_the_reason_is_told(tmp_path: Path) -> None:
    home = open_home(tmp_path, {})
    all_lost(home, "t", 1)
    store = home.store
    (log,) = store.logs("t")
    store.load_table("t").transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()

    g1 = verify_log(store, log, NOW_MS)[0]

    assert not g1.is_looked_at
    assert "whether it was replaced can't be seen now (" in g1.description
