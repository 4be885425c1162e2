"""Before records of a broker land, it must be known that its topic still is the one that was surveyed."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig, KeptlogError, StalePlan, StorageUnavailable, UnknownTopic
from keptlog.ingest import kafka_brokers
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan, SourceIdentity, SourceLog, SourceTopic, StoredSource
from keptlog.sources.kafka_broker.topics import BrokerTopics

SURVEYED = SourceIdentity("t", "id-1", "nowhere:1")


def confirm(monkeypatch: pytest.MonkeyPatch, found: BrokerTopics, surveyed: SourceIdentity = SURVEYED) -> None:
    """Ask whether what was read may land, while the broker says this."""
    monkeypatch.setattr(kafka_brokers, "look_at_ids", lambda *_: found)
    settings = ClientSettings.load({"bootstrap.servers": "nowhere:1"}, {})
    KafkaBrokers(settings, {"t": "t"}).confirm(IngestPlan("t", surveyed, 1, ()))


def is_there(topic_id: str | None) -> BrokerTopics:
    return BrokerTopics({"t": SourceTopic(SourceIdentity("t", topic_id), ())}, {})


def is_missing(error: KeptlogError) -> BrokerTopics:
    return BrokerTopics({}, {"t": error})


def test_the_same_topic_may_land(monkeypatch: pytest.MonkeyPatch) -> None:
    confirm(monkeypatch, is_there("id-1"))


def test_brokers_without_ids_of_topics_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    confirm(monkeypatch, is_there(None), SourceIdentity("t", None, "nowhere:1"))


def test_another_topic_of_the_name_must_not_land(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StalePlan, match="was deleted and created again while it was read"):
        confirm(monkeypatch, is_there("id-2"))


def test_one_whose_id_nobody_tells_any_more_must_not_land(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageUnavailable, match="can't be told whether topic t still is the one that was read"):
        confirm(monkeypatch, is_there(None))


@pytest.mark.parametrize("error", [StorageUnavailable("no leader"), InvalidConfig("no permission")])
def test_one_that_could_not_be_looked_at_must_not_land(monkeypatch: pytest.MonkeyPatch, error: KeptlogError) -> None:
    with pytest.raises(type(error), match=str(error)):
        confirm(monkeypatch, is_missing(error))


def test_of_one_that_is_gone_what_was_read_lands(monkeypatch: pytest.MonkeyPatch) -> None:
    confirm(monkeypatch, is_missing(UnknownTopic("there is no topic t")))


@pytest.mark.parametrize(
    ("stored_id", "told_id", "is_read"), [("id-1", None, False), ("id-1", "id-1", True), (None, None, True)]
)
def test_one_whose_id_nobody_tells_is_not_read_on_as_the_one_that_was(
    monkeypatch: pytest.MonkeyPatch, stored_id: str | None, told_id: str | None, is_read: bool
) -> None:
    """Brokers that are without a controller for a moment tell no id, also of a topic that was created again."""
    there = BrokerTopics({"t": SourceTopic(SourceIdentity("t", told_id), (SourceLog(0, 0, 9),))}, {})
    monkeypatch.setattr(kafka_brokers, "look_at_topics", lambda *_: there)
    source = KafkaBrokers(ClientSettings.load({"bootstrap.servers": "nowhere:1"}, {}), {"t": "t"})
    survey = source.survey({"t": StoredSource(SourceIdentity("t", stored_id), (5,))})
    assert [each.topic for each in survey.topics] == (["t"] if is_read else [])
    told = [(type(error), "can't be told whether topic t still is" in str(error)) for error in survey.failed.values()]
    assert told == ([] if is_read else [(StorageUnavailable, True)])
