"""A record at a real broker that no table can hold is got rid of as its message says, and nothing else is lost here."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from keptlog.log.record import NewRecord
from keptlog.storage.schema import LARGEST_STORABLE_MS
from tests.broker.broker import DEADLINE_SECONDS, Broker
from tests.broker.ingesting import Ingesting


@pytest.fixture
def there(broker: Broker, tmp_path: Path) -> Ingesting:
    return Ingesting(broker, tmp_path)


def delete_before(there: Ingesting, offset: int) -> None:
    admin, place = there.broker.admin, TopicPartition(there.topic, 0, offset)
    admin.delete_records([place])[place].result(DEADLINE_SECONDS)


def alter(there: Ingesting, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, there.topic, incremental_configs=entries)
    admin = there.broker.admin
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_SECONDS)


def test_in_a_compacted_topic_it_goes_once_deletion_is_allowed_for_a_while(there: Ingesting) -> None:
    there.create(config={"cleanup.policy": "compact", "message.timestamp.after.max.ms": str(2**63 - 1)})
    there.produce(b"before")
    there.broker.produce(there.topic, [NewRecord(b"key", b"bad", LARGEST_STORABLE_MS + 1, 0)])
    there.produce(b"after")
    [why] = map(str, there.bring().failed.values())
    assert "delete all records before offset 2 there" in why
    with pytest.raises(KafkaException) as refused:
        delete_before(there, 2)
    assert refused.value.args[0].code() == KafkaError.POLICY_VIOLATION
    alter(there, cleanup_policy="compact,delete", retention_ms="-1", retention_bytes="-1")
    delete_before(there, 2)
    alter(there, cleanup_policy="compact")
    assert not there.bring(skip_lost=True).failed
    assert there.values() == [b"before", b"after"]
