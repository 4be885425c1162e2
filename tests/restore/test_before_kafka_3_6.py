"""A broker before Kafka 3.6 has one setting for how far off a timestamp may be, and refuses topics with later names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource
from confluent_kafka.cimpl import NewTopic

from keptlog.kafka_client.settings import ClientSettings
from keptlog.sinks.kafka_broker import target
from keptlog.sinks.kafka_broker.target import Targets

LIMITS = {"message.timestamp.before.max.ms": "9", "message.timestamp.after.max.ms": "7"}
DIFFERENCE = {"message.timestamp.difference.max.ms": "5"}
KEPT = {"cleanup.policy": "compact", "keptlog.x": "1"}
MADE = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


@dataclass
class Broker:
    """Stands in for a cluster's controller, with the defaults of a version; the other broker is away."""

    defaults: Mapping[str, str]
    created: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def list_topics(self, timeout: float) -> object:
        assert timeout
        return SimpleNamespace(brokers={1: None, 2: None}, controller_id=2, cluster_id="one")

    def describe_configs(self, resources: Sequence[ConfigResource], request_timeout: float) -> dict[object, object]:
        assert request_timeout
        told = {f"log.{name}": SimpleNamespace(name=f"log.{name}", value=v) for name, v in self.defaults.items()}
        return {each: done(told) if each.name == "2" else away() for each in resources}

    def create_topics(self, topics: Sequence[NewTopic], operation_timeout: float) -> dict[str, object]:
        assert operation_timeout
        self.created |= {each.topic: each.config or {} for each in topics}
        return {each.topic: done(None) for each in topics}


def away() -> Future[object]:
    future: Future[object] = Future()
    future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    return future


def done(result: object) -> Future[object]:
    future: Future[object] = Future()
    future.set_result(result)
    return future


@pytest.mark.parametrize(
    ("defaults", "made"),
    [
        (DIFFERENCE, MADE),
        (DIFFERENCE | LIMITS, MADE | LIMITS),
        (LIMITS, MADE | LIMITS),
        ({}, MADE | LIMITS),
    ],
    ids=["2.x to 3.5", "3.6 to 3.9", "4", "not shown"],
)
def test_a_topic_is_created_with_the_settings_that_its_broker_knows(
    monkeypatch: pytest.MonkeyPatch, defaults: dict[str, str], made: dict[str, str]
) -> None:
    broker = Broker(defaults)
    monkeypatch.setattr(target, "AdminClient", lambda *_: broker)
    targets = Targets(ClientSettings.load({"bootstrap.servers": "nowhere:1"}, {}))
    planned = targets.as_created("users", 1, KEPT | LIMITS)
    targets.create("users", 1, KEPT | LIMITS)
    assert broker.created == {"users": made}
    assert planned.config == defaults | made
