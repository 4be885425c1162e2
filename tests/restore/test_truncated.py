"""A restore does not go on behind a truncation: what came there since was never sent.

A broker's transactions and groups are stood in for; ``tests.broker`` has a restore like this to a real one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Committed

from keptlog.errors import InvalidConfig
from keptlog.home import new_id, wall_clock_ms
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.readers import Readers
from keptlog.passes.restore import Restore, RestoreResult, reader_name_of
from keptlog.progress import silent
from keptlog.sinks.kafka_broker.position import Pair, Position
from keptlog.table.changes.truncate import Truncation
from keptlog.table.store import LogStore
from tests.ingest.directories import run_import, some_batch, write_log
from tests.logs import open_store
from tests.restore.stand_in import TARGET, Broker

NAME = TopicPartition("users", 0)
WITHOUT_COUNT = '{"topic":"%s","target":"id-there","as_of_ms":7}'


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """A topic of twenty records; its directory has twenty more by now."""
    store, directory = open_store(tmp_path / "home"), tmp_path / "logs"
    write_log(directory, "users-0", [some_batch(0), some_batch(10)])
    run_import(store, directory, new_id())
    write_log(directory, "users-0", [some_batch(0), some_batch(10), some_batch(20), some_batch(30)])
    return store


def restored(store: LogStore) -> RestoreResult:
    settings = ClientSettings.load({"bootstrap.servers": "nowhere:1"}, {})
    return Restore(store, settings, wall_clock_ms, silent, new_id).to_broker("users", "people")


def truncate(store: LogStore, offset: int) -> None:
    """As somebody does who was told to let the restore start over."""
    if Readers(store, new_id).list(["users"], now_ms=wall_clock_ms()):
        Readers(store, new_id).remove("users", reader_name_of(TARGET))
    Truncation(NAME, offset, new_id(), new_id).commit(store.committer, store.files)


def read_on(store: LogStore, tmp_path: Path) -> None:
    assert not run_import(store, tmp_path / "logs", new_id()).failed


def test_what_is_sent_twice_or_never_is_refused(store: LogStore, tmp_path: Path, broker: Broker) -> None:
    restored(store)
    truncate(store, 15)
    read_on(store, tmp_path)
    for _ in range(2):
        with pytest.raises(InvalidConfig) as refused:
            restored(store)
    assert str(refused.value) == (
        "users-0 was restored up to offset 20, and was truncated to 15 since: what was read again from there on is "
        "not all in the target; restore to another topic (--topic)"
    )
    assert broker.sent == list(range(20))


def test_it_is_refused_before_anything_was_read_again_too(store: LogStore, broker: Broker) -> None:
    restored(store)
    truncate(store, 15)
    with pytest.raises(InvalidConfig, match="restored up to offset 20, and was truncated to 15 since"):
        restored(store)
    assert broker.sent == list(range(20))


def test_a_truncation_behind_the_position_changes_nothing_for_it(
    store: LogStore, tmp_path: Path, broker: Broker
) -> None:
    restored(store)
    read_on(store, tmp_path)
    truncate(store, 20)
    read_on(store, tmp_path)
    restored(store)
    assert broker.sent == list(range(40))
    assert restored(store).records == 0


def test_a_restore_that_begins_after_a_truncation_goes_on(store: LogStore, tmp_path: Path, broker: Broker) -> None:
    truncate(store, 15)
    read_on(store, tmp_path)
    restored(store)
    assert restored(store).records == 0
    assert broker.sent == list(range(40))


def test_a_position_of_a_keptlog_that_counted_none_is_good_until_the_next(
    store: LogStore, tmp_path: Path, broker: Broker
) -> None:
    told = WITHOUT_COUNT % store.describe_topic("users").id
    broker.committed = Committed("people", 0, 10, told)
    restored(store)
    assert broker.sent == list(range(10, 20))
    broker.committed = Committed("people", 0, 20, told)
    truncate(store, 15)
    read_on(store, tmp_path)
    with pytest.raises(InvalidConfig, match="was truncated to 15 since"):
        restored(store)


def test_a_copy_from_before_a_truncation_is_an_older_one(store: LogStore, broker: Broker) -> None:
    pair = Pair("users", store.describe_topic("users").id, TARGET)
    broker.committed = pair.committed(0, Position(10, wall_clock_ms(), 1))
    with pytest.raises(InvalidConfig, match="an older copy of it; restore to another topic"):
        restored(store)
