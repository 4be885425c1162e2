"""A purge takes watermarks that are past their time from logs which no clean takes them from, and no others."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyiceberg.table import Table

from keptlog.errors import StalePlan
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.passes.purge import Purger
from keptlog.passes.readers import Readers
from keptlog.storage.watermark_file import read_any_watermarks
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.metadata.change import OPERATION
from keptlog.table.metadata.lineage import summary_of
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.purging.purge_receipt import PurgeReceipt
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import RealTwin, open_store

START_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000
SETTINGS = {
    "cleanup.policy": "compact",
    "compaction.strategy": "timestamp",
    "segment.ms": "1",
    "delete.retention.ms": "0",
    "keptlog.watermark.retention.ms": str(10 * HOUR_MS),
}


@dataclass
class Forgetting:
    """A log that remembers ``a`` for 10 hours and ``b`` for 15, and has a record of ``c``."""

    store: LogStore
    twin: RealTwin

    def append(self, at_ms: int, *pairs: tuple[str, str | None]) -> None:
        records = [NewRecord(k.encode(), v.encode() if v else None, at_ms) for k, v in pairs]
        self.twin.append(records, at_ms)

    def purge(self, hours: float) -> PurgeReceipt:
        result = Purger(self.store).purge(["t"], now_ms=START_MS + int(hours * HOUR_MS))
        assert result.failed == {}
        return result.receipts["t"]

    @property
    def remembered(self) -> list[str]:
        path = self.twin.log.watermarks_path
        keys = read_any_watermarks(self.store.files, path, "t")[0]["key"].to_pylist() if path else []
        return [key.decode() for key in keys]

    @property
    def operations(self) -> list[str]:
        snapshots = self.store.load_table("t").metadata.snapshots
        return [summary_of(each)[OPERATION] for each in snapshots]

    @property
    def mark_files(self) -> list[str]:
        listed = self.store.files.list(self.store.data_location("t"))
        return [each.path for each in listed if "/watermarks/" in each.path]


@pytest.fixture
def log(tmp_path: Path) -> Forgetting:
    store = open_store(tmp_path)
    made = Forgetting(store, RealTwin(store, in_process_engine(store.files)))
    made.twin.create(SETTINGS)
    made.append(START_MS, ("a", None), ("c", "kept"))
    made.twin.clean(START_MS + 10)
    made.twin.expire(START_MS + 20)
    made.append(START_MS + 5 * HOUR_MS, ("b", None))
    made.twin.clean(START_MS + 5 * HOUR_MS + 10)
    made.twin.expire(START_MS + 5 * HOUR_MS + 20)
    assert made.remembered == ["a", "b"]
    return made


def test_before_their_time_nothing_is_committed(log: Forgetting) -> None:
    before = log.operations
    log.store.seal = lambda _: None
    receipt = log.purge(9)
    assert log.remembered == ["a", "b"]
    assert log.operations == before[-1:]
    assert receipt.quiet is not None
    first_end_ms = START_MS + 10 * HOUR_MS + 20
    assert receipt.quiet.until_ms == first_end_ms, "no idle topic is left alone past it"


def test_what_is_past_its_time_goes_and_the_others_stay_and_still_win(log: Forgetting) -> None:
    log.purge(11)
    assert log.operations[-1:] == ["forget"]
    assert log.remembered == ["b"]
    log.append(START_MS, ("a", "back"), ("b", "late"))
    log.twin.clean(START_MS + 11 * HOUR_MS)
    assert [record.key for record in log.twin.records()] == [b"c", b"a"]


def test_once_all_have_ended_there_is_no_file_and_the_old_one_goes_after_the_grace(log: Forgetting) -> None:
    records = log.twin.records()
    log.purge(16)
    assert log.twin.log.watermarks_path is None
    log.purge(16 + 25)
    assert log.mark_files == []
    assert log.twin.records() == records


def test_a_clean_that_is_due_takes_them_itself(log: Forgetting) -> None:
    log.append(START_MS + 10 * HOUR_MS, ("d", "1"))
    log.append(START_MS + 10 * HOUR_MS + 10, ("d", "2"))
    log.append(START_MS + 10 * HOUR_MS + 20, ("d", "3"))
    log.purge(11)
    assert log.remembered == ["a", "b"]
    log.twin.clean(START_MS + 11 * HOUR_MS)
    assert log.remembered == ["b"]


def test_an_expiry_that_is_due_takes_none_so_that_the_purge_does(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    made = Forgetting(store, RealTwin(store, in_process_engine(store.files)))
    made.twin.create(SETTINGS | {"delete.retention.ms": str(HOUR_MS), "min.cleanable.dirty.ratio": "0.9"})
    made.append(START_MS, ("a", None), ("c", "kept"))
    made.twin.clean(START_MS + 10)
    made.twin.expire(START_MS + HOUR_MS + 20)
    made.append(START_MS + 9 * HOUR_MS, ("b", None), ("e", "1"))
    made.twin.clean(START_MS + 10 * HOUR_MS)
    [step] = made.twin.cleaner.plan(now_ms=START_MS + 12 * HOUR_MS).steps
    assert step.kind == "expire"
    assert made.remembered == ["a"]
    made.purge(12)
    assert made.remembered == []
    made.twin.expire(START_MS + 12 * HOUR_MS + 20)
    assert made.remembered == ["b"]


def test_those_of_another_strategy_end_too(log: Forgetting) -> None:
    log.twin.alter({"compaction.strategy": "offset"})
    log.purge(16)
    assert log.twin.log.watermarks_path is None


def test_a_file_that_can_not_be_read_is_left_and_the_purge_goes_on(
    log: Forgetting, caplog: pytest.LogCaptureFixture
) -> None:
    path = log.twin.log.watermarks_path or ""
    Path(path.removeprefix("file://")).write_bytes(b"nothing")
    log.purge(16)
    assert log.twin.log.watermarks_path == path
    assert f"the watermarks at {path} are left" in caplog.text


def test_a_commit_that_is_refused_leaves_no_file_and_costs_the_purge_nothing(
    log: Forgetting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = log.mark_files
    real = FileChange.written

    def refused(change: FileChange, table: object) -> object:
        if change.summary[OPERATION] == "forget":
            raise StalePlan("somebody was faster")
        return real(change, table)  # type: ignore[arg-type]

    monkeypatch.setattr(FileChange, "written", refused)
    log.purge(11)
    assert log.remembered == ["a", "b"]
    assert sorted(log.mark_files) == sorted(before)
    assert "left to the next purge" in caplog.text


def test_what_another_purge_has_swept_meanwhile_is_not_committed(
    log: Forgetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge that slept for a day between its file and its commit: by the clock of the other a clean is due."""
    log.twin.alter({"max.compaction.lag.ms": str(12 * HOUR_MS), "min.cleanable.dirty.ratio": "1"})
    log.append(START_MS + 10 * HOUR_MS, ("d", "1"))
    log.append(START_MS + 10 * HOUR_MS + 100, ("e", "1"))
    real = FileChange.written
    slept: list[bool] = []

    def written(change: FileChange, table: Table) -> Callable[[], object]:
        land = real(change, table)
        if change.summary[OPERATION] != "forget" or slept:
            return land
        slept.append(True)

        def late() -> object:
            log.purge(37)
            return land()

        return late

    monkeypatch.setattr(FileChange, "written", written)
    log.purge(11)
    assert slept
    path = log.twin.log.watermarks_path
    assert path in log.mark_files, "what the table names is there"
    assert log.remembered == ["a", "b"]


def test_a_tombstone_that_a_reader_holds_keeps_no_watermark(log: Forgetting) -> None:
    Readers(log.store, new_id).add("t", "slow", 300 * HOUR_MS, now_ms=START_MS + 6 * HOUR_MS)
    log.append(START_MS + 6 * HOUR_MS, ("x", None))
    log.twin.clean(START_MS + 6 * HOUR_MS + 10)
    log.purge(20)
    assert log.remembered == []
    assert log.twin.records()[-1].key == b"x"


def test_while_the_cleaner_is_off_no_clean_takes_them(tmp_path: Path, log: Forgetting) -> None:
    for time_ms in (10, 20, 30):
        log.append(START_MS + 10 * HOUR_MS + time_ms, ("d", str(time_ms)))
    off = LogStore(open_catalog(tmp_path), {"log.cleaner.enable": "false"}, sleep=time.sleep, new_id=new_id)
    Purger(off).purge(["t"], now_ms=START_MS + 11 * HOUR_MS)
    assert log.remembered == ["b"]
