"""What waits at a source for an open transaction is in its observation, and news once it changes; a run notes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.dagster.assets.ingest_report import lag_told, source_observation
from keptlog.ingest import kafka_brokers
from keptlog.ingest.lag_news import ShownLag
from keptlog.ingest.log_lag import LogLag
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import SourceLog
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.signs import Silence
from keptlog.sources.kafka_broker.topics import BrokerTopics, look_at_topics
from tests.orchestration.ingesting import ingest_world
from tests.orchestration.shipped import KEYS

NAME = TopicPartition("users", 0)
WAITS = LogLag(None, 5, SourceLog(0, 0, 5, high_watermark=1006), 0)


def test_an_observation_says_what_waits_beside_a_lag_of_none() -> None:
    numbers = {name: each.value for name, each in source_observation(KEYS, NAME, WAITS, {}).metadata.items()}
    assert numbers == {
        "log": "users-0",
        "position": 5,
        "log_start_offset": 0,
        "last_stable_offset": 5,
        "high_watermark": 1006,
        "behind_open_transaction": 1001,
        "consumer_lag": 0,
    }


def test_a_new_process_takes_it_from_the_observation_that_was_told() -> None:
    assert lag_told(source_observation(KEYS, NAME, WAITS, {})) == ShownLag.of(WAITS)
    assert ShownLag.of(WAITS) != ShownLag.of(WAITS._replace(log=SourceLog(0, 0, 5)))


def test_a_run_notes_it_of_what_it_was_asked_for_and_warns_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a producer writes in transactions all the time one is mostly open; a mock has none."""

    def look(settings: ClientSettings, topics: Sequence[str], seconds: float, silence: Silence) -> BrokerTopics:
        found = look_at_topics(settings, topics, seconds, silence)
        busy = {
            name: replace(there, logs=tuple(replace(log, high_watermark=log.end_offset + 5) for log in there.logs))
            for name, there in found.topics.items()
        }
        return replace(found, topics=busy)

    monkeypatch.setattr(kafka_brokers, "look_at_topics", look)
    with ingest_world(tmp_path / "home") as here:
        here.produce("users", ("a", "1"))
        here.knows("users", 0, 0, 0, 0)
        told = here.world.told(here.ingest(topic_partitions=["users-0"]))
    waiting = [(level, text) for level, text in told if "transaction" in text]
    assert waiting == [
        ("INFO", "a transaction is open in users-0: 5 offsets there can't be read before it ends"),
    ]
