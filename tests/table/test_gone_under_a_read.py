"""A file that goes under a read has gone for a reason, and the error names that one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.logs import open_store
from tests.table.stores import NOW_MS, TOPIC, append_each, create, new_id


def test_what_went_with_deleted_records_is_not_blamed_on_a_clean(tmp_path: Path) -> None:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")], [("a", "2")], [("a", "3")])
    path = store.logs(TOPIC)[0].segments[1].path
    reading = store.read(TOPIC)
    next(reading)
    store.delete_records(TopicPartition(TOPIC, 0), 2, new_id())
    store.files.delete(path)
    with pytest.raises(StorageUnavailable, match="cleaned, retained or deleted, and a purge deleted it"):
        next(reading)


@pytest.mark.parametrize(
    "store_of",
    [open_store, lambda home: UnopenedStore(home, {}, lambda: open_store(home))],
    ids=["opened", "unopened"],
)
def test_a_topic_that_was_made_anew_is_told_as_that(
    tmp_path: Path, store_of: Callable[[Path], LogStore | UnopenedStore]
) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    reading = store_of(tmp_path).read(TOPIC)
    next(reading)
    store.delete_topic(TOPIC, NOW_MS)
    create(tmp_path)
    with pytest.raises(StorageUnavailable, match=f"topic {TOPIC} was deleted under this read, and made anew") as told:
        next(reading)
    assert "file.delete.delay.ms" not in str(told.value)
