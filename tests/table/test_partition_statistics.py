"""What another program has counted of partitions goes with its snapshot; until then it is told as what it is."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table.statistics import PartitionStatisticsFile
from pyiceberg.table.update import SetPartitionStatisticsUpdate

from keptlog.log.holder import HolderKind, Terms
from keptlog.table.removal.held import held_in
from keptlog.table.store import LogStore
from tests.table.foreign import expire, table_of
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms
from tests.table.stores import TOPIC, append_each, clean, create


def count_partitions(home: Path) -> Path:
    """What Spark's ``compute_partition_stats`` leaves at the current snapshot."""
    table = table_of(home)
    current = table.metadata.current_snapshot_id
    path = Path(table.location().removeprefix("file://")) / "metadata" / f"partition-stats-{current}.parquet"
    path.write_bytes(b"counts of partitions")
    file = PartitionStatisticsFile.model_validate(
        {
            "snapshot-id": current,
            "statistics-path": f"file://{path}",
            "file-size-in-bytes": path.stat().st_size,
        }
    )
    table.catalog.commit_table(
        table,
        (),
        (
            SetPartitionStatisticsUpdate.model_validate(
                {"action": "set-partition-statistics", "partition-statistics": file}
            ),
        ),
    )
    return path


def statistics_told(store: LogStore) -> list[str | None]:
    terms = Terms(delete_delay_ms=MINUTE_MS)
    found = held_in(lambda: store.load_table(TOPIC), store.files, terms, clock_ms())
    return [each.path for each in found.held if each.kind is HolderKind.STATISTICS]


def counted_and_cleaned(home: Path) -> tuple[LogStore, Path]:
    store = create(home)
    append_each(store, [("a", "1")], [("a", "2")])
    path = count_partitions(home)
    clean(store)
    return store, path


def test_they_are_a_holder_once_their_snapshot_is_older(tmp_path: Path) -> None:
    store, path = counted_and_cleaned(tmp_path)
    assert statistics_told(store) == [f"file://{path}"]


def test_those_of_the_current_snapshot_are_none(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    count_partitions(tmp_path)
    assert statistics_told(store) == []


def test_a_purge_that_expires_their_snapshot_takes_them_out_and_a_later_one_deletes_them(tmp_path: Path) -> None:
    store, path = counted_and_cleaned(tmp_path)
    store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert table_of(tmp_path).metadata.partition_statistics == []
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert not path.exists()
    assert statistics_told(store) == []


def test_a_purge_takes_out_what_is_left_of_snapshots_that_are_gone(tmp_path: Path) -> None:
    store, path = counted_and_cleaned(tmp_path)
    first, second, *_ = (each.snapshot_id for each in table_of(tmp_path).metadata.snapshots)
    expire(tmp_path, first, second)
    assert table_of(tmp_path).metadata.partition_statistics
    append_each(store, [("b", "1")])
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert table_of(tmp_path).metadata.partition_statistics == []
    store.purge(TOPIC, clock_ms() + 4 * DAY_MS)
    assert not path.exists()
