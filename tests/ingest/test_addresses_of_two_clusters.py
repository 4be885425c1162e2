"""A bootstrap list that names brokers of two clusters is refused: each client would take whichever answers first.

So may a list be that was right once: a broker is gone, and another cluster has taken its port.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import permutations
from uuid import uuid4

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.ingest.lag import LagScanner
from keptlog.ingest.result import IngestResult
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.directories import records_of
from tests.mock_broker import BROKER_ID, PARTITIONS, MockBroker, delay_answers, mock_broker

Pair = tuple[MockBroker, MockBroker]
SETTINGS = ClientSettings.load({}, {}, where="nowhere")


@pytest.fixture
def brokers() -> Iterator[Pair]:
    """Of two clusters, each with a topic of the same name."""
    with mock_broker() as own, mock_broker() as foreign:
        own.produce("users", *[("ada", f"own{n}") for n in range(5)])
        foreign.produce("users", *[("ada", f"foreign{n}") for n in range(9)])
        yield own, foreign


def ingested_from(store: LogStore, bootstrap: str | None) -> IngestResult:
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    return ingest.carry_out(ingest.plan(KafkaBrokers(SETTINGS, {"users": "users"}, bootstrap)), f"run-{uuid4()}")


def test_nothing_is_read_from_it_whichever_answers_first(store: LogStore, brokers: Pair) -> None:
    for first, second in list(permutations(brokers)) * 5:
        result = ingested_from(store, f"{first.bootstrap},{second.bootstrap}")
        [why] = result.failed.values()
        assert isinstance(why, InvalidConfig)
        assert f"{first.bootstrap},{second.bootstrap} has brokers of several clusters: " in str(why)
        for each in brokers:
            assert f"is of cluster {each.producer.list_topics(timeout=10).cluster_id}" in str(why)
    assert "users" not in store.topics()


def test_a_remembered_list_is_mended_by_naming_the_right_ones_even_if_nothing_is_to_be_read(
    store: LogStore, brokers: Pair
) -> None:
    own, foreign = brokers
    assert not ingested_from(store, own.bootstrap).failed
    store.ingest("users", [], SourceIdentity("users", None, f"{foreign.bootstrap},{own.bootstrap}"), 4, "port-taken")

    [why] = LagScanner(store).scan(SETTINGS, wall_clock_ms()).unanswered
    assert "has brokers of several clusters" in why
    assert ingested_from(store, None).failed
    assert not ingested_from(store, own.bootstrap).failed
    assert not LagScanner(store).scan(SETTINGS, wall_clock_ms()).unanswered
    assert [record.value for record in records_of(store, "users")] == [b"own%d" % n for n in range(5)]


def test_one_that_did_not_say_in_time_which_cluster_it_is_of_is_not_read_from_a_moment_later(
    store: LogStore, brokers: Pair
) -> None:
    own, foreign = brokers
    delay_answers(foreign.producer, BROKER_ID, 2_500)  # of each of the few answers that a client needs
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    topics = {f"users{n}": "users" for n in range(8)}
    plan = ingest.plan(KafkaBrokers(SETTINGS, topics, f"{own.bootstrap},{foreign.bootstrap}"))
    delay_answers(foreign.producer, BROKER_ID, 0)
    time.sleep(3)  # an answer that was late already comes first

    assert plan.topics
    ingest.carry_out(plan, f"run-{uuid4()}")
    read = {record.value for topic in store.topics() for record in records_of(store, topic)}
    assert read <= {b"own%d" % n for n in range(5)}
    for topic in store.topics():
        if source := store.source_of(topic).source:  # none where the other cluster was asked whether it still is there
            assert source.bootstrap == f"{own.bootstrap},{foreign.bootstrap}", "as it was named"


def test_one_that_did_not_say_in_time_which_cluster_it_is_of_is_not_asked_what_was_cut_off_a_moment_later(
    brokers: Pair,
) -> None:
    own, foreign = brokers
    own.produce("users", *[("ada", f"more{n}") for n in range(10)])  # below their end the log of the other one ends
    delay_answers(foreign.producer, BROKER_ID, 2_500)
    topics = {f"users{n}": "users" for n in range(8)}  # each is asked for by a client of its own
    source = KafkaBrokers(SETTINGS, topics, f"{own.bootstrap},{foreign.bootstrap}")
    found = source.survey(dict.fromkeys(topics)).topics
    delay_answers(foreign.producer, BROKER_ID, 0)
    time.sleep(3)

    unsure = (OffsetRange(0, 15, 15, 15, 0, 1),)
    plans = [IngestPlan(each.topic, each.there.source, PARTITIONS, (), unsure=unsure) for each in found]
    assert source.ends_of_epochs(plans) == ({TopicPartition(name, 0): 15 for name in topics}, {})
