"""A reader's position that is stored has moved, although the earlier ones can't be deleted: he has his records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.passes.readers import Readers
from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.logs import open_store

NOW_MS = 1_800_000_000_000
TOPIC = "users"


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = open_store(tmp_path)
    store.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    Readers(store, new_id).add(TOPIC, "search", now_ms=NOW_MS)
    return store


def append(store: LogStore, value: bytes) -> None:
    store.append(TOPIC, [NewRecord(b"a", value, NOW_MS, 0)], new_id(), NOW_MS)


def read(store: LogStore) -> list[bytes | None]:
    return [record.value for _, record in Readers(store, new_id).read(TOPIC, "search")]


def positions(store: LogStore) -> list[str]:
    folder = f"{store.describe_topic(TOPIC).location}/metadata/receipts/readers"
    return sorted(file.path.rpartition("/")[2] for file in store.files.list(folder))


def undeletable(patch: pytest.MonkeyPatch) -> None:
    """A reader that may not delete."""
    real = TableFiles.delete

    def delete(files: TableFiles, path: str) -> None:
        if "/receipts/readers/" in path:
            raise PermissionError(13, "Access Denied")
        real(files, path)

    patch.setattr(TableFiles, "delete", delete)


def unlisted_once_written(patch: pytest.MonkeyPatch) -> None:
    """A store that is too busy to list just after a position was written, and only then."""
    written: list[str] = []
    really_write, really_list = TableFiles.write_bytes, TableFiles.list

    def write(files: TableFiles, path: str, content: bytes) -> None:
        really_write(files, path, content)
        written.append(path)

    def listed(files: TableFiles, folder: str) -> Iterator[StoredFile]:
        if "/receipts/readers/" in folder and written:
            written.clear()
            raise OSError("503 SlowDown")
        return really_list(files, folder)

    patch.setattr(TableFiles, "write_bytes", write)
    patch.setattr(TableFiles, "list", listed)


@pytest.mark.parametrize("fault", [undeletable, unlisted_once_written])
def test_who_has_read_gets_no_error_where_earlier_positions_stay(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    append(store, b"1")
    assert read(store) == [b"1"]
    append(store, b"2")
    with monkeypatch.context() as patch:
        fault(patch)
        assert read(store) == [b"2"]
        assert read(store) == []
    assert positions(store) == ["0-1.json", "0-2.json"]
    append(store, b"3")
    assert read(store) == [b"3"]
    assert positions(store) == ["0-3.json"]
