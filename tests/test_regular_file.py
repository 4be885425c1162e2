"""Files that a person has named, which may be pipes."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from keptlog.regular_file import read_named


def given(pipe: Path, content: bytes) -> bytes:
    """What is read of a pipe that somebody else writes into."""
    threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True).start()
    return read_named(pipe)


def is_held(status: os.stat_result) -> bool:
    """Whether this process has it open."""
    held = list[os.stat_result]()
    for each in Path("/dev/fd").iterdir():
        with suppress(OSError):  # that of the folder itself
            held.append(os.fstat(int(each.name)))
    return any(os.path.samestat(status, each) for each in held)


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="nothing keeps the number of a pipe here")
def test_a_pipe_that_is_made_anew_is_another_one(tmp_path: Path) -> None:
    """Most disks give the number of a file that was deleted to the next one, which had the secret of the first then."""
    pipe = tmp_path / "secret"
    for content in (b"one", b"two"):
        os.mkfifo(pipe)
        assert given(pipe, content) == content
        assert read_named(pipe) == content
        status = pipe.stat()
        pipe.unlink()
        assert is_held(status)


def test_a_pipe_that_gave_nothing_is_asked_again(tmp_path: Path) -> None:
    pipe = tmp_path / "secret"
    os.mkfifo(pipe)
    assert given(pipe, b"") == b""
    assert not is_held(pipe.stat())
    assert given(pipe, b"one") == b"one"
