"""Storage: durable, whole or not there, and usable from a task that was sent away with it."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from keptlog.table.io.files import TableFiles
from keptlog.whole_file import sync
from tests.storage_errors import unlisted
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create, new_records


def test_every_file_of_a_table_and_its_folder_is_fsynced(tmp_path: Path, synced: set[int]) -> None:
    store = create(tmp_path, partitions=9)
    append_each(store, [("a", "1")], [("a", "2")])
    store.append(
        TOPIC, [new for number in range(9) for new in new_records(("a", "3"), partition=number)], "wide", NOW_MS
    )
    clean(store)
    store.purge(TOPIC, 2**45)
    below = [*(tmp_path / "warehouse").rglob("*"), tmp_path / "warehouse"]
    written = [path for path in below if path.is_file()]
    assert {path.suffix for path in written} == {".parquet", ".avro", ".json"}
    assert [path for path in below if path.stat().st_ino not in synced and path.name != "gc"] == []


def test_what_a_receipt_says_is_gone_stays_gone_in_a_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")], [("a", "2")])
    clean(store)
    done: list[str] = []
    unlink, fsync = Path.unlink, os.fsync

    def unlinking(path: Path, missing_ok: bool = False) -> None:
        done.append(f"delete {path.parent.name}/{path.suffix}")
        unlink(path, missing_ok)

    def syncing(descriptor: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        fsync(descriptor)

    monkeypatch.setattr(Path, "unlink", unlinking)
    monkeypatch.setattr(os, "fsync", syncing)
    assert store.purge(TOPIC, 2**45).deleted_files
    last_deletion = max(number for number, what in enumerate(done) if what == "delete partition=0/.parquet")
    receipt = max(number for number, what in enumerate(done) if what == "sync receipts")
    assert "sync partition=0" in done[last_deletion:receipt]


def test_many_files_are_all_fsynced_once_their_context_is_left(tmp_path: Path, synced: set[int]) -> None:
    with TableFiles().durable_at_end() as files:
        for number in range(20):
            files.write_bytes(f"file://{tmp_path}/{number % 3}/{number}", b"12345")
    assert [path for path in [tmp_path, *tmp_path.rglob("*")] if path.stat().st_ino not in synced] == []


def test_an_fsync_that_fails_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(28, "No space left on device")

    def write() -> None:
        with TableFiles().durable_at_end() as files:
            files.write_bytes(f"file://{tmp_path}/a", b"12345")

    write()
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        write()


def test_files_of_which_one_is_not_durable_at_the_end_are_all_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "b":
            raise OSError(errno.ENOSPC, "No space left on device")

    def write() -> None:
        with TableFiles().durable_at_end() as files:
            for name in "abc":
                files.write_bytes(f"file://{tmp_path}/{name}", b"12345")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_deleted_before_the_end_need_not_be_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = threading.Event()

    def late(path: Path) -> None:
        assert deleted.wait(10)
        sync(path)

    monkeypatch.setattr("keptlog.table.io.durable_at_end.sync", late)
    with TableFiles().durable_at_end() as files:
        for name in "ab":
            files.write_bytes(f"file://{tmp_path}/{name}", b"12345")
        files.delete(f"file://{tmp_path}/a")
        deleted.set()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_file_whose_writing_fails_is_not_there(tmp_path: Path) -> None:
    path = f"file://{tmp_path}/a/b.parquet"
    with pytest.raises(TypeError), TableFiles().open_output(path) as sink:
        sink.write(None)
    assert not TableFiles().exists(path)


def test_a_listing_gives_the_paths_by_which_files_were_written(tmp_path: Path) -> None:
    files = TableFiles()
    paths = {f"file://{tmp_path}/t/{name}" for name in ("x", "a b/y", "50%/#/z")}
    for path in paths:
        files.write_bytes(path, b"12345")
    listed = list(files.list(f"file://{tmp_path}/t/"))
    assert {file.path for file in listed} == paths
    assert {file.size_bytes for file in listed} == {5}
    assert all(file.modified_ms > 1_600_000_000_000 for file in listed)
    assert list(files.list(f"file://{tmp_path}/nothing")) == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE, errno.ELOOP])
def test_a_folder_that_can_not_be_listed_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    files = TableFiles()
    for name in ("a/1", "b/2"):
        files.write_bytes(f"file://{tmp_path}/t/{name}", b"")
    unlisted(monkeypatch, "/b", number)
    with pytest.raises(OSError, match="/t/b"):
        list(files.list(f"file://{tmp_path}/t"))
    with pytest.raises(OSError, match="/t/b"):
        files.make_deletions_durable(f"file://{tmp_path}/t")


def test_a_folder_that_vanishes_while_it_is_listed_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, path = TableFiles(), f"file://{tmp_path}/t/a/1"
    files.write_bytes(path, b"")
    files.write_bytes(f"file://{tmp_path}/t/b/2", b"")
    unlisted(monkeypatch, "/b", errno.ENOENT)
    assert [file.path for file in files.list(f"file://{tmp_path}/t")] == [path]
    files.make_deletions_durable(f"file://{tmp_path}/t")


def test_a_file_that_can_not_be_asked_for_is_not_one_that_is_gone(tmp_path: Path) -> None:
    files = TableFiles()
    files.write_bytes(f"file://{tmp_path}/whole", b"")
    (tmp_path / "turning").symlink_to("turning")
    assert files.exists(f"file://{tmp_path}/whole")
    assert not files.exists(f"file://{tmp_path}/nothing")
    assert not files.exists(f"file://{tmp_path}/whole/below-a-file")
    assert not files.exists(f"file://{tmp_path}/turning")
    below = f"file://{tmp_path}/turning/below"
    with pytest.raises(OSError, match="symbolic links"):
        files.exists(below)
    with pytest.raises(OSError, match="symbolic links"):
        files.still_there([below])


def test_deleting_twice_is_no_error_and_reading_what_is_gone_is(tmp_path: Path) -> None:
    files, path = TableFiles(), f"file://{tmp_path}/x"
    files.write_bytes(path, b"")
    files.delete(path)
    files.delete(path)
    with pytest.raises(FileNotFoundError):
        files.open_input(path)


def test_a_task_opens_local_files_without_the_catalogs_library(tmp_path: Path) -> None:
    files = create(tmp_path).files
    files.write_bytes(f"file://{tmp_path}/x", b"content")
    program = (
        "import pickle, sys\n"
        f"files = pickle.loads({pickle.dumps(files)!r})\n"
        f"assert files.read_bytes('file://{tmp_path}/x') == b'content'\n"
        f"assert list(files.list('file://{tmp_path}'))\n"
        "assert 'pyiceberg' not in sys.modules, 'pyiceberg was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_credentials_do_not_show_when_files_are_printed() -> None:
    files = TableFiles((("s3.secret-access-key", "hush"),))
    assert "hush" not in repr(files)
