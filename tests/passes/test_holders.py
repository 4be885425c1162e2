"""G8 of logs: broken by what is late, not looked at where nothing could be seen, each for the logs that it concerns."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, UnknownTopic
from keptlog.home import open_home
from keptlog.passes.check import Outcome
from keptlog.passes.holders import check_gone, look_for_holders
from keptlog.table.store import LogStore
from tests.passes.conftest import DAY_MS
from tests.storage_errors import unlisted
from tests.table.foreign import table_of
from tests.table.purges import clock_ms


def outcomes(store: LogStore, now_ms: int) -> list[Outcome]:
    return [each.outcome for each in check_gone(store, "pair", [0, 1], now_ms).values()]


@pytest.fixture
def pair(store: LogStore) -> LogStore:
    """A topic with two logs, and a file in the folder of the first that nothing refers to."""
    store.create_topic("pair", 2, {"cleanup.policy": "compact"})
    store.files.write_bytes(f"{store.data_location('pair')}/partition=0/left.parquet", b"value")
    return store


def test_a_late_holder_breaks_g8_of_the_log_whose_bytes_it_holds_alone(pair: LogStore) -> None:
    assert outcomes(pair, clock_ms()) == [Outcome.OK, Outcome.OK]
    now_ms = clock_ms() + 3 * DAY_MS
    assert outcomes(pair, now_ms) == [Outcome.BROKEN, Outcome.OK]
    broken = check_gone(pair, "pair", [0], now_ms)[0]
    assert broken.metadata == {"held_files": 1, "held_bytes": 5, "late_files": 1, "problems": 1}
    assert broken.description.startswith("runs that died of pair-0 keep 1 orphan, past its deadline (")
    pair.purge("pair", now_ms)
    assert outcomes(pair, now_ms) == [Outcome.OK, Outcome.OK]


def test_a_snapshot_that_cannot_be_read_is_not_looked_at_and_what_is_late_is_broken_all_the_same(
    store: LogStore, tmp_path: Path
) -> None:
    first = table_of(tmp_path, "a").metadata.snapshots[0]
    store.append("a", [], None, 0)
    store.delete_records(store.logs("a")[0].topic_partition, -1, None)
    Path(first.manifest_list.removeprefix("file://")).write_bytes(b"rot")
    found = check_gone(store, "a", [0], clock_ms())[0]
    assert found.outcome is Outcome.NOT_LOOKED_AT
    assert first.manifest_list in found.description
    store.files.write_bytes(f"{store.data_location('a')}/partition=0/left.parquet", b"value")
    assert check_gone(store, "a", [0], clock_ms() + 3 * DAY_MS)[0].outcome is Outcome.BROKEN


def test_a_folder_that_can_not_be_listed_is_not_looked_at(pair: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    unlisted(monkeypatch, "partition=0")
    assert set(outcomes(pair, clock_ms() + 3 * DAY_MS)) == {Outcome.NOT_LOOKED_AT}


def test_the_interval_of_the_broker_settings_counts(pair: LogStore, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(f"keptlog.purge.interval.ms={10 * DAY_MS}\n")
    assert outcomes(open_home(tmp_path).store, clock_ms() + 3 * DAY_MS) == [Outcome.OK, Outcome.OK]


def test_what_nobody_has_thought_of_is_not_looked_at_and_costs_its_topic_alone(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AttributeError("'BareTable' object has no attribute 'catalog'")

    monkeypatch.setattr("keptlog.table.removal.held.held_in", fail)
    found = check_gone(store, "a", [0], clock_ms())[0]
    assert found.outcome is Outcome.NOT_LOOKED_AT
    assert found.description.startswith("topic a can't be looked through: AttributeError: ")


def test_a_topic_that_is_not_there_is_an_error(store: LogStore) -> None:
    with pytest.raises(UnknownTopic):
        look_for_holders(store, "nobody", clock_ms())


def test_where_a_lost_file_keeps_a_purge_from_deleting_the_next_step_is_to_put_it_back(store: LogStore) -> None:
    store.files.write_bytes(f"{store.data_location('a')}/partition=0/left.parquet", b"value")
    lost = store.logs("a")[0].segments[0].path
    now_ms = clock_ms() + 3 * DAY_MS
    local = Path(lost.removeprefix("file://"))
    content = local.read_bytes()
    local.unlink()
    with pytest.raises(LogCorrupt, match="nothing was deleted"):
        store.purge("a", now_ms)

    told = check_gone(store, "a", [0], now_ms)[0].description

    first, _, then = told.partition("; after that ")
    assert f"live file {lost} is not there, and no purge deletes anything: put it back from a copy" in first
    assert then.startswith("keptlog purge a deletes what is older than the grace")
    local.write_bytes(content)
    assert "is not there" not in check_gone(store, "a", [0], now_ms)[0].description
