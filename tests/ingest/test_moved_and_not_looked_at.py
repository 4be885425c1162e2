"""A topic whose cluster may have moved, and that can't be looked at there now, fails; it is not told as another's.

Where the user may not describe it there it may be: so brokers answer of names that they don't have, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.ingest import kafka_brokers
from keptlog.ingest.kafka_brokers import KafkaBrokers, topics_from_brokers
from keptlog.ingest.plans import IngestPlans
from keptlog.ingest.result import IngestResult
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan, SourceIdentity
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.sources.kafka_broker.signs import Silence
from keptlog.sources.kafka_broker.topics import BrokerTopics, look_at_topics
from keptlog.table.store import LogStore
from tests.ingest.test_topics_of_several_clusters import OLD, comes_from, ingest_of, ingested_from
from tests.mock_broker import PARTITIONS, MockBroker, forbid_to_describe, mock_broker

ELSEWHERE = "old:9092"


def moved(store: LogStore, broker: MockBroker, *topics: str) -> None:
    """Topics with a record each there, which were read at another address before."""
    for topic in topics:
        for partition in range(PARTITIONS):
            broker.produce(topic, ("ada", "1"), partition=partition)
        comes_from(store, topic, SourceIdentity(topic, "id", ELSEWHERE))


def lose_leaders(broker: MockBroker, topic: str) -> None:
    for partition in range(PARTITIONS):
        broker.lose_leader(topic, partition)


def with_ids(monkeypatch: pytest.MonkeyPatch, *answers: str | KeptlogError | None) -> list[int]:
    """Let mock brokers tell this id of each topic, look by look, and the last one from then on; gives how many came.

    With an error in the place of an id they give no answer.
    """
    looks: list[int] = []

    def look(settings: ClientSettings, topics: Sequence[str], seconds: float, silence: Silence) -> BrokerTopics:
        looks.append(len(looks))
        return told(settings, topics, seconds, silence)

    def told(settings: ClientSettings, topics: Sequence[str], seconds: float, silence: Silence) -> BrokerTopics:
        topic_id = answers[min(len(looks), len(answers)) - 1]
        if isinstance(topic_id, KeptlogError):
            raise topic_id
        found = look_at_topics(settings, topics, seconds, silence)
        ids = {name: replace(at, source=replace(at.source, topic_id=topic_id)) for name, at in found.topics.items()}
        return replace(found, topics=ids)

    monkeypatch.setattr(kafka_brokers, "look_at_topics", look)
    monkeypatch.setattr(kafka_brokers, "look_at_ids", told)
    return looks


def kinds(errors: Mapping[str, KeptlogError]) -> dict[str, type[KeptlogError]]:
    return {name: type(error) for name, error in errors.items()}


def test_one_that_nobody_leads_fails_and_the_others_come_in(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with_ids(monkeypatch, "id")
    with mock_broker() as broker:
        moved(store, broker, "t", "u")
        lose_leaders(broker, "t")
        result = ingested_from(store, broker.bootstrap)
    assert (kinds(result.failed), result.warnings) == ({"t": StorageUnavailable}, ())
    assert {each.topic_partition.topic for each in result.committed} == {"u"}


def test_where_it_is_the_only_one_that_is_no_wrong_setting(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with_ids(monkeypatch, "id")
    with mock_broker() as broker:
        moved(store, broker, "t")
        lose_leaders(broker, "t")
        result = ingested_from(store, broker.bootstrap)
    assert (kinds(result.failed), result.warnings) == ({"t": StorageUnavailable}, ())


def test_one_that_may_not_be_described_there_is_left_out_for_it_may_be_in_another_cluster(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_ids(monkeypatch, "id")
    with mock_broker() as broker:
        moved(store, broker, "t", "u")
        comes_from(store, "gone", SourceIdentity("gone", "id", ELSEWHERE))
        forbid_to_describe(monkeypatch, broker.producer, "t")
        result = ingested_from(store, broker.bootstrap)
    assert not result.failed
    at = broker.bootstrap
    begin, then = (
        f"left out: last at {ELSEWHERE}, and nothing shows that {at} has the same",
        f"What still is at {ELSEWHERE}",
    )
    rest = f"{then} is read there without --bootstrap; what {at} has now"
    gone, hidden = result.warnings
    assert gone.startswith(f"gone {begin}. {rest} is to be named ")
    assert hidden.startswith(
        f"t {begin}, as the user may not describe it there. {rest}, once DESCRIBE is granted there, is to be named "
    )
    assert {each.topic_partition.topic for each in result.committed} == {"u"}


def test_one_that_is_named_and_may_not_be_described_there_fails_and_says_where_it_was(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_ids(monkeypatch, "id")
    with mock_broker() as broker:
        moved(store, broker, "t", "u")
        forbid_to_describe(monkeypatch, broker.producer, "t")
        result = ingested_from(store, broker.bootstrap, {"t": "t", "u": "u"})
    assert (kinds(result.failed), result.warnings) == ({"t": InvalidConfig}, ())
    why = str(result.failed["t"])
    assert why.startswith("topic t: it can't be described, which takes DESCRIBE: ")
    assert why.endswith(f"; it was last at {ELSEWHERE}: if it still is there, leave out --bootstrap")
    assert {each.topic_partition.topic for each in result.committed} == {"u"}


def test_one_that_was_there_and_may_not_be_described_any_more_fails(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mock_broker() as broker:
        broker.produce("t", ("ada", "1"))
        comes_from(store, "t", SourceIdentity("t", "id", broker.bootstrap))
        forbid_to_describe(monkeypatch, broker.producer, "t")
        result = ingested_from(store, broker.bootstrap)
    assert (kinds(result.failed), result.warnings) == ({"t": InvalidConfig}, ())
    assert "it was last at" not in str(result.failed["t"])


def test_one_whose_id_is_not_told_now_fails(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with_ids(monkeypatch, None)
    with mock_broker() as broker:
        moved(store, broker, "t")
        result = ingested_from(store, broker.bootstrap)
    assert kinds(result.failed) == {"t": StorageUnavailable}
    assert "do not say its id now" in str(result.failed["t"])


def test_one_without_an_id_here_is_left_out_however_it_is_there(store: LogStore) -> None:
    with mock_broker() as broker:
        moved(store, broker, "u")
        broker.produce("t", ("ada", "1"))
        comes_from(store, "t", SourceIdentity("t", None, ELSEWHERE))
        lose_leaders(broker, "t")
        result = ingested_from(store, broker.bootstrap)
    assert result.failed.keys() == {"u"}
    [warning] = result.warnings
    assert warning.startswith(f"t left out: last at {ELSEWHERE}")


def reconciled(store: LogStore, broker: MockBroker, source: KafkaBrokers | None = None) -> IngestResult:
    settings = ClientSettings.load({}, {}, where="nowhere")
    source = source or KafkaBrokers(settings, topics_from_brokers(store), broker.bootstrap, wait_seconds=3.0)
    plans: IngestPlans = ingest_of(store).plan(source, reconcile=True)
    assert not plans.failed
    return ingest_of(store).carry_out(plans, f"run-{uuid4()}")


def test_one_that_nobody_leads_after_its_comparison_fails(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with_ids(monkeypatch, "id")
    with mock_broker() as broker:
        moved(store, broker, "t", "u")

        class LosesLeaders(KafkaBrokers):
            def cut(self, plans: Sequence[IngestPlan], cores: int) -> list[tuple[BrokerPart, ...]]:
                lose_leaders(broker, "t")
                return super().cut(plans, cores)

        settings = ClientSettings.load({}, {}, where="nowhere")
        source = LosesLeaders(settings, topics_from_brokers(store), broker.bootstrap, wait_seconds=3.0)
        result = reconciled(store, broker, source)
    assert result.failed.keys() == {"t"}
    assert {each.topic_partition.topic for each in result.committed} == {"u"}


def test_one_that_is_another_topic_after_its_comparison_fails(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = with_ids(monkeypatch, "id", "another")
    with mock_broker() as broker:
        moved(store, broker, "t", "u")
        result = reconciled(store, broker)
    assert len(looks) == 2
    assert kinds(result.failed) == {"t": InvalidConfig, "u": InvalidConfig}
    assert not result.committed


def test_brokers_that_fall_silent_after_the_comparison_are_told_as_that_of_each_topic(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_ids(monkeypatch, "id", StorageUnavailable("no broker answers"))
    with mock_broker() as broker:
        moved(store, broker, "t")
        broker.produce("u", ("ada", "1"))
        comes_from(store, "u", SourceIdentity("u", "id", broker.bootstrap))
        result = reconciled(store, broker)
    assert {name: str(error) for name, error in result.failed.items()} == dict.fromkeys("tu", "no broker answers")


def test_what_was_elsewhere_is_not_told_as_looked_for_where_the_brokers_give_no_answer(store: LogStore) -> None:
    comes_from(store, "t", SourceIdentity("t", "id", ELSEWHERE))
    comes_from(store, "u", SourceIdentity("u", "id", OLD))
    settings = ClientSettings.load({}, {}, where="nowhere")
    plans = ingest_of(store).plan(KafkaBrokers(settings, topics_from_brokers(store), OLD, wait_seconds=0.3))
    assert kinds(plans.failed) == {"u": StorageUnavailable}
    [warning] = plans.warnings
    assert warning.startswith(f"t left out: last at {ELSEWHERE}, and {OLD} can't be asked for them now. What still is")


def test_a_topic_here_that_cannot_be_read_is_told_though_all_others_were_elsewhere(store: LogStore) -> None:
    with mock_broker() as broker:
        comes_from(store, "orders", SourceIdentity("orders", bootstrap=ELSEWHERE))
        comes_from(store, "users", SourceIdentity("users", bootstrap=broker.bootstrap))
        broker.produce("users", ("k", "v"))
        Path(store.metadata_locations()["users"].removeprefix("file://")).write_bytes(b"damaged")
        result = ingested_from(store, broker.bootstrap)
    assert kinds(result.failed) == {"users": LogCorrupt}
    assert [warning.split(":")[0] for warning in result.warnings] == ["orders left out"]


def test_it_is_told_too_where_the_brokers_give_no_answer(store: LogStore) -> None:
    comes_from(store, "orders", SourceIdentity("orders", bootstrap=ELSEWHERE))
    comes_from(store, "users", SourceIdentity("users", bootstrap=OLD))
    Path(store.metadata_locations()["users"].removeprefix("file://")).write_bytes(b"damaged")
    settings = ClientSettings.load({}, {}, where="nowhere")
    source = KafkaBrokers(settings, topics_from_brokers(store), OLD, wait_seconds=0.3)
    plans = ingest_of(store).plan(source)
    assert kinds(plans.failed) == {"users": LogCorrupt}
    assert len(plans.warnings) == 2
