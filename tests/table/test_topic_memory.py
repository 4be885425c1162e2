"""What a process remembers of a topic goes with the topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.table.metadata.logs import Locations
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.stores import NOW_MS, TOPIC, append_each, create, store_at


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Has looked at a topic with a tag in each way."""
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    table = table_of(tmp_path)
    table.manage_snapshots().create_tag(table.metadata.snapshots[0].snapshot_id, "audit").commit()
    store.logs(TOPIC)
    store.observe(TOPIC)
    assert remembered(store) == [{TOPIC}] * 3
    return store


def remembered(store: LogStore) -> list[set[str]]:
    memory = store._memory
    look = memory.table_look
    return [memory.live_files.topics(), look.live_segments.topics(), look.superseded_files.topics()]


def delete_here(store: LogStore, _: Path) -> None:
    store.delete_topic(TOPIC, NOW_MS)


def delete_elsewhere(store: LogStore, home: Path) -> None:
    store_at(home).delete_topic(TOPIC, NOW_MS)
    assert TOPIC not in store.metadata_locations()


@pytest.mark.parametrize("delete", [delete_here, delete_elsewhere])
def test_nothing_is_remembered_of_a_topic_that_is_deleted(
    store: LogStore, tmp_path: Path, delete: Callable[[LogStore, Path], None]
) -> None:
    delete(store, tmp_path)
    assert remembered(store) == [set()] * 3


def test_a_topic_that_is_there_is_remembered_and_so_is_one_that_a_look_had_no_time_for(store: LogStore) -> None:
    assert TOPIC in store.metadata_locations()
    assert remembered(store) == [{TOPIC}] * 3
    short = Locations()
    short.to_be_asked = 1
    store._memory.forgetting_gone(short)
    assert remembered(store) == [{TOPIC}] * 3
