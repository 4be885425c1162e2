"""Commands over all topics, one of which is broken: the others are shown, and the exit code says that one is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.broken_topics import BREAKAGES, Breakage
from tests.cli.conftest import Run

READ_BY_NAMES_ALONE = {"a manifest is cut off", "a manifest is gone", "a damaged property"} | {
    "the manifest list is cut off",
    "the manifest list is gone",
    "the manifest list is a pipe",
    "a manifest is a folder",
}
"""What ``topic list`` shows of a topic needs no segment."""


@pytest.mark.parametrize("looks_before", [0, 2], ids=["never looked", "looked before"])
@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: breakage.id)
def test_status_list_and_describe_name_the_broken_topic_and_show_the_others(
    keptlog: Run, home: Path, lines: Callable[..., str], breakage: Breakage, looks_before: int
) -> None:
    for topic in ("odd", "users"):
        assert keptlog("topic", "create", topic, "--config", "cleanup.policy=compact").code == 0
        assert keptlog("append", topic, "--file", lines({"key": "a", "value": "1"})).code == 0
    for _ in range(looks_before):  # the second one remembers how logs stand, too
        assert keptlog("status").code == 0
    breakage(open_home(home).store, "odd")

    for _ in range(2):
        status = keptlog("status", "--json")
        assert [log["topic_partition"] for log in status.json["logs"]] == ["users-0"]
        assert breakage.said in {each["subject"]: each["message"] for each in status.json["errors"]}["odd"]
        assert (status.code, "odd" in status.err) == (1, True)
    listed = keptlog("topic", "list", "--json")
    assert "users" in [each["topic"] for each in listed.json["topics"]]
    assert breakage.id in READ_BY_NAMES_ALONE or (listed.code == 1 and breakage.said in listed.err)
    described = keptlog("topic", "describe", "odd")
    assert described.code != 0
    assert breakage.said in described.err
    assert keptlog("topic", "describe", "users").code == 0
    planned = keptlog("plan", "--json")
    assert breakage.said in {each["subject"]: each["message"] for each in planned.json["errors"]}["odd"]
    assert planned.code == 1


def test_a_name_in_the_catalog_that_is_no_text_costs_only_its_own_topic(
    keptlog: Run, home: Path, lines: Callable[..., str]
) -> None:
    for topic in ("odd", "users"):
        keptlog("topic", "create", topic, "--config", "cleanup.policy=compact")
        keptlog("append", topic, "--file", lines({"key": "a", "value": "1"}))
    with closing(sqlite3.connect(home / "catalog.db")) as catalog, catalog:
        catalog.execute("UPDATE iceberg_tables SET table_name = x'ff00fe' WHERE table_name = 'odd'")
    assert keptlog("erasure", "list").code == 0
    assert "users-0" in keptlog("status").out
    checks = {each["name"]: each["problems"] for each in keptlog("doctor", "--json").json["checks"]}
    told = [each["what"] for problems in checks.values() for each in problems]
    assert [checks[name] != [] for name in ("topics", "folders")] == [True, True]
    assert any("/odd: no topic lies in this folder any more" in what for what in told)
    assert any("a table of the topics' namespace: " in what for what in told)
    assert len(told) == 2
