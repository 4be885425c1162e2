"""A disk that says no until somebody mends it: whoever meets it says so to programs, which would try again else."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog import whole_file
from keptlog.errors import Action, StorageUnavailable
from keptlog.notify.folder import NotifyFolder
from keptlog.sinks.new_file import new_file
from keptlog.sources.kafka_log.directory import log_directories
from keptlog.storage.disk import stays_so
from keptlog.storage.erasure_secret import load_hasher


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


@pytest.mark.parametrize(
    ("number", "action"),
    [(errno.EACCES, Action.FIX_STORAGE), (errno.ENOSPC, Action.FIX_STORAGE), (errno.EIO, Action.RETRY)],
)
@pytest.mark.parametrize("act", [_secret, _restored, _told, _kafkas])
def test_who_meets_it_says_that_it_stays_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None], number: int, action: Action
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StorageUnavailable) as met:
        act(tmp_path)
    assert met.value.action is action


def test_what_a_right_or_room_would_mend_stays_so() -> None:
    assert all(stays_so(OSError(number, "")) for number in (errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS))
    assert not any(stays_so(OSError(number, "")) for number in (errno.EIO, errno.ENOENT, errno.EAGAIN))
