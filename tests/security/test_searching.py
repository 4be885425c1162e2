"""The search for secrets finds those that were planted: else it would prove nothing."""

from __future__ import annotations

import contextlib
import gzip
import os
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.security.searching import (
    descendants,
    found_in,
    found_in_command_lines,
    found_in_database,
    found_in_files,
)

SECRET = "planted@pass/word"  # noqa: S105  # nobody's
SECRETS = {"the password": SECRET}


@pytest.mark.parametrize(
    "content",
    [
        f"at postgresql://u:{SECRET}@host",
        f"at postgresql://u:{quote(SECRET, safe='')}@host",
        "at postgresql://u:***@pass/word@host",
        b"\0" + SECRET.encode(),
        gzip.compress(SECRET.encode()),
        zlib.compress(SECRET.encode()),
        "cGxhbnRlZEBwYXNzL3dvcmQ=",
    ],
)
def test_a_secret_is_found_in_every_form(content: str | bytes) -> None:
    assert found_in(content, SECRETS) == ["the password"]
    assert found_in(content, {"another": "nowhere-at-all"}) == []


def test_a_few_last_characters_behind_a_sign_are_no_secret() -> None:
    key = "+FQ13q1jXy9v60KOqfO9d1Q0EzPzCgejfBxcpN/i"

    assert found_in("access is denied", {"the key": key, "another": "CgejfBxcpN/"}) == []
    assert found_in(f"access is denied to {key}", {"the key": key}) == ["the key"]


def test_a_secret_is_found_in_files_and_databases(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "events.log").write_text(f"before {SECRET} after")
    with contextlib.closing(sqlite3.connect(tmp_path / "some.db")) as connection:
        connection.execute("create table told (id, body)")
        connection.execute("insert into told values (1, ?)", (zlib.compress(SECRET.encode()),))

        assert found_in_database(connection, SECRETS) == ["the password in told.body"]
    assert found_in_files(tmp_path, SECRETS) == [f"the password in {tmp_path / 'deep/er/events.log'}"]


def test_a_file_that_is_taken_away_meanwhile_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "there").write_text(SECRET)
    (tmp_path / "taken away").symlink_to(tmp_path / "nowhere")

    assert found_in_files(tmp_path, SECRETS) == [f"the password in {tmp_path / 'there'}"]


def test_a_secret_is_found_in_the_command_line_of_a_process_that_was_started_here() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()", SECRET], stdin=subprocess.PIPE)
    try:
        assert process.pid in descendants([os.getpid()])
        assert found_in_command_lines([process.pid], SECRETS) == [f"the password in the command line of {process.pid}"]
    finally:
        process.kill()
        process.communicate()
