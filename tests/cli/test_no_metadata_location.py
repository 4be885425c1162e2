"""A row of the catalog that names no metadata file: the topic is there, can't be read, and costs only itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run

_SAID = "topic odd: its row in the catalog names no metadata file"


@pytest.fixture(autouse=True, params=[None, "", b"\xff\x00"], ids=["null", "empty", "bytes"])
def _broken(keptlog: Run, lines: Callable[..., str], home: Path, request: pytest.FixtureRequest) -> None:
    for topic in ("odd", "users"):
        keptlog("topic", "create", topic, "--config", "cleanup.policy=compact")
        keptlog("append", topic, "--file", lines({"key": "a", "value": "1"}))
    with sqlite3.connect(home / "catalog.db") as connection:
        query = "update iceberg_tables set metadata_location = ? where table_name = 'odd'"
        connection.execute(query, (request.param,))
    connection.close()


@pytest.mark.parametrize("command", ["status", "plan", "verify --full", "clean", "purge", "topic list"])
def test_whoever_looks_at_all_topics_names_it_and_does_the_others(keptlog: Run, command: str) -> None:
    done = keptlog(*command.split())
    assert (done.code, _SAID in done.err) == (1, True)
    assert "users" in done.out or command in {"plan", "clean"}
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["explain odd-0", "read odd", "repair odd", "topic describe odd"])
def test_who_asks_for_it_is_not_told_that_there_is_none(keptlog: Run, command: str) -> None:
    done = keptlog(*command.split())
    assert (done.code, _SAID in done.err) == (1, True)


def test_what_doctor_says_puts_it_back(keptlog: Run, home: Path) -> None:
    topics = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "topics")
    assert [each["what"].partition(";")[0] for each in topics["problems"]] == [_SAID]

    catalog = open_home(home).store._catalog
    catalog.drop_table(("keptlog", "odd"))
    folders = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "folders")
    (found,) = folders["problems"]
    newest = max((home / "warehouse/keptlog/odd/metadata").glob("*.metadata.json"))
    assert f"topic register NAME --metadata file://{newest};" in found["todo"]
    open_home(home).store._catalog.register_table(("keptlog", "odd"), f"file://{newest}")
    assert keptlog("doctor").out.endswith(": 0 problems\n")
    assert "odd-0" in keptlog("status").out
