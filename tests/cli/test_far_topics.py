"""Topics of a catalog that is far away are asked for side by side by what only lists them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.ingest.kafka_brokers import topics_from_brokers
from keptlog.table.store import LogStore
from keptlog.table.unopened import DescribedTopic, UnopenedStore
from tests.cli.conftest import Run


@pytest.fixture
def both() -> threading.Barrier:
    """Where each of two waits until the other one is there too."""
    return threading.Barrier(2, timeout=60)


@pytest.fixture
def two_topics(home: Path) -> Path:
    for name in ("one", "two"):
        open_home(home).store.create_topic(name, 1, {})
    return home


def test_topic_list_asks_for_two_at_once(
    two_topics: Path, both: threading.Barrier, keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = UnopenedStore.describe_topic

    def wait_for_the_other(store: UnopenedStore, topic: str) -> DescribedTopic:
        both.wait()
        return real(store, topic)

    monkeypatch.setattr(UnopenedStore, "describe_topic", wait_for_the_other)
    listed = keptlog("topic", "list", "--json").json["topics"]
    assert [each["topic"] for each in listed] == ["one", "two"]


def test_topics_of_brokers_are_found_two_at_once(
    two_topics: Path, both: threading.Barrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LogStore.source_of

    def wait_for_the_other(store: LogStore, topic: str) -> object:
        both.wait()
        return real(store, topic)

    monkeypatch.setattr(LogStore, "source_of", wait_for_the_other)
    assert topics_from_brokers(open_home(two_topics).store) == {}
