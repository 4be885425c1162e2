"""A purge that deletes what a table named, while somebody looks at it, is no damage: it is another table by then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import LogCorrupt
from keptlog.home import new_id, wall_clock_ms
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.metadata import live_segments
from keptlog.table.metadata.metadata_reading import manifests_of
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.logs import open_store

TOPIC = "t"
RECORD = NewRecord(key=b"k", value=b"v", timestamp_ms=1)


@pytest.fixture
def overtaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """A store under whose first look another one appends and purges."""
    open_store(tmp_path).create_topic(TOPIC, 1, {"cleanup.policy": "compact", "file.delete.delay.ms": "0"})
    open_store(tmp_path).append(TOPIC, [RECORD], new_id(), wall_clock_ms())
    really, looks = manifests_of, [0]

    def overtaken(topic: str, snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
        looks[0] += 1
        if looks[0] == 1:
            other = open_store(tmp_path)
            other.append(TOPIC, [RECORD], new_id(), wall_clock_ms())
            assert other.purge(TOPIC, wall_clock_ms() + 1).deleted_metadata
        return really(topic, snapshot, io)

    monkeypatch.setattr(live_segments, "manifests_of", overtaken)
    return open_store(tmp_path)


@pytest.mark.parametrize(
    "look",
    [
        lambda store: store.logs(TOPIC)[0].log_end_offset,
        lambda store: store.observe(TOPIC).logs[0].log_end_offset,
        lambda store: len(list(store.read(TOPIC))),
        lambda store: store.delete_records(TopicPartition(TOPIC, 0), 2, new_id()).log_start_offset,
    ],
    ids=["to judge it", "to observe it", "to read it", "to change it"],
)
def test_who_was_overtaken_looks_again(overtaken: LogStore, look: Callable[[LogStore], int]) -> None:
    assert look(overtaken) == 2


@pytest.mark.usefixtures("overtaken")
def test_so_does_who_opens_nothing(tmp_path: Path) -> None:
    unopened = UnopenedStore(tmp_path, {}, lambda: open_store(tmp_path))
    assert unopened.observe(TOPIC).logs[0].log_end_offset == 2


def test_a_file_that_the_current_table_names_and_that_is_gone_is_damage_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    store.append(TOPIC, [RECORD], new_id(), wall_clock_ms())
    for path in tmp_path.rglob("snap-*.avro"):
        path.unlink()
    with pytest.raises(LogCorrupt, match="is gone"):
        open_store(tmp_path).logs(TOPIC)
