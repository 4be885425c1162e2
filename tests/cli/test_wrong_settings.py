"""A file of settings that is no text, or none at all, is told in one line, by whatever reads it first."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.cli.conftest import Run

_TEXT = b"# all of it\nlog.cleaner.enable=false\n"
_WRONG = {
    gzip.compress(_TEXT): "can't be read: it is compressed with gzip: unpack it (gzip -dc FILE)",
    b"\x28\xb5\x2f\xfdxxxx": "can't be read: it is compressed with zstd: unpack it (zstd -dc FILE)",
    b"PK\x03\x04xx": "can't be read: it is a zip archive: unpack it",
    _TEXT.decode().encode("utf-16"): "can't be read: it is UTF-16: write it as UTF-8",
    _TEXT.decode().encode("utf-16-le"): "can't be read: it is UTF-16: write it as UTF-8",
    b"\0\0\0": "can't be read: it begins with zeros, and so is no text",
    _TEXT + "ä=1\n".encode("latin-1"): "line 3 is no text in UTF-8: write the file as UTF-8",
    None: "can't be read: Is a directory",
}
_READ_BY = {
    "server.properties": ("plan", "status"),
    "kafka.properties": ("ingest kafka --topic t --bootstrap 127.0.0.1:1",),
    "spark.properties": ("spark-server",),
}


@pytest.mark.parametrize("content", _WRONG, ids=lambda content: _WRONG[content][:40])
@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in _READ_BY.items() for line in lines])
def test_what_is_no_text_is_told_in_one_line(
    keptlog: Run, home: Path, name: str, line: str, content: bytes | None
) -> None:
    keptlog("topic", "create", "users")
    if content is None:
        (home / name).mkdir()
    else:
        (home / name).write_bytes(content)
    refused = keptlog(*line.split())
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"keptlog: {home / name} {_WRONG[content]}")
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize("content", _WRONG, ids=lambda content: _WRONG[content][:40])
def test_who_tells_others_tells_them_that_too(keptlog: Run, home: Path, content: bytes | None) -> None:
    """A scrape, and a message, of settings that can't be read: whoever waits for one would hear nothing else."""
    keptlog("topic", "create", "users")
    if content is None:
        (home / "server.properties").mkdir()
    else:
        (home / "server.properties").write_bytes(content)
    text = f"{home / 'server.properties'} {_WRONG[content]}"
    scraped, told = keptlog("metrics", "write", "-"), keptlog("notify", "--dry-run")
    assert (scraped.code, told.code) == (1, 1)
    assert (len(scraped.err.splitlines()), len(told.out.splitlines())) == (1, 1)
    assert scraped.err.startswith(f"keptlog: {text}")
    assert "\nkeptlog_up 0.0\n" in scraped.out
    assert f"no log can be cleaned: {text}" in told.out


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf" + _TEXT, b"\n\n"])
def test_an_empty_file_and_a_byte_order_mark_are_nothing_wrong(keptlog: Run, home: Path, content: bytes) -> None:
    keptlog("topic", "create", "users")
    (home / "server.properties").write_bytes(content)
    assert keptlog("metrics", "write", "-").code == 0
