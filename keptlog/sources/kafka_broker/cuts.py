"""Asks whether logs are up to a position what they were under an earlier leader, where nothing is to be read.

As in ``part``, librdkafka asks for the end of the leader epoch that a position is given with (KIP-320), before it
fetches. Whatever comes first then, a record or the end of the log, says that nothing was cut off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import cast

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Position

from keptlog.kafka_client.errors import OFFSET_OUT_OF_RANGE, PARTITION_EOF, broker_errors, no_answer
from keptlog.kafka_client.settings import ClientSettings
from keptlog.sources.kafka_broker.part import BROKER_END, is_harmless

_POLL_SECONDS = 0.05


def ends_of_epochs(
    settings: ClientSettings, topic: str, reached: Mapping[int, tuple[int, int]], wait_seconds: float
) -> dict[int, int]:
    """Up to where each of these partitions is what it was; at most the position.

    ``reached`` has the position and its leader epoch, by partition.

    Raises:
        StorageUnavailable: not each of them was answered for in time.
        InvalidConfig: a client setting, a password or a permission is wrong.
    """
    ends: dict[int, int] = {}
    polls_left = round(wait_seconds / _POLL_SECONDS)
    with broker_errors(settings, f"it can't be told whether topic {topic} was cut off") as trouble:
        consumer = Consumer(settings.for_consumer(error_cb=trouble))
        with contextlib.closing(consumer):
            consumer.assign([Position(topic, each, at, leader_epoch=epoch) for each, (at, epoch) in reached.items()])
            while ends.keys() != reached.keys():
                message = consumer.poll(_POLL_SECONDS)
                if message is None:
                    polls_left -= 1
                    if trouble.is_final or polls_left <= 0:
                        raise no_answer()
                    continue
                partition, error = cast("int", message.partition()), message.error()
                if error is not None and is_harmless(error):
                    continue
                if error is None or error.code() == PARTITION_EOF:
                    ends.setdefault(partition, reached[partition][0])
                elif error.code() == OFFSET_OUT_OF_RANGE and (told := BROKER_END.search(error.str())):
                    ends[partition] = int(told[1])
                else:
                    raise KafkaException(error)
    return ends
