"""A table that another program called as no topic can be called ends no line and colours none, and doctor names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.table.catalogs.catalog import open_catalog
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("name", "shown"), [("bad\x1b[31m\nodd", "bad\\x1b[31m\\nodd"), ("bad\u202ex", "bad\\u202ex"), ("a b", "a b")]
)
def test_it_is_shown_in_one_line_and_the_other_topics_too(
    keptlog: Run, home: Path, lines: Callable[..., str], name: str, shown: str
) -> None:
    for topic in ("odd", "users"):
        keptlog("topic", "create", topic, "--config", "cleanup.policy=compact", "--config", "segment.ms=1")
        keptlog("append", topic, "--file", lines({"key": "a", "value": "1"}))
    open_catalog(home).rename_table(("keptlog", "odd"), ("keptlog", name))
    for command in (
        ("status",),
        ("plan",),
        ("purge", "--dry-run"),
        ("topic", "list"),
        ("doctor", "--quiet"),
        ("purge", "--yes"),
        ("verify", "--full"),
    ):
        done = keptlog(*command)
        assert "\x1b" not in done.out + done.err, command
        assert "\u202e" not in done.out + done.err, command
        assert shown in done.out, command
        assert "users" in done.out or command[0] == "doctor"
    topics = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "topics")
    (problem,) = topics["problems"]
    assert "is not allowed: use 1 to 249 letters" in problem["what"]
    assert problem["todo"] == "rename it with that program"
