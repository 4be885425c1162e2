"""What another program does to a topic's table: a handle of its own, which knows nothing of logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import RemoveSnapshotRefUpdate, RemoveSnapshotsUpdate, SetLocationUpdate

from keptlog.log.record import Record
from keptlog.storage.schema import to_arrow
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.metadata.format import FORMAT_VERSION
from keptlog.table.metadata.state import SNAPSHOT_ID
from tests.table.stores import NOW_MS, TOPIC


def table_of(home: Path, topic: str = TOPIC) -> Table:
    return open_catalog(home).load_table(("keptlog", topic))


def current_id(home: Path, topic: str = TOPIC) -> int:
    found = table_of(home, topic).metadata.current_snapshot_id
    assert found is not None
    return found


def roll_back(home: Path, snapshot_id: int, topic: str = TOPIC) -> None:
    table_of(home, topic).manage_snapshots().rollback_to_snapshot(snapshot_id).commit()


def set_main(home: Path, snapshot_id: int, topic: str = TOPIC) -> None:
    table_of(home, topic).manage_snapshots().set_current_snapshot(snapshot_id).commit()


def remove_main(home: Path, topic: str = TOPIC) -> None:
    table = table_of(home, topic)
    table.catalog.commit_table(table, (), (RemoveSnapshotRefUpdate.model_validate({"ref-name": MAIN_BRANCH}),))


def expire(home: Path, *snapshot_ids: int, topic: str = TOPIC) -> None:
    table = table_of(home, topic)
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(snapshot_ids)})
    table.catalog.commit_table(table, (), (update,))


def set_location(home: Path, folder: Path, topic: str = TOPIC) -> None:
    """What ``ALTER TABLE … SET LOCATION`` does."""
    table = table_of(home, topic)
    table.catalog.commit_table(table, (), (SetLocationUpdate(location=f"file://{folder}"),))


def insert(home: Path, *offsets: int, partition: int = 0, branch: str = MAIN_BRANCH, topic: str = TOPIC) -> int:
    """Append a row at each of these offsets, a file for all; gives the snapshot."""
    table = table_of(home, topic)
    table.append(rows_at(*offsets, partition=partition), branch=branch)
    return table.refresh().metadata.refs[branch].snapshot_id


def rows_at(*offsets: int, partition: int = 0) -> pa.Table:
    return to_arrow(partition, [Record(each, f"foreign-{each}".encode(), b"foreign", NOW_MS) for each in offsets])


def delete_rows(home: Path, where: str, topic: str = TOPIC) -> int:
    """Copy-on-write, as the table asks for it."""
    table_of(home, topic).delete(where)
    return current_id(home, topic)


def update_rows(home: Path, offsets: Sequence[int], value: bytes, topic: str = TOPIC) -> int:
    """Copy-on-write too: the files that hold the rows are written again, with another value in those."""
    table = table_of(home, topic)
    first, last = min(offsets), max(offsets)
    rows = table.scan(row_filter=f"offset >= {first} and offset <= {last}").to_arrow().sort_by("offset")
    values = [value if o in offsets else v for o, v in zip(rows["offset"].to_pylist(), rows["value"].to_pylist())]  # noqa: B905
    changed = rows.set_column(5, rows.schema.field(5), pa.chunked_array([values], type=rows.schema.field(5).type))
    table.overwrite(changed, f"offset >= {first} and offset <= {last}")
    return current_id(home, topic)


def set_properties(home: Path, properties: Mapping[str, str | None], topic: str = TOPIC) -> None:
    """Null removes one."""
    transaction = table_of(home, topic).transaction()
    transaction.set_properties({name: value for name, value in properties.items() if value is not None})
    gone = [name for name, value in properties.items() if value is None]
    if gone:
        transaction.remove_properties(*gone)
    transaction.commit_transaction()


@contextmanager
def as_format_1_0(home: Path, topic: str = TOPIC) -> Iterator[None]:
    """What is committed in here looks as a keptlog of format 1.0 leaves it: it asks nobody and moves no property."""
    names = (SNAPSHOT_ID, FORMAT_VERSION)
    table = table_of(home, topic)
    before = {name: table.properties.get(name) for name in names}
    snapshot_id = table.metadata.current_snapshot_id
    if snapshot_id is not None:
        set_properties(home, {SNAPSHOT_ID: str(snapshot_id)}, topic)
    yield
    set_properties(home, before, topic)


def make_1_0(home: Path, topic: str = TOPIC) -> None:
    """Turn a topic into one that only a keptlog of format 1.0 has written."""
    set_properties(home, {SNAPSHOT_ID: None, FORMAT_VERSION: "1.0"}, topic)
