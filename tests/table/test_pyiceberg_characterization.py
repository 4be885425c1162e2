"""What keptlog relies on in PyIceberg, as it is today: when one of these fails, a new version has changed it.

Each says what would break. Nothing of keptlog's own logic is tested here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.table import Table, Transaction

from keptlog.log.segment import Segment
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.schema import PARTITION_SPEC, SORT_ORDER, TABLE_PROPERTIES, TABLE_SCHEMA
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create, new_records

NAME = ("keptlog", "a.topic-x")


def _segment(name: str, base_offset: int = 0) -> Segment:
    return Segment(f"file:///nowhere/{name}.parquet", base_offset, base_offset, 0, 0, 1, 100)


def _append(transaction: Transaction, *names: str) -> None:
    snapshot = transaction.update_snapshot().merge_append()
    for name in names:
        snapshot.append_data_file(data_file_of(0, _segment(name)))
    snapshot.commit()


def _paths(table: Table) -> list[str]:
    snapshot = table.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot else []
    entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]
    return sorted(entry.data_file.file_path.rpartition("/")[2] for entry in entries)


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., SqlCatalog]:
    def make(**properties: str) -> SqlCatalog:
        catalog = SqlCatalog(
            "keptlog", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
        )
        catalog.create_namespace("keptlog")
        catalog.create_table(
            NAME,
            TABLE_SCHEMA,
            partition_spec=PARTITION_SPEC,
            sort_order=SORT_ORDER,
            properties=TABLE_PROPERTIES | {key.replace("_", "."): value for key, value in properties.items()},
        )
        return catalog

    return make


@pytest.mark.parametrize("is_first_snapshot", [True, False])
def test_without_retries_an_append_lands_only_on_the_snapshot_it_was_built_from(
    make_table: Callable[..., SqlCatalog], is_first_snapshot: bool
) -> None:
    """Otherwise two appends could take the same offsets."""
    catalog = make_table()
    if not is_first_snapshot:
        with catalog.load_table(NAME).transaction() as transaction:
            _append(transaction, "0")
    slow, fast = catalog.load_table(NAME).transaction(), catalog.load_table(NAME).transaction()
    _append(slow, "slow")
    slow.set_properties({"log.p0.log-end-offset": "1"})
    _append(fast, "fast")
    fast.set_properties({"log.p0.log-end-offset": "2"})
    fast.commit_transaction()
    with pytest.raises(CommitFailedException):
        slow.commit_transaction()
    table = catalog.load_table(NAME)
    assert table.properties["log.p0.log-end-offset"] == "2"
    assert "slow.parquet" not in _paths(table)


def test_with_its_default_retries_a_stale_append_lands_and_takes_its_stale_properties_along(
    make_table: Callable[..., SqlCatalog], tmp_path: Path
) -> None:
    """The reason for commit.retry.num-retries=0; if this no longer holds, the property may go."""
    catalog = make_table()
    with catalog.load_table(NAME).transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "4", "commit.retry.min-wait-ms": "1"})
    slow, fast = catalog.load_table(NAME).transaction(), catalog.load_table(NAME).transaction()
    _append(slow, "slow")
    slow.set_properties({"log.p0.log-end-offset": "1"})
    _append(fast, "fast")
    fast.set_properties({"log.p0.log-end-offset": "2"})
    fast.commit_transaction()
    slow.commit_transaction()
    assert catalog.load_table(NAME).properties["log.p0.log-end-offset"] == "1"


def test_a_commit_of_properties_alone_asserts_nothing_and_merges_by_name(make_table: Callable[..., SqlCatalog]) -> None:
    """An alteration never loses against an append, and never undoes what an append has set."""
    catalog = make_table()
    alteration, append = catalog.load_table(NAME).transaction(), catalog.load_table(NAME).transaction()
    alteration.set_properties({"kafka.segment.ms": "5"})
    _append(append, "0")
    append.set_properties({"log.p0.log-end-offset": "1"})
    append.commit_transaction()
    alteration.commit_transaction()
    properties = catalog.load_table(NAME).properties
    assert (properties["kafka.segment.ms"], properties["log.p0.log-end-offset"]) == ("5", "1")


def test_files_and_properties_of_one_transaction_are_one_commit(make_table: Callable[..., SqlCatalog]) -> None:
    """A checkpoint moves together with its files."""
    catalog = make_table()
    before = len(catalog.load_table(NAME).metadata.metadata_log)
    with catalog.load_table(NAME).transaction() as transaction:
        _append(transaction, "0")
        transaction.set_properties({"log.p0.log-end-offset": "1"})
    assert len(catalog.load_table(NAME).metadata.metadata_log) == before + 1


def test_the_removal_of_a_file_that_is_not_live_is_refused(make_table: Callable[..., SqlCatalog]) -> None:
    """The second guard against a zombie, behind our own check."""
    catalog = make_table()
    with catalog.load_table(NAME).transaction() as transaction:
        _append(transaction, "0")
    snapshot = catalog.load_table(NAME).transaction().update_snapshot().overwrite()
    snapshot.delete_data_file(data_file_of(0, _segment("never")))
    with pytest.raises(ValidationException, match="Missing required files to delete"):
        snapshot.commit()


def test_a_path_may_be_appended_twice(make_table: Callable[..., SqlCatalog]) -> None:
    """Nobody but us sees to invariant I2."""
    catalog = make_table()
    for _ in range(2):
        with catalog.load_table(NAME).transaction() as transaction:
            _append(transaction, "same")
    assert _paths(catalog.load_table(NAME)) == ["same.parquet", "same.parquet"]


def test_every_snapshot_raises_the_sequence_number_by_one(make_table: Callable[..., SqlCatalog]) -> None:
    """A gap in them is how a lost answer is told apart from a commit that never landed."""
    catalog = make_table()
    for number in range(3):
        with catalog.load_table(NAME).transaction() as transaction:
            _append(transaction, str(number))
            transaction.set_properties({"a": str(number)})
    with catalog.load_table(NAME).transaction() as transaction:
        transaction.set_properties({"b": "1"})
    table = catalog.load_table(NAME)
    assert [snapshot.sequence_number for snapshot in table.metadata.snapshots] == [1, 2, 3]
    assert table.last_sequence_number == 3


def test_expired_snapshots_leave_all_their_files(make_table: Callable[..., SqlCatalog], tmp_path: Path) -> None:
    """Deleting is ours to do."""
    catalog = make_table()
    for number in range(2):
        with catalog.load_table(NAME).transaction() as transaction:
            _append(transaction, str(number))
    table = catalog.load_table(NAME)
    before = set(tmp_path.rglob("*.avro"))
    table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[0].snapshot_id).commit()
    assert set(tmp_path.rglob("*.avro")) == before


def test_an_identifier_is_a_tuple_and_never_a_dotted_text(make_table: Callable[..., SqlCatalog]) -> None:
    catalog = make_table()
    assert catalog.load_table(NAME).name() == NAME
    with pytest.raises(NoSuchTableError):
        catalog.load_table("keptlog.a.topic-x")


def test_manifests_are_merged_before_there_are_too_many(make_table: Callable[..., SqlCatalog]) -> None:
    """Planning opens every manifest: their number must not grow with that of appends."""
    catalog = make_table()
    for number in range(45):
        with catalog.load_table(NAME).transaction() as transaction:
            _append(transaction, str(number))
    table = catalog.load_table(NAME)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) < 20
    assert len(_paths(table)) == 45


def test_no_byte_of_a_key_or_value_is_in_the_metadata(tmp_path: Path) -> None:
    """Metadata outlives a purge, and is read by more people than data."""
    store = create(tmp_path)
    append_each(store, [("alice@example.com", "secret-1")], [("alice@example.com", "secret-2")])
    clean(store)
    store.append(TOPIC, new_records(("bob@example.com", "secret-3")), "run", NOW_MS)
    table = store.load_table(TOPIC)
    for path in (tmp_path / "warehouse").rglob("metadata/**/*"):
        content = path.read_bytes() if path.is_file() else b""
        assert b"alice" not in content
        assert b"secret" not in content
    for manifest in table.current_snapshot().manifests(table.io):  # type: ignore[union-attr]
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            assert {*entry.data_file.lower_bounds, *entry.data_file.upper_bounds} <= {1, 2, 3, 8}


def test_old_table_metadata_is_deleted_with_the_commits_that_follow(tmp_path: Path) -> None:
    """Without it an append would cost more each time, and storage too."""
    store = create(tmp_path)
    for number in range(30):
        store.alter_topic(TOPIC, {"segment.ms": str(number + 1)})
    assert len(list((tmp_path / "warehouse").rglob("*.metadata.json"))) <= 22
