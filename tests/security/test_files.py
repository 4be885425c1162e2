"""Files with secrets are their owner's alone: those that keptlog makes, and with a warning those that others make."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from keptlog.home import Home, client_settings, open_home
from keptlog.log.record import NewRecord
from keptlog.receipts.key_files import signing_key
from keptlog.settings import spark_settings
from keptlog.storage.erasure_secret import load_hasher
from tests.logging.lines import lines

NOW_MS = 1_800_000_000_000
SECRET = "planted-password"  # noqa: S105  # nobody's


@pytest.fixture
def used(tmp_path: Path) -> Home:
    """A home with a receipt and an erasure secret."""
    home = open_home(tmp_path / "home")
    home.create_topic("users", 1, {"cleanup.policy": "compact"})
    home.append("users", [NewRecord(b"k", b"v", NOW_MS, 0)], now_ms=NOW_MS)
    home.eraser.hash_of(b"k")
    home.delete_topic("users")
    return home


def test_what_keptlog_makes_is_its_owners_alone(used: Home) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in used.path.iterdir() if path.is_file()}

    private = {name: mode for name, mode in modes.items() if name in {"erasure.secret", "receipts.key"}}
    assert private == {"erasure.secret": 0o600, "receipts.key": 0o600}


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_client_settings_with_a_password_that_others_can_read_are_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(f"sasl.password={SECRET}\n")
    file.chmod(mode)

    with caplog.at_level(logging.WARNING):
        client_settings(tmp_path, environment={})
        client_settings(tmp_path, environment={})

    ((level, text),) = lines(caplog)
    assert level == "WARNING"
    assert text == f"{file} holds a secret, and others can read or change it (mode {mode:o}): chmod 600 {file}"


@pytest.mark.parametrize(("content", "mode"), [(f"sasl.password={SECRET}", 0o600), ("linger.ms=5", 0o644)])
def test_a_file_of_ones_own_or_without_a_secret_is_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str, mode: int
) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(content)
    file.chmod(mode)

    with caplog.at_level(logging.WARNING):
        client_settings(tmp_path, environment={})

    assert lines(caplog) == []


@pytest.mark.parametrize(
    ("line", "mode", "warnings"),
    [
        (f"spark.ssl.keyStorePassword {SECRET}", 0o644, 1),
        (f"spark.authenticate.secret={SECRET}", 0o640, 1),
        (f"spark.hadoop.fs.s3a.access.key {SECRET}", 0o604, 1),
        (f"spark.master sc://host:15002/;token={SECRET}", 0o644, 1),
        (f"spark.ssl.keyStorePassword {SECRET}", 0o600, 0),
        ("spark.master local[2]", 0o644, 0),
    ],
)
def test_settings_of_spark_with_a_secret_that_others_can_read_are_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, mode: int, warnings: int
) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(f"{line}\n")
    file.chmod(mode)

    with caplog.at_level(logging.WARNING):
        spark_settings(tmp_path)
        spark_settings(tmp_path)

    told = f"{file} holds a secret, and others can read or change it (mode {mode:o}): chmod 600 {file}"
    assert [text for _, text in lines(caplog)] == [told] * warnings


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])
def test_what_keptlog_makes_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        key, secret = tmp_path / "receipts.key", tmp_path / "erasure.secret"
        signing_key(tmp_path, {})
        load_hasher(tmp_path, {}, lambda: b"x" * 32)
    finally:
        os.umask(before)

    assert [path.stat().st_mode & 0o777 for path in (key, secret)] == [0o600, 0o600]
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_an_erasure_secret_that_others_can_read_is_a_warning(used: Home, caplog: pytest.LogCaptureFixture) -> None:
    (used.path / "erasure.secret").chmod(0o644)

    with caplog.at_level(logging.WARNING):
        used.eraser.hash_of(b"k")

    ((_, text),) = lines(caplog)
    assert "erasure.secret holds a secret" in text
