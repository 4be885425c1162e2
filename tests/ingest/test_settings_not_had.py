"""Settings at a broker that can't be had cost the topics that are new here, which need them, and no other."""

from __future__ import annotations

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import SourceIdentity, StoredSource
from tests.mock_broker import mock_broker


def test_an_outage_while_settings_are_asked_for_fails_new_topics_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    outage = StorageUnavailable("no broker answers")

    def away(*_: object) -> object:
        raise outage

    monkeypatch.setattr("keptlog.ingest.kafka_brokers.topic_settings", away)
    with mock_broker() as broker:
        broker.produce("here", ("a", "1"))
        broker.produce("new", ("a", "1"))
        here = StoredSource(SourceIdentity("here", bootstrap=broker.bootstrap), (0,))
        source = KafkaBrokers(
            ClientSettings.load({}, {}), {"here": "here", "new": "new"}, broker.bootstrap, with_broker_config=True
        )
        found = source.survey({"here": here, "new": None})
    assert [each.topic for each in found.topics] == ["here"]
    assert found.failed == {"new": outage}
