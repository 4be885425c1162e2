"""Deleted records that still lie in a live segment are told wherever somebody asks for holders, and are not late."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table

from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.check import CheckResult, Outcome
from keptlog.passes.holders import check_gone
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.removal.held import held_lines
from keptlog.table.store import LogStore
from tests.table.foreign import set_properties
from tests.table.purges import DAY_MS, clock_ms, receipts
from tests.table.stores import TOPIC, FaultyCatalog, append_each, create, new_id, store_over

LOG = TopicPartition(TOPIC, 0)
MUCH_LATER_MS = 400 * DAY_MS
TOLD = (
    f"offsets [0,2) of {LOG} are below the log start and still lie in the live segment at [0,5): they go with that "
    "segment"
)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """A log of one segment with five records."""
    store = create(tmp_path)
    append_each(store, [(f"k{number}", f"secret {number}") for number in range(5)])
    return store


def g8(store: LogStore) -> CheckResult:
    return check_gone(store, TOPIC, [0], clock_ms() + MUCH_LATER_MS)[0]


def segment(store: LogStore) -> tuple[str, int]:
    """Path and size of the only one."""
    [live] = store.logs(TOPIC)[0].segments
    return live.path, live.size_bytes


def test_g8_does_not_say_that_nothing_holds_them_and_is_not_broken(store: LogStore) -> None:
    assert "segment" not in g8(store).description
    store.delete_records(LOG, 2, new_id())
    found = g8(store)
    assert found.outcome is Outcome.OK
    assert TOLD in found.description
    assert "nothing holds it" not in found.description
    assert (found.metadata["held_files"], found.metadata["late_files"]) == (1, 0)


def test_nothing_is_told_any_more_once_the_segment_went(store: LogStore) -> None:
    append_each(store, [("k", "later")])
    store.delete_records(LOG, 2, new_id())
    assert "below the log start" in g8(store).description
    store.delete_records(LOG, 5, new_id())
    assert "below the log start" not in g8(store).description


def test_a_purges_receipt_names_the_segment_as_their_holder(store: LogStore, tmp_path: Path) -> None:
    store.delete_records(LOG, 2, new_id())
    store.files.write_bytes(f"{store.data_location(TOPIC)}/partition=0/left.parquet", b"of a run that died")
    purged = store.purge(TOPIC, clock_ms() + MUCH_LATER_MS)
    path, size_bytes = segment(store)
    [stored] = receipts(tmp_path)
    assert stored["held_files"] == [{"path": path, "bytes": size_bytes, "holder": "live segment [0,2) in [0,5)"}]
    [line] = held_lines(purged.held)
    assert line == "deleted records still lie in 1 live segment, [0,2) in [0,5): they go with their segment"


def test_the_answer_of_the_deletion_names_them_also_when_it_is_repeated(store: LogStore) -> None:
    assert store.delete_records(LOG, 0, new_id()).held == ()
    first = store.delete_records(LOG, 2, "run")
    path, size_bytes = segment(store)
    assert [(held.path, held.bytes, held.holder) for held in first.held] == [
        (path, size_bytes, "live segment [0,2) in [0,5)")
    ]
    again = store.delete_records(LOG, 2, "run")
    assert (again.is_repeated, again.held) == (True, first.held)
    assert store.delete_records(LOG, 5, new_id()).held == ()


def test_a_log_start_that_can_not_be_read_is_told_by_a_purge_and_stops_it_not(store: LogStore, tmp_path: Path) -> None:
    set_properties(tmp_path, {"log.p0.log-start-offset": "many"})
    store.files.write_bytes(f"{store.data_location(TOPIC)}/partition=0/left.parquet", b"of a run that died")
    purged = store.purge(TOPIC, clock_ms())
    [line] = purged.not_looked_at
    assert "log.p0.log-start-offset='many'" in line


def test_nor_does_it_beside_a_writer_that_commits_at_each_of_its_looks(store: LogStore, tmp_path: Path) -> None:
    set_properties(tmp_path, {"log.p0.log-start-offset": "many"})
    store.files.write_bytes(f"{store.data_location(TOPIC)}/partition=0/left.parquet", b"of a run that died")

    class Busy(FaultyCatalog):
        looks = 0

        def load_table(self, identifier: object) -> Table:
            self.looks += 1
            assert self.looks < 100, "it looks again for as long as others commit"
            set_properties(tmp_path, {"looks": str(self.looks)})
            return super().load_table(identifier)

    [line] = store_over(Busy(open_catalog(tmp_path))).purge(TOPIC, clock_ms()).not_looked_at
    assert "log.p0.log-start-offset='many'" in line
