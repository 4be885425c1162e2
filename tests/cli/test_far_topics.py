"""Topics of a catalog that is far away are asked for side by side by what only lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.ingest.kafka_brokers import topics_from_brokers
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.at_once import let_two_meet
from tests.cli.conftest import Run


@pytest.fixture
def two_topics(home: Path) -> Path:
    for name in ("one", "two"):
        open_home(home).store.create_topic(name, 1, {})
    return home


def test_topic_list_asks_for_two_at_once(two_topics: Path, keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    let_two_meet(monkeypatch, UnopenedStore, "describe_topic")
    listed = keptlog("topic", "list", "--json").json["topics"]
    assert [each["topic"] for each in listed] == ["one", "two"]


def test_topics_of_brokers_are_found_two_at_once(two_topics: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_two_meet(monkeypatch, LogStore, "source_of")
    assert topics_from_brokers(open_home(two_topics).store) == {}
