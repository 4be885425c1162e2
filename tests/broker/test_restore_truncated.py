"""A log that was truncated since does not go on at a real broker where it was; another topic gets all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import new_id
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.readers import Readers
from keptlog.table.changes.truncate import Truncation
from tests.broker.broker import Broker
from tests.broker.restoring import restore_of, wall_clock_ms
from tests.ingest.directories import run_import, some_batch, some_records, write_log
from tests.logs import open_store


def test_a_restore_after_a_truncation_is_refused_and_another_topic_gets_everything(
    broker: Broker, tmp_path: Path
) -> None:
    topic, another = f"restored-{new_id()}", f"restored-{new_id()}"
    store, logs, name = open_store(tmp_path / "home"), tmp_path / "logs", TopicPartition(topic, 0)
    write_log(logs, str(name), [some_batch(0), some_batch(10)])
    run_import(store, logs, new_id())
    restore = restore_of(store, broker.bootstrap)
    # Only the cleaner of the broker could remove something.
    store.alter_topic(topic, {"cleanup.policy": "delete", "retention.ms": "-1"})
    assert restore.to_broker(topic, topic).records == 20
    [standing] = Readers(store, new_id).list([topic], now_ms=wall_clock_ms())
    Readers(store, new_id).remove(topic, standing.reader)
    Truncation(name, 15, new_id(), new_id).commit(store.committer, store.files)
    write_log(logs, str(name), [some_batch(0), some_batch(10), some_batch(20)])
    run_import(store, logs, new_id())

    with pytest.raises(InvalidConfig, match="was restored up to offset 20, and was truncated to 15 since"):
        restore.to_broker(topic, topic)

    assert restore.to_broker(topic, another).records == 30
    assert [each.key for each in broker.records(another, 1)[0]] == [each.key for each in some_records(0, 30)]
    assert restore.to_broker(topic, another).records == 0
