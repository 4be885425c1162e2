"""A store that answers a byte at a time, for ever, is given up, and each try is told. A slow line is waited for."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest

from keptlog.table.io.files import TableFiles

pytest.importorskip("boto3")

from keptlog.table.io import object_reads, s3_client
from keptlog.table.io.object_versions import bucket_of
from keptlog.table.waiting import whole_answers

SECONDS = 0.2
PATH = "s3://bucket/topic/x"
HEAD = b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: %d\r\n\r\n'
ANSWERS: dict[str, Callable[[TableFiles], object]] = {
    "an object": lambda files: files.read_bytes(PATH),
    "a list": lambda files: list(files.list("s3://bucket/topic")),
    "a deletion": lambda files: files.delete(PATH),
    "whether it is there": lambda files: files.exists(PATH),
}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "_ATTEMPTS", 2)
    monkeypatch.setattr(object_reads, "_ANSWERS", 2)


@contextmanager
def store(pieces: Callable[[bytes], Iterator[bytes]], seconds: float = SECONDS) -> Iterator[TableFiles]:
    """A store that answers each request with these pieces, with a pause between them that is far below any limit."""

    is_over = Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # nobody may wait for it any more
            for piece in pieces(connection.recv(65536)):
                connection.sendall(piece)
                if is_over.wait(seconds / 10):
                    return

    def serve(server: socket.socket) -> None:
        while True:
            try:
                connection = server.accept()[0]
            except OSError:
                return
            Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        Thread(target=serve, args=(server,), daemon=True).start()
        yield TableFiles(
            (
                ("s3.access-key-id", "key"),
                ("s3.endpoint", f"http://127.0.0.1:{server.getsockname()[1]}"),
                ("s3.region", "us-east-1"),
                ("s3.request-timeout", str(SECONDS)),
                ("s3.secret-access-key", "secret-of-the-store"),
            )
        )
        is_over.set()
        server.shutdown(socket.SHUT_RDWR)


def a_byte_at_a_time(_: bytes) -> Iterator[bytes]:
    yield HEAD % 10**6
    while True:
        yield b"<"


def a_head_that_never_ends(_: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX-Long: "
    while True:
        yield b"x"


@pytest.mark.parametrize("pieces", [a_byte_at_a_time, a_head_that_never_ends])
@pytest.mark.parametrize("asked", ANSWERS)
def test_an_answer_that_never_ends_is_given_up(
    asked: str, pieces: Callable[[bytes], Iterator[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "keptlog")
    with store(pieces) as files, pytest.raises(OSError, match="ReadTimeoutError"):
        ANSWERS[asked](files)
    assert [each for each in caplog.messages if each.endswith("try 2 of 2")]


def test_a_version_that_never_ends_is_given_up() -> None:
    def pieces(request: bytes) -> Iterator[bytes]:
        yield HEAD % 1000
        while not request.startswith(b"HEAD"):
            yield b"x"

    with store(pieces) as files, pytest.raises(OSError, match="ReadTimeoutError"):
        bucket_of(files.properties, PATH).open(PATH, "1").read()


def test_an_object_on_a_slow_line_takes_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_answers, "BYTES_A_SECOND", 40)
    content = bytes(range(200))

    def pieces(_: bytes) -> Iterator[bytes]:
        yield HEAD % len(content)
        yield from (content[at : at + 10] for at in range(0, len(content), 10))

    began = time.monotonic()
    with store(pieces, 1.0) as files:
        assert files.read_bytes(PATH) == content
    assert time.monotonic() - began > 1.0
