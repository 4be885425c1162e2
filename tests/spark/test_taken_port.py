"""A port that somebody else has is told as taken, whatever he does with it, and no Java is started for nothing."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import pytest

from examples.ports import free_ports
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.spark import server
from keptlog.spark.server import connect_server

_TAKEN = r"port \d+ is taken, perhaps by another server: choose one with --port"


@pytest.fixture
def held() -> Iterator[socket.socket]:
    """A port that is bound, and at which nobody listens."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder


def start(port: int, settings: Mapping[str, str] | None = None) -> None:
    with connect_server(port, "token", lambda _: None, settings or {}):
        pytest.fail("it was started")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_that_is_bound_and_does_not_answer_is_taken(held: socket.socket, host: str) -> None:
    with pytest.raises(InvalidConfig, match=_TAKEN):
        start(held.getsockname()[1], {"spark.connect.grpc.binding.address": host})


def test_a_port_that_was_left_just_now_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as left:
        port = left.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), left.accept()[0]:
            pass  # the server's side closes first, and its port stays in TIME_WAIT
    assert not server._is_held("127.0.0.1", port)


def test_a_port_that_is_taken_while_java_starts_is_told_as_taken(
    held: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_SUBMIT", "false")
    looks = iter([False, True])
    monkeypatch.setattr(server, "_is_held", lambda *_: next(looks))
    with (
        pytest.raises(InvalidConfig, match=_TAKEN),
        connect_server(held.getsockname()[1], "token", lambda _: time.sleep(0.05), {}),
    ):
        pytest.fail("it was started")


def test_a_server_in_whose_place_another_has_answered_says_that_its_port_is_taken(
    held: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_wait_until_it_answers", lambda *_: None)
    looks = iter([False, True])
    monkeypatch.setattr(server, "_is_held", lambda *_: next(looks))
    monkeypatch.setattr(server, "_SUBMIT", "false")
    with pytest.raises(InvalidConfig, match=_TAKEN), _answered_by_another(held):
        raise StorageUnavailable("the server could not be warmed up")


def test_a_server_that_has_died_of_something_else_says_nothing_of_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_wait_until_it_answers", lambda *_: None)
    monkeypatch.setattr(server, "_SUBMIT", "false")
    [port] = free_ports(1)
    with pytest.raises(StorageUnavailable, match="warmed up"), connect_server(port, "token", lambda _: None, {}):
        raise StorageUnavailable("the server could not be warmed up")


def test_a_server_that_stays_and_can_not_be_warmed_up_is_told_as_that(
    held: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_wait_until_it_answers", lambda *_: None)
    monkeypatch.setattr(server, "_is_held", lambda *_: False)
    monkeypatch.setattr(server, "_STOP_SECONDS", 0.1)
    monkeypatch.setattr(
        subprocess, "Popen", lambda *_, **more: _popen(["sleep", "60"], stdout=more["stdout"], stderr=more["stderr"])
    )
    with pytest.raises(StorageUnavailable, match="warmed up"), _answered_by_another(held):
        raise StorageUnavailable("the server could not be warmed up")


_popen = subprocess.Popen


def _answered_by_another(held: socket.socket) -> AbstractContextManager[object]:
    return connect_server(held.getsockname()[1], "token", lambda _: None, {})
