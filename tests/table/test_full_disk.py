"""A full disk: one line that says so, nothing half done, nothing tried again and again, and nothing left behind.

The disk is a real one, where this machine lets us have a small one; what only a certain write meets is put in by hand.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import CommitTableResponse
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from keptlog.errors import CommitStateUnknown, KeptlogError, StorageUnavailable
from keptlog.log.record import NewRecord
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    create,
    files_below,
    new_id,
    new_records,
    rewritten,
    step_for,
    store_at,
    store_over,
    values,
)

Commit = Callable[[], CommitTableResponse]
PAGE_BYTES = 4096


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB and 400 files."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=400", "none", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs root, to mount a small disk: {error}")
    yield disk
    # The catalog's connections are still open.
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@contextlib.contextmanager
def with_room_for_files(disk: Path, files: int) -> Iterator[None]:
    """Leave so many files to be made, and no more, until the context is left."""
    filler = disk / "filler"
    filler.mkdir()
    for number in range(os.statvfs(disk).f_favail - files):
        (filler / str(number)).touch()
    try:
        yield
    finally:
        shutil.rmtree(filler)


@contextlib.contextmanager
def with_room(disk: Path, room_bytes: int) -> Iterator[None]:
    """Leave so much room, and no more, until the context is left."""
    filler = disk / "filler"
    status = os.statvfs(disk)
    filler.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - room_bytes)))
    try:
        yield
    finally:
        filler.unlink()


def random_value(size: int) -> bytes:
    return os.urandom(size)


def test_a_real_disk_that_is_full_at_any_write_of_an_append_costs_nothing(small_disk: Path) -> None:
    """So many pages of room as to fail at the first write, at the second … until the append fits."""
    store = create(small_disk)
    append_each(store, [("a", "1")])
    catalog = FaultyCatalog(open_catalog(small_disk))
    store, landed = store_over(catalog), 1
    told: list[str] = []
    for pages in range(40):
        before, catalog.commits = files_below(small_disk), 0
        record = NewRecord(b"k%d" % pages, random_value(4 * PAGE_BYTES), NOW_MS, 0)
        try:
            with with_room(small_disk, pages * PAGE_BYTES):
                store.append(TOPIC, [record], None, NOW_MS)
            landed += 1
        except StorageUnavailable as error:
            told.append(str(error))
            after = files_below(small_disk)
            assert after == before
        assert catalog.commits <= 1
        assert len(values(store_at(small_disk))) == landed
    assert min(len(told), landed) > 5
    expected = re.compile(r".*: the disk of /\S+ is full; nothing landed: make room, then run it again")
    assert [line for line in told if not expected.fullmatch(line)] == []


def test_a_real_disk_that_takes_no_more_files_at_any_write_of_an_append_costs_nothing(small_disk: Path) -> None:
    """SQLite's journal is one of them, and SQLite says of it only that it can't open a file."""
    store = create(small_disk)
    append_each(store, [("a", "1")])
    told: list[str] = []
    for files in range(10):
        before, landed = files_below(small_disk), len(values(store_at(small_disk)))
        store = store_over(open_catalog(small_disk))
        try:
            with with_room_for_files(small_disk, files):
                store.append(TOPIC, new_records(("b", "1")), None, NOW_MS)
            landed += 1
        except StorageUnavailable as error:
            told.append(str(error))
            assert files_below(small_disk) == before
        assert len(values(store_at(small_disk))) == landed
    assert 3 < len(told) < 10
    assert [line for line in told if not line.endswith("is full; nothing landed: make room, then run it again")] == []


def test_a_deletion_that_can_make_no_journal_says_to_make_room_for_a_file(small_disk: Path) -> None:
    append_each(create(small_disk), [("a", "1")])
    room = r"unable to open database file; .* its disk has room for one more file \(df -i\)$"
    with with_room_for_files(small_disk, 0), pytest.raises(StorageUnavailable, match=room):
        store_at(small_disk).delete_topic(TOPIC, NOW_MS)
    assert store_at(small_disk).delete_topic(TOPIC, NOW_MS).unfinished is None


def test_a_deletion_of_a_topic_on_a_real_disk_that_is_full_is_told_and_can_be_made_again(small_disk: Path) -> None:
    append_each(create(small_disk), [("a", "1")])
    with with_room(small_disk, 0), pytest.raises(StorageUnavailable) as refused:
        store_at(small_disk).delete_topic(TOPIC, NOW_MS)
    assert str(refused.value).endswith(" can't be deleted: the disk of the catalog's database is full: make room")
    assert len(values(store_at(small_disk))) == 1
    assert store_at(small_disk).delete_topic(TOPIC, NOW_MS).unfinished is None


@pytest.mark.parametrize("full", [with_room, with_room_for_files])
def test_a_topic_that_a_full_disk_has_no_room_for_is_told_without_a_name_of_python(
    small_disk: Path, full: Callable[[Path, int], contextlib.AbstractContextManager[None]]
) -> None:
    append_each(create(small_disk), [("a", "1")])
    (folder := small_disk / "warehouse/keptlog/other/metadata").mkdir(parents=True)
    file = re.escape(str(folder)) + r"/\S+\.metadata\.json"
    told = rf"^topic other can't be created: the disk of {file} is full: make room$"
    # The file can't be written, or can't be made.
    with full(small_disk, 0), pytest.raises(StorageUnavailable, match=told) as refused:
        store_at(small_disk).create_topic("other", 1, {})
    assert refused.value.is_refused
    assert not list(folder.iterdir())
    assert folder.is_dir()  # another one has made it
    assert store_at(small_disk).topics() == [TOPIC]


def test_a_topic_that_a_full_disk_has_no_room_for_leaves_no_folder(small_disk: Path) -> None:
    append_each(create(small_disk), [("a", "1")])
    with with_room(small_disk, 0), pytest.raises(StorageUnavailable):
        store_at(small_disk).create_topic("other", 1, {})
    assert not list(small_disk.rglob("other"))


def test_a_real_database_that_can_not_grow_is_a_full_disk_and_nothing_landed(tmp_path: Path) -> None:
    """SQLite says so itself, as on a disk without room: the journal is rolled back."""
    create(tmp_path)
    catalog = open_catalog(tmp_path)
    assert isinstance(catalog, EmbeddedCatalog)

    @event.listens_for(catalog.engine, "before_cursor_execute", retval=True)
    def grow(_: Any, cursor: Any, statement: str, values: Any, *__: Any) -> tuple[str, Any]:
        if statement.startswith("UPDATE"):
            cursor.execute("pragma max_page_count = 1")
            statement = statement.replace("SET ", "SET iceberg_type=hex(randomblob(50000)), ")
        return statement, values

    store = store_over(catalog)
    with pytest.raises(StorageUnavailable, match=r"the disk of /\S+/catalog.db is full; nothing landed"):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert files_below(tmp_path) == set()
    assert values(store_at(tmp_path)) == []


def full_database(commit: Commit) -> CommitTableResponse:
    raise OperationalError("UPDATE", {}, Exception("database or disk is full"))


def full_database_without_sqlalchemy(commit: Commit) -> CommitTableResponse:
    raise sqlite3.OperationalError("database or disk is full")


def full(commit: Commit) -> CommitTableResponse:
    raise OSError(errno.ENOSPC, "No space left on device")


def no_quota(commit: Commit) -> CommitTableResponse:
    raise OSError(errno.EDQUOT, "Disk quota exceeded")


def read_only(commit: Commit) -> CommitTableResponse:
    raise OSError(errno.EROFS, "Read-only file system")


def too_large(commit: Commit) -> CommitTableResponse:
    raise OSError(errno.EFBIG, "File too large")


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    create(tmp_path)
    return FaultyCatalog(open_catalog(tmp_path))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (full_database, "is full"),
        (full_database_without_sqlalchemy, "is full"),
        (full, "is full"),
        (no_quota, "has no quota left"),
        (read_only, "can't be written to"),
        (too_large, "takes no file as large as that"),
    ],
)
def test_a_commit_that_the_catalogs_disk_refuses_is_sent_once_and_leaves_no_file(
    faulty: FaultyCatalog, tmp_path: Path, fault: object, said: str
) -> None:
    faulty.faults = [fault] * 100  # type: ignore[list-item]
    with pytest.raises(StorageUnavailable, match=rf"topic {TOPIC}, run run: the disk of /\S+ {said}; nothing landed"):
        store_over(faulty).append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert faulty.commits == 1
    assert files_below(tmp_path) == set()


def test_a_full_disk_after_an_attempt_without_answer_leaves_it_in_doubt(faulty: FaultyCatalog, tmp_path: Path) -> None:
    def lost_request(commit: Commit) -> CommitTableResponse:
        raise ConnectionResetError("connection reset by peer")

    faulty.faults = [lost_request, full]
    with pytest.raises(CommitStateUnknown, match="is full"):
        store_over(faulty).append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert len(files_below(tmp_path)) == 1


@pytest.mark.parametrize("what", ["swap", "delete-records", "alter", "purge"])
def test_whatever_is_committed_tells_a_full_disk_in_one_line(faulty: FaultyCatalog, what: str) -> None:
    store = store_over(faulty)
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    calls: dict[str, Callable[[], object]] = {
        "swap": lambda: store.swap(TOPIC, [outcome], "run"),
        "delete-records": lambda: store.delete_records(outcome.step.topic_partition, -1, None),
        "alter": lambda: store.alter_topic(TOPIC, {"segment.ms": "7"}),
        "purge": lambda: store.purge(TOPIC, 2**45, 2**50),
    }
    faulty.faults, faulty.commits = [full] * 100, 0
    with pytest.raises(StorageUnavailable, match=r"the disk of .* is full; nothing landed"):
        calls[what]()
    assert faulty.commits == 1
    faulty.faults = []
    calls[what]()


_REALLY_OPEN = TableFiles.open_output


@contextlib.contextmanager
def open_without_room(files: TableFiles, path: str) -> Iterator[pa.NativeFile]:
    """As on storage that has no room for one more file."""
    with _REALLY_OPEN(files, path) as sink:
        yield sink
        raise OSError(errno.ENOSPC, f"Error writing bytes to file. Detail: [errno {errno.ENOSPC}] No space left")


@pytest.mark.parametrize("is_shifted", [False, True])
def test_a_segment_that_the_disk_has_no_room_for_is_told_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_shifted: bool
) -> None:
    """Also if it is written again, because another append took its offsets."""
    store = create(tmp_path)

    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "1"))

    def overtake(topic: str) -> Any:
        append_each(store_at(tmp_path), [("x", "2")])
        monkeypatch.undo()
        monkeypatch.setattr(TableFiles, "open_output", open_without_room)
        return load(topic)

    load = store.committer.catalog.load_table
    if is_shifted:
        loads = [load, overtake]

        def load_next(name: Any) -> Any:
            return loads.pop(0)(name)

        monkeypatch.setattr(store.committer.catalog, "load_table", load_next)
    else:
        monkeypatch.setattr(TableFiles, "open_output", open_without_room)
    with pytest.raises(StorageUnavailable, match=r"the disk of /\S+ is full; nothing landed"):
        store.append(TOPIC, overtaken(), "run", NOW_MS)
    monkeypatch.undo()
    assert len(files_below(tmp_path)) == (1 if is_shifted else 0)
    assert [value for _, _, value in values(store_at(tmp_path))] == ([b"2"] if is_shifted else [])


def test_a_source_that_can_not_be_read_is_not_taken_for_the_storage(tmp_path: Path) -> None:
    def broken() -> Iterator[NewRecord]:
        yield from new_records(("a", "1"))
        raise OSError(errno.ENOSPC, "the source's own trouble")

    with pytest.raises(OSError, match="the source's own trouble") as raised:
        create(tmp_path).append(TOPIC, broken(), new_id(), NOW_MS)
    assert not isinstance(raised.value, KeptlogError)
    assert files_below(tmp_path) == set()


def test_a_store_without_room_can_be_read(small_disk: Path) -> None:
    store: LogStore = create(small_disk)
    append_each(store, [("a", "1")])
    with with_room(small_disk, 0):
        assert values(store_at(small_disk)) == [(0, 0, b"1")]
