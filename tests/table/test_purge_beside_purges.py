"""A purge that another one was faster than looks again, and takes no other error of PyIceberg's for that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table import CommitTableResponse
from pyiceberg.table.update import RemovePartitionStatisticsUpdate

from keptlog.table.catalogs.catalog import open_catalog
from tests.table.foreign import expire, table_of
from tests.table.purges import MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values
from tests.table.stores import TOPIC, FaultyCatalog, store_over
from tests.table.test_partition_statistics import counted_and_cleaned

LATER_MS = 60 * MINUTE_MS


def _behind(home: Path, happens: Callable[[], object]) -> FaultyCatalog:
    """A catalog in which something else happens between a commit's last look and its first attempt."""

    def behind(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        happens()
        return commit()

    between = FaultyCatalog(open_catalog(home))
    between.faults = [behind]
    return between


def test_one_of_whose_snapshots_one_is_expired_behind_its_last_look_expires_the_others(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    oldest = table_of(tmp_path).metadata.snapshots[0].snapshot_id
    catalog = _behind(tmp_path, lambda: expire(tmp_path, oldest))
    receipt = store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert catalog.commits == 2
    assert len(receipt.expired_snapshots) == 3
    assert len(table_of(tmp_path).metadata.snapshots) == 1
    assert paths_of_values(store) - live_paths(store) == set()


def test_so_does_one_whose_statistics_of_partitions_are_taken_out(tmp_path: Path) -> None:
    counted_and_cleaned(tmp_path)
    [counted] = table_of(tmp_path).metadata.partition_statistics

    def take_out() -> None:
        update = RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": counted.snapshot_id})
        table = table_of(tmp_path)
        table.catalog.commit_table(table, (), (update,))

    catalog = _behind(tmp_path, take_out)
    receipt = store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert catalog.commits == 2
    assert counted.snapshot_id in receipt.expired_snapshots


def test_another_error_of_pyicebergs_is_no_faster_purge_and_is_not_tried_again(tmp_path: Path) -> None:
    cleaned(tmp_path)

    def fails() -> None:
        raise ValueError("no number")

    catalog = _behind(tmp_path, fails)
    with pytest.raises(ValueError, match="no number"):
        store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert catalog.commits == 1
