"""A small file is there whole or not at all, whenever its writer is killed, and however many write it at once."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keptlog.whole_file import create_file, is_unfinished, replace_file

PROCESSES = multiprocessing.get_context("forkserver")
OLD, NEW = b"old", b"new" * 100_000


@pytest.mark.parametrize("write", [replace_file, lambda path, content: create_file(path, content, 0o600)])
def test_a_new_file_is_what_was_written_and_leaves_nothing_beside_it(
    tmp_path: Path, write: Callable[[Path, bytes], None]
) -> None:
    write(tmp_path / "file", NEW)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == NEW


def test_a_file_is_replaced_or_kept(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", OLD)
    create_file(tmp_path / "file", NEW, 0o600)
    assert (tmp_path / "file").read_bytes() == OLD
    replace_file(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == NEW
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_created_file_has_its_permissions_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o177)
    try:
        create_file(tmp_path / "file", NEW, mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


@pytest.mark.parametrize("moment", ["write", "fsync", "rename"])
def test_a_killed_writer_leaves_the_file_as_it_was_and_a_part_that_nobody_takes_for_it(
    tmp_path: Path, moment: str
) -> None:
    replace_file(tmp_path / "file", OLD)
    process = PROCESSES.Process(target=_killed_at, args=(moment, tmp_path / "file"))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (tmp_path / "file").read_bytes() == OLD
    (part,) = set(tmp_path.iterdir()) - {tmp_path / "file"}
    assert is_unfinished(str(part))
    assert not is_unfinished(str(tmp_path / "file"))


def test_a_write_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file(tmp_path / "file", OLD)

    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "file", NEW)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [OLD]


@pytest.mark.parametrize("write", [replace_file, lambda path, content: create_file(path, content, 0o600)])
def test_a_write_that_fails_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], None]
) -> None:
    """Of a full disk the system tells no name."""

    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space left") as raised:
        write(tmp_path / "file", NEW)
    assert raised.value.filename == str(tmp_path / "file")


def test_a_part_that_a_purge_without_grace_took_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Path.replace
    taken: list[Path] = []

    def after_a_purge(self: Path, target: Path) -> Path:
        if len(taken) < 3:
            taken.append(self)
            self.unlink()
        return really(self, target)

    monkeypatch.setattr(Path, "replace", after_a_purge)
    replace_file(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == NEW
    assert len(set(taken)) == 3


@pytest.fixture(params=["pipe", "socket", "folder", "link to a pipe"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """What is there and is no file; never a real device, which a mistake would take away from the machine."""
    path = tmp_path / "there"
    with socket.socket(socket.AF_UNIX) as listening:
        if request.param == "socket":
            listening.bind(str(path))
        elif request.param == "folder":
            path.mkdir()
        else:
            os.mkfifo(tmp_path / "pipe")
            path = tmp_path / "pipe" if request.param == "pipe" else path
        if request.param == "link to a pipe":
            path.symlink_to("pipe")
        yield path


def test_what_is_no_regular_file_is_not_replaced_by_one(no_file: Path) -> None:
    before = {each.name: each.lstat().st_ino for each in no_file.parent.iterdir()}
    with pytest.raises(OSError, match="no regular file is there"):
        replace_file(no_file, NEW)
    assert {each.name: each.lstat().st_ino for each in no_file.parent.iterdir()} == before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "far").mkdir()
    if is_there:
        (tmp_path / "far" / "file").write_bytes(OLD)
    (tmp_path / "link").symlink_to("near")
    (tmp_path / "near").symlink_to("far/file")
    replace_file(tmp_path / "link", NEW)
    assert (tmp_path / "link").readlink() == Path("near")
    assert (tmp_path / "near").readlink() == Path("far/file")
    assert (tmp_path / "far" / "file").read_bytes() == NEW
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "file", "link", "near"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions_and_its_owner(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(OLD)
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(file, 12, 34)
    file.chmod(mode)
    replace_file(file, NEW)
    status = file.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_size) == (mode, len(NEW))
    assert not is_root or (status.st_uid, status.st_gid) == (12, 34)


def test_permissions_that_are_asked_for_win_over_those_of_the_file_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(OLD)
    file.chmod(0o644)
    replace_file(file, NEW, 0o600)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def _killed_at(moment: str, path: Path) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "rename":
        Path.replace = die  # type: ignore[method-assign, assignment]
    elif moment == "fsync":
        os.fsync = die  # type: ignore[assignment]
    else:
        os.fdopen = die  # type: ignore[assignment]
    replace_file(path, NEW)
