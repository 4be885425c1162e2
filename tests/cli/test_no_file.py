"""A pipe, a socket or a device in a file's place in a home or a topic: told as what it is, and never waited for."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from tests.cli.conftest import Run

_PIPE = "it is a named pipe, and no file"
_PATIENCE_S = 60

_PLACES = {
    "segment": "warehouse/keptlog/users/data/partition=0/*.parquet",
    "erasures": "warehouse/keptlog/users/metadata/receipts/erasures/*.json",
    "manifest list": "warehouse/keptlog/users/metadata/snap-*.avro",
    "secret": "erasure.secret",
    "settings": "server.properties",
    "Spark's settings": "spark.properties",
    "signing key": "receipts.key",
}
_LOOKS = {
    "segment": ["read users", "verify users"],
    "erasures": ["erasure list", "doctor"],
    "manifest list": ["read users", "purge --dry-run"],
    "secret": ["doctor", "erase users --key b --yes"],
    "settings": ["status", "doctor"],
    "Spark's settings": ["doctor"],
    "signing key": ["doctor"],
}


@contextmanager
def _patience() -> Iterator[None]:
    """Who waits for a pipe is woken, and the test fails: nobody else would end it."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("the command waits")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(_PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _users(keptlog: Run, lines: Callable[..., str], home: Path) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}))
    keptlog("erase", "users", "--key", "a", "--yes")
    shutil.rmtree(home / "cache", ignore_errors=True)


@pytest.mark.parametrize("place", _PLACES)
def test_a_pipe_in_the_place_of_a_file_is_told_and_not_waited_for(keptlog: Run, home: Path, place: str) -> None:
    files = sorted(home.glob(_PLACES[place])) or [home / _PLACES[place]]
    for file in files:
        file.unlink(missing_ok=True)
        os.mkfifo(file)
    for look in _LOOKS[place]:
        with _patience():
            told = keptlog(*look.split())
        assert told.code in {1, 2}, look
        assert _PIPE in told.out + told.err, look
        assert "Traceback" not in told.err


def test_a_socket_and_a_device_are_told_as_what_they_are(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By links, so that no mistake takes the device away from the machine."""
    settings = home / "server.properties"
    settings.symlink_to("/dev/zero")
    with _patience():
        assert "it is a device, and no file" in keptlog("status").err
    settings.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(home)  # a socket's path may take 107 bytes
        listening.bind(settings.name)
        assert "it is a socket, and no file" in keptlog("status").err


def test_the_null_device_is_an_empty_file(keptlog: Run, home: Path) -> None:
    (home / "server.properties").symlink_to(os.devnull)
    assert keptlog("status").code == 0


@pytest.mark.parametrize("look", ["status", "read users", "purge --dry-run", "history users", "doctor"])
def test_a_pipe_in_the_place_of_the_catalog_is_no_empty_one(keptlog: Run, home: Path, look: str) -> None:
    (home / "catalog.db").unlink()
    os.mkfifo(home / "catalog.db")
    with _patience():
        told = keptlog(*look.split())
    assert told.code == 1
    assert f"has lost its catalog: {home / 'catalog.db'} is a named pipe" in told.out + told.err


def test_a_topic_is_not_created_where_the_catalog_is_a_pipe(keptlog: Run, home: Path) -> None:
    shutil.rmtree(home)
    home.mkdir()
    os.mkfifo(home / "catalog.db")
    with _patience():
        told = keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    assert told.code == 2
    assert "is a named pipe, and a catalog is a file: move it away" in told.err
