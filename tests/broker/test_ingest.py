"""Topics of a real broker come in whole, once and unchanged, whatever happens to them meanwhile."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewPartitions

from keptlog.errors import InvalidConfig, StalePlan, UnknownTopic
from keptlog.ingest import kafka_brokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import TimestampType
from keptlog.log.topic_partition import TopicPartition as Name
from keptlog.sources.kafka_broker import ranges
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.sources.kafka_broker.signs import Silence
from keptlog.sources.kafka_broker.topics import BrokerTopics, look_at_topics
from keptlog.sources.kafka_log.directory import log_directories
from tests.broker.broker import DEADLINE_SECONDS, Broker
from tests.broker.generated import Generated
from tests.broker.ingesting import Ingesting

RECORDS = 3000


@pytest.fixture
def there(broker: Broker, tmp_path: Path) -> Ingesting:
    return Ingesting(broker, tmp_path)


def test_every_committed_record_comes_as_it_was_produced(there: Ingesting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "LEAST_OFFSETS", 300)
    there.create(partitions=3)
    generated = Generated(there.broker, there.topic, 3, random.Random(5))
    for _ in range(3):
        generated.produce(RECORDS // 3)
        there.bring_all()
    assert there.records() == generated.expected()
    assert sum(map(len, generated.expected().values())) > RECORDS / 2
    assert there.end_offsets() == list(there.broker.end_offsets(there.topic, 3).values())
    assert not any(there.plan().lag.values())


def test_an_open_transaction_holds_back_what_follows_until_it_is_decided(there: Ingesting) -> None:
    there.create()
    producer = Producer({"bootstrap.servers": there.broker.bootstrap, "transactional.id": there.topic})
    producer.init_transactions(DEADLINE_SECONDS)
    there.produce(b"before")
    producer.begin_transaction()
    producer.produce(there.topic, value=b"inside", partition=0)
    producer.flush(DEADLINE_SECONDS)
    there.produce(b"beside")
    there.bring_all()
    assert (there.values(), there.end_offsets()) == ([b"before"], [1])
    producer.commit_transaction(DEADLINE_SECONDS)
    there.bring_all()
    assert (there.values(), there.end_offsets()) == ([b"before", b"inside", b"beside"], [4])
    producer.begin_transaction()
    producer.produce(there.topic, value=b"never", partition=0)
    producer.flush(DEADLINE_SECONDS)
    producer.abort_transaction(DEADLINE_SECONDS)
    there.bring_all()
    assert (there.values(), there.end_offsets()) == ([b"before", b"inside", b"beside"], [6])


def test_gaps_that_the_brokers_cleaner_left_are_gaps_here(there: Ingesting) -> None:
    there.create(config={"cleanup.policy": "compact", "segment.bytes": str(2**20), "min.cleanable.dirty.ratio": "0.01"})
    there.produce(*(b"%06d" % number + bytes(2000) for number in range(1500)))
    [end] = there.broker.end_offsets(there.topic, 1).values()
    segments = (there.broker.folder / f"{there.topic}-0").glob("*.log")
    active = max(int(path.stem) for path in segments)
    assert 0 < active < end
    there.broker.wait_until_cleaned(there.topic, {0: active})
    there.bring_all()
    assert there.records() == there.broker.records(there.topic, 1)
    assert len(there.records()[0]) < end
    assert there.end_offsets() == [end]


def test_a_broker_that_restarts_in_the_middle_is_waited_for(there: Ingesting) -> None:
    there.create()
    there.produce(*(b"%d" % number + bytes(6000) for number in range(3000)))
    little_ahead = {"queued.max.messages.kbytes": "500", "max.partition.fetch.bytes": "100000"}
    settings = ClientSettings.load(little_ahead, {}).at(there.broker.bootstrap)
    part = BrokerPart(settings, there.topic, Name(there.topic, 0), 0, 3000)
    tables = part.read(lambda _: None)
    values = next(tables)["value"].to_pylist()
    assert len(values) < 3000
    there.broker.restart()
    values += [value for table in tables for value in table["value"].to_pylist()]
    assert values == [b"%d" % number + bytes(6000) for number in range(3000)]


def test_partitions_that_were_added_are_picked_up(there: Ingesting) -> None:
    there.create()
    there.produce(b"a")
    there.bring_all()
    admin = there.broker.admin
    admin.create_partitions([NewPartitions(there.topic, 3)])[there.topic].result(DEADLINE_SECONDS)
    producer = Producer({"bootstrap.servers": there.broker.bootstrap})
    producer.produce(there.topic, value=b"b", partition=2)
    producer.flush(DEADLINE_SECONDS)
    there.bring_all()
    assert [[each.value for each in records] for records in there.records().values()] == [[b"a"], [], [b"b"]]
    assert there.end_offsets() == [1, 0, 1]


def delete_records(there: Ingesting, before_offset: int) -> None:
    admin = there.broker.admin
    for future in admin.delete_records([TopicPartition(there.topic, 0, before_offset)]).values():
        future.result(DEADLINE_SECONDS)


def test_records_that_retention_took_first_stop_the_log_until_their_loss_is_accepted(there: Ingesting) -> None:
    there.create()
    there.produce(b"0", b"1", b"2")
    delete_records(there, 1)
    there.bring_all()
    assert [log.log_start_offset for log in there.store.logs(there.topic)] == [1]
    there.produce(b"3", b"4", b"5")
    delete_records(there, 5)
    failed = there.bring().failed
    assert "offsets 3 to 4 are no longer at its source, which begins at 5" in str(failed[f"{there.topic}-0"])
    assert there.values() == [b"1", b"2"]
    assert not there.bring(skip_lost=True).failed
    assert there.values() == [b"1", b"2", b"5"]
    there.produce(b"6")
    plans = there.plan()
    there.produce(b"7")
    delete_records(there, 8)
    [error] = there.bring(plans).failed.values()
    assert isinstance(error, StalePlan)
    assert "does not have offset 6 any more" in str(error)


def test_a_topic_that_was_deleted_and_created_again_is_another_one(there: Ingesting) -> None:
    there.create()
    there.produce(b"old")
    there.bring_all()
    admin = there.broker.admin
    admin.delete_topics([there.topic])[there.topic].result(DEADLINE_SECONDS)
    while there.topic in admin.list_topics(timeout=DEADLINE_SECONDS).topics:
        threading.Event().wait(0.05)
    plans = there.ingest.plan(there.source)
    assert isinstance(plans.failed[there.topic], UnknownTopic)
    there.create()
    there.produce(b"new", b"newer")
    [error] = there.bring().failed.values()
    assert isinstance(error, InvalidConfig)
    assert "was deleted and created again" in str(error)
    assert there.values() == [b"old"]


def test_a_topic_that_is_created_again_while_it_is_read_does_not_get_in(there: Ingesting) -> None:
    there.create()
    there.produce(b"old")
    plans = there.plan()
    admin = there.broker.admin
    admin.delete_topics([there.topic])[there.topic].result(DEADLINE_SECONDS)
    while there.topic in admin.list_topics(timeout=DEADLINE_SECONDS).topics:
        threading.Event().wait(0.05)
    there.create()
    there.produce(b"new", b"newer")
    [error] = there.bring(plans).failed.values()
    assert isinstance(error, StalePlan)
    assert "was deleted and created again while it was read" in str(error)
    assert there.records() == {0: []}


def test_a_topic_has_the_id_that_its_log_directory_notes(there: Ingesting) -> None:
    names = [f"{there.topic}-{number}" for number in range(8)]  # half of all ids have a letter that tells
    for name in names:
        there.broker.create_topic(name, 1, {})
    plans = there.ingest.plan(dataclasses.replace(there.source, topics={name: name for name in names}))
    noted = {log.topic_partition.topic: log.topic_id for log in log_directories(there.broker.folder)}
    assert {each.plan.topic: each.plan.source.topic_id for each in plans.topics} == {
        name: noted[name] for name in names
    }


def test_the_brokers_time_stays_the_brokers(there: Ingesting) -> None:
    there.create(config={"message.timestamp.type": "LogAppendTime"})
    there.produce(b"a", b"b")
    there.bring_all()
    assert there.records() == there.broker.records(there.topic, 1)
    assert {record.timestamp_type for record in there.records()[0]} == {TimestampType.LOG_APPEND_TIME}


def test_a_new_topic_has_the_settings_of_its_broker_if_that_is_wanted(there: Ingesting) -> None:
    there.create(config={"cleanup.policy": "compact,delete", "retention.ms": "1000", "compression.type": "lz4"})
    wanted = dataclasses.replace(there.source, config={"retention.ms": "2000"}, with_broker_config=True)
    plans = there.ingest.plan(wanted)
    assert set(plans.topics[0].left_out) == {"compression.type", "min.insync.replicas"}
    assert there.bring(plans).created == (there.topic,)
    made = there.store.describe_topic(there.topic)
    of_the_broker = {"compaction.strategy": "offset", "delete.retention.ms": "86400000", "retention.bytes": "-1"}
    assert made.raw_config == {"cleanup.policy": "compact,delete", "retention.ms": "2000", **of_the_broker}
    assert made.partitions == 1


def test_of_two_ingests_at_once_one_lands_and_the_other_says_so(there: Ingesting) -> None:
    there.create()
    there.produce(b"a", b"b")
    one, other = there.plan(), there.plan()
    assert not there.bring(one).failed
    [error] = there.bring(other).failed.values()
    assert isinstance(error, StalePlan)
    there.bring_all()
    assert there.values() == [b"a", b"b"]


def test_a_topic_is_ingested_again_by_its_name_alone(there: Ingesting) -> None:
    there.create()
    there.produce(b"a")
    there.bring_all()
    there.produce(b"b")
    without_broker = dataclasses.replace(there.source, settings=there.source.settings.at("127.0.0.1:1"))
    plans = there.ingest.plan(without_broker)
    assert not plans.failed
    assert plans.lag == {Name(there.topic, 0): 1}
    there.bring(plans)
    assert there.values() == [b"a", b"b"]


def test_a_topic_that_goes_before_its_settings_are_asked_for_costs_no_other(
    there: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.create(config={"retention.ms": "1000"})
    gone = f"{there.topic}-gone"
    there.broker.create_topic(gone, 1, {})
    admin = there.broker.admin

    def then_deleted(settings: ClientSettings, topics: Sequence[str], wait_seconds: float, _: Silence) -> BrokerTopics:
        found = look_at_topics(settings, topics, wait_seconds)
        admin.delete_topics([gone])[gone].result(DEADLINE_SECONDS)
        return found

    both = {there.topic: there.topic, gone: gone}
    with monkeypatch.context() as patch:
        patch.setattr(kafka_brokers, "look_at_topics", then_deleted)
        plans = there.ingest.plan(dataclasses.replace(there.source, topics=both, with_broker_config=True))
    assert [(name, type(error)) for name, error in plans.failed.items()] == [(gone, UnknownTopic)]
    assert there.bring(plans).created == (there.topic,)
    assert there.store.describe_topic(there.topic).raw_config["retention.ms"] == "1000"
