"""Topics for passes over several of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.table.store import LogStore
from tests.logs import open_store
from tests.passes.story import SETTINGS, Story

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Topics a, b and c, each with one log of two records of one key, eight days old."""
    store = open_store(tmp_path)
    for topic in "abc":
        make_topic(store, topic)
    return store


def make_topic(store: LogStore, topic: str) -> None:
    """Make one of them."""
    old_ms = NOW_MS - 8 * DAY_MS
    store.create_topic(topic, 1, {"cleanup.policy": "compact"})
    store.append(topic, [NewRecord(b"k", value, old_ms, 0) for value in (b"1", b"2")], new_id(), NOW_MS)


@pytest.fixture
def make_unreadable(store: LogStore) -> Callable[[str], None]:
    """Takes a topic whose logs can't be had from then on."""

    def make(topic: str) -> None:
        properties = {"log.p0.log-end-offset": "many"}
        store.load_table(topic).transaction().set_properties(properties).commit_transaction()

    return make


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """a and b with a value each, in a segment of their own."""
    story = Story(tmp_path, SETTINGS)
    story.append(("a", "1"), ("b", "1"))
    return story
