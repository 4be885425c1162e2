"""A topic whose source was declared is ingested by name alone, for the first time too: nobody has to say it again."""

from __future__ import annotations

from pathlib import Path

from keptlog.home import new_id, wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers, topics_from_brokers
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.passes.apply import Applier
from keptlog.topics_file.reading import read_topics
from tests.in_process import in_process_engine
from tests.logs import open_store
from tests.mock_broker import PARTITIONS, mock_broker

NOW_MS = 1_800_000_000_000


def test_records_come_from_a_declared_source_into_as_many_partitions_as_it_has(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    settings = ClientSettings.load({}, {}, where="nowhere")
    applier = Applier(store, new_id)
    with mock_broker() as broker:
        declared = f"topics: {{users: {{source: {{topic: there, bootstrap: '{broker.bootstrap}'}}}}}}".encode()
        applier.carry_out(applier.plan(read_topics(declared, "topics.yaml")), NOW_MS)
        broker.produce("there", ("a", "1"), ("b", "1"), partition=2)
        [lag] = LagScanner(store).scan(settings, NOW_MS).topics
        assert (lag.topic, lag.lag, len(lag.names)) == ("users", 2, PARTITIONS)
        assert topics_from_brokers(store) == {"users": "there"}
        ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
        result = ingest.carry_out(ingest.plan(KafkaBrokers(settings, topics_from_brokers(store))), "run")
        assert (result.failed, result.created) == ({}, ())
        assert not applier.plan(read_topics(declared, "topics.yaml")).has_differences
    assert [(partition, record.offset, record.key) for partition, record in store.read("users")] == [
        (2, 0, b"a"),
        (2, 1, b"b"),
    ]
    assert store.describe_topic("users").partitions == PARTITIONS
