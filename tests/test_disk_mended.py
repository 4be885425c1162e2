"""A disk that says no until somebody mends it: whoever meets it says so to programs, which would try again else."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog import whole_file
from keptlog.disk import stays_so
from keptlog.errors import Action, StorageUnavailable
from keptlog.notify.folder import NotifyFolder
from keptlog.receipts import key_files
from keptlog.receipts.folder import taken_for_receipts
from keptlog.receipts.key_files import require_signer, require_signing_key, signing_key, trusted_keys
from keptlog.sinks.new_file import new_file
from keptlog.sources.folder_files import files_in
from keptlog.sources.kafka_log.batches import LogSegment, batches
from keptlog.sources.kafka_log.directory import log_directories
from keptlog.storage.erasure_secret import known_hasher, load_hasher
from keptlog.table.catalogs.home_folder import topics_with_files


def _secret(place: Path) -> None:
    load_hasher(place, {}, lambda: os.urandom(32))


def _restored(place: Path) -> None:
    with new_file(place / "file", "run", overwrite=False) as sink:
        sink.write(b"content")


def _told(place: Path) -> None:
    with NotifyFolder(place).telling_why():
        whole_file.replace_file(place / "state.json", b"content")


def _kafkas(place: Path) -> None:
    log_directories(place)


def _kafkas_segment(place: Path) -> None:
    list(batches(LogSegment(place / "0.log", 0, 1, 1, is_last=True)))


def _folder(place: Path) -> None:
    files_in(place)


def _topics(place: Path) -> None:
    topics_with_files(place)


def _signing_key(place: Path) -> None:
    signing_key(place, {})


def _trusted_keys(place: Path) -> None:
    trusted_keys(place)


def _receipts(place: Path) -> None:
    taken_for_receipts(place)


def _refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """From now on no file is opened and no folder listed."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    for of, name in ((os, "open"), (os, "listdir"), (os, "scandir"), (Path, "open")):
        monkeypatch.setattr(of, name, refuse)


@pytest.mark.parametrize(
    ("number", "action"),
    [(errno.EACCES, Action.FIX_STORAGE), (errno.ENOSPC, Action.FIX_STORAGE), (errno.EIO, Action.RETRY)],
)
@pytest.mark.parametrize(
    "act",
    [_secret, _restored, _told, _kafkas, _kafkas_segment, _folder, _topics, _signing_key, _trusted_keys, _receipts],
)
def test_who_meets_it_says_that_it_stays_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None], number: int, action: Action
) -> None:
    _refuse(monkeypatch, number)
    with pytest.raises(StorageUnavailable) as met:
        act(tmp_path)
    assert met.value.action is action


def test_what_a_right_or_room_would_mend_stays_so() -> None:
    assert all(stays_so(OSError(number, "")) for number in (errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS))
    assert not any(stays_so(OSError(number, "")) for number in (errno.EIO, errno.ENOENT, errno.EAGAIN))


def test_a_segment_that_this_user_may_not_read_is_not_told_as_one_that_the_broker_has_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StorageUnavailable, match="a running broker may have removed it, try again"):
        _kafkas_segment(tmp_path)

    _refuse(monkeypatch, errno.EACCES)
    with pytest.raises(StorageUnavailable, match=r"0\.log can't be read: Permission denied; let this user read it"):
        _kafkas_segment(tmp_path)


@pytest.mark.parametrize(
    ("number", "todo"),
    [
        (errno.EACCES, "let this user read it, and try again"),
        (errno.EMFILE, "raise that limit (ulimit -n), and try again"),
        (errno.EIO, "see that its disk answers, and try again"),
        (errno.ESTALE, "a running broker may have"),
    ],
)
@pytest.mark.parametrize("act", [_kafkas, _kafkas_segment])
def test_a_broker_is_named_for_what_a_broker_may_have_done_and_a_right_where_one_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None], number: int, todo: str
) -> None:
    _refuse(monkeypatch, number)
    with pytest.raises(StorageUnavailable) as met:
        act(tmp_path)
    assert f"can't be read: {os.strerror(number)}; {todo}" in str(met.value)


@pytest.mark.parametrize(
    ("number", "todo"),
    [
        (errno.EACCES, "let this user list it"),
        (errno.EMFILE, "raise that limit (ulimit -n)"),
        (errno.EIO, "see that its disk answers"),
    ],
)
@pytest.mark.parametrize("act", [_folder, _topics, _trusted_keys, _receipts])
def test_a_folder_that_cannot_be_listed_takes_a_right_only_where_one_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None], number: int, todo: str
) -> None:
    _refuse(monkeypatch, number)
    with pytest.raises(StorageUnavailable) as met:
        act(tmp_path)
    assert f"can't be listed ({os.strerror(number)}), " in str(met.value)
    assert f": {todo}" in str(met.value)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EIO, (Action.RETRY, "see that its disk answers")),
        (errno.ESTALE, (Action.RETRY, "see that its disk answers")),
        (errno.EMFILE, (Action.FIX_STORAGE, "raise that limit")),
    ],
)
@pytest.mark.parametrize("read", [_signing_key, _trusted_keys])
def test_a_key_that_a_disk_does_not_give_is_not_to_be_moved_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], None], number: int, told: tuple[Action, str]
) -> None:
    """Nothing is wrong with it: another one would sign from then on."""
    signing_key(tmp_path, {})

    def fail(path: Path) -> bytes:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(key_files, "read_file", fail)
    with pytest.raises(StorageUnavailable, match=told[1]) as raised:
        read(tmp_path)
    assert raised.value.action is told[0]
    assert "move it away" not in str(raised.value)


@pytest.mark.parametrize("require", [require_signer, require_signing_key, known_hasher])
def test_nor_is_a_disk_that_does_not_say_whether_a_key_is_there_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Callable[[Path, dict[str, str]], object]
) -> None:
    """As one that is gone for a while, of which no file can be asked for: that was no error of ours."""
    signing_key(tmp_path, {})
    _secret(tmp_path)

    def fail(path: Path, **_: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))

    monkeypatch.setattr(Path, "stat", fail)
    told = r"(receipts\.key|erasure\.secret) can't be read .*: see that its disk answers"
    with pytest.raises(StorageUnavailable, match=told) as raised:
        require(tmp_path, {})
    assert raised.value.action is Action.RETRY


@pytest.mark.parametrize(
    ("number", "todo"),
    [(errno.EMFILE, "raise that limit (ulimit -n)"), (errno.EIO, "see that its disk answers")],
)
def test_a_secret_that_a_disk_does_not_give_is_not_told_as_one_that_is_to_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, todo: str
) -> None:
    _secret(tmp_path)

    _refuse(monkeypatch, number)
    with pytest.raises(StorageUnavailable) as met:
        _secret(tmp_path)
    place = tmp_path / "erasure.secret"
    assert str(met.value) == f"erasure secret {place} can't be read ({os.strerror(number)}): {todo}"
