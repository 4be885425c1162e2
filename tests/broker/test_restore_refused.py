"""What a target does not take is named, before anything is sent wherever that can be known."""

from __future__ import annotations

import random

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from tests.broker.broker import DEADLINE_SECONDS
from tests.broker.restoring import restore_of, wall_clock_ms
from tests.broker.twins import COMPACTED, KEPT, Twins


def test_a_record_without_a_key_is_named_if_the_topic_there_is_compacted(twins: Twins) -> None:
    twins.create(KEPT, there=COMPACTED)
    twins.append(NewRecord(b"a", b"1", wall_clock_ms(), 1), NewRecord(None, b"2", wall_clock_ms(), 1))
    with pytest.raises(InvalidRecord, match=r"-1 can't be restored beyond offset 1: it has no key"):
        twins.restore()


@pytest.mark.parametrize("client", [{}, {"compression.type": "gzip"}])
def test_a_record_that_is_too_large_is_named_and_waited_for(twins: Twins, client: dict[str, str]) -> None:
    """What is compressed is too large only once it was sent, and then later calls fail before the broker says why."""
    twins.create(there=KEPT | {"max.message.bytes": "10000"})
    setting = ConfigEntry("max.message.bytes", "10000", incremental_operation=AlterConfigOpType.SET)
    chance = random.Random(1)
    values = [b"x", b"x", b"x", chance.randbytes(20_000), *[b"x" * 10] * 5000]
    twins.append(*(NewRecord(b"%d" % index, value, wall_clock_ms(), 0) for index, value in enumerate(values)))
    with pytest.raises(InvalidRecord, match=r"-0 can't be restored beyond offset 3: it is larger .*=10000"):
        twins.restore(client=client)
    assert twins.there()[0] == []
    setting.value = "100000"
    resource = ConfigResource(ConfigResource.Type.TOPIC, twins.topic, incremental_configs=[setting])
    admin = AdminClient({"bootstrap.servers": twins.broker.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_SECONDS)
    twins.restore(client=client)
    assert twins.there() == twins.here()


def test_a_record_that_no_segment_holds_is_named(twins: Twins) -> None:
    """The broker has one word for it and for a batch above max.message.bytes, which could be raised in vain."""
    large = {"max.message.bytes": "10000000"}
    twins.create(COMPACTED | large, there=KEPT | large | {"segment.bytes": str(2**20)})
    twins.append(NewRecord(b"k", b"x" * 2**21, wall_clock_ms(), 0))
    with pytest.raises(InvalidRecord, match=r"-0 can't be restored beyond offset 0: it is larger than segment\.bytes="):
        twins.restore()


def test_a_topic_that_would_refuse_a_record_is_not_created(twins: Twins) -> None:
    """The settings are those that it would have: of the topic here, and of the broker where that has none."""
    now_ms = wall_clock_ms()
    refused = {
        "it has no key": (COMPACTED, NewRecord(None, b"v", now_ms, 0)),
        "max.message.bytes=500 ": (KEPT | {"max.message.bytes": "500"}, NewRecord(b"k", bytes(480), now_ms, 0)),
        "max.message.bytes=1048588 ": (KEPT, NewRecord(b"k", bytes(1_048_570), now_ms, 0)),
    }
    for number, (why, (settings, record)) in enumerate(refused.items()):
        name = f"{twins.topic}-{number}"
        twins.store.create_topic(name, 1, KEPT)
        twins.store.append(name, [record], new_id(), now_ms)
        twins.store.alter_topic(name, settings)
        with pytest.raises(InvalidRecord, match=f"{name}-0 can't be restored beyond offset 0: .*{why}"):
            restore_of(twins.store, twins.broker.bootstrap).to_broker(name, name)
        assert name not in twins.broker.admin.list_topics(timeout=DEADLINE_SECONDS).topics


def test_whoever_may_not_write_in_transactions_leaves_no_empty_topic_there(twins: Twins) -> None:
    """The broker refuses the client's transactions, here for their length, as one with ACLs does for their id."""
    twins.store.create_topic(twins.topic, 1, KEPT)
    twins.append(NewRecord(b"a", b"1", wall_clock_ms(), 0))
    with pytest.raises(InvalidConfig, match=r"can't be restored to .*a Kafka client setting is wrong"):
        twins.restore(client={"transaction.timeout.ms": str(2**31 - 1)})
    assert twins.topic not in twins.broker.admin.list_topics(timeout=DEADLINE_SECONDS).topics
    assert twins.restore().is_created
    assert [record.value for record in twins.broker.records(twins.topic, 1)[0]] == [b"1"]


def test_a_name_that_collides_with_another_topics_there_is_refused_for_good(twins: Twins) -> None:
    """Kafka's metrics take a period and an underscore for the same."""
    for name in (f"{twins.topic}.x", f"{twins.topic}_x"):
        twins.store.create_topic(name, 1, KEPT)
    restore = restore_of(twins.store, twins.broker.bootstrap)
    restore.to_broker(f"{twins.topic}.x", f"{twins.topic}.x")
    with pytest.raises(InvalidConfig, match=r"can't be created: .* refuses it: .*collides with existing topic") as why:
        restore.to_broker(f"{twins.topic}_x", f"{twins.topic}_x")
    assert "try again" not in str(why.value)


def test_a_timestamp_that_the_topic_refuses_is_named(twins: Twins) -> None:
    twins.create({"message.timestamp.after.max.ms": str(2**62)})
    twins.append(NewRecord(b"a", b"1", wall_clock_ms() + 10**9, 0))
    with pytest.raises(InvalidRecord, match=r"beyond offset 0: its timestamp is outside of message\.timestamp"):
        twins.restore()


def test_the_look_before_anything_is_sent_tells_how_far_it_is(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keptlog.passes.restore._LOOKED_AT_EVERY", 4)
    twins.create(KEPT)
    for number in range(6):
        twins.append(NewRecord(b"%d" % number, b"v", wall_clock_ms(), number % 2))
    lines: list[str] = []
    restore_of(twins.store, twins.broker.bootstrap, lines.append).to_broker(twins.topic, twins.topic)
    assert lines[0] == f"looked at 4 records of at most 6 (67%), whether {twins.topic} takes them; nothing is sent yet"
