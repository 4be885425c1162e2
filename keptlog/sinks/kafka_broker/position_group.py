"""The consumer group that keeps the positions, as its coordinator, one of the brokers, has them.

Two things may keep the answer away. A coordinator may not be ready: the cluster's first group makes it create a topic.
It is asked again then, by the same client. And a client may not answer at all, because the broker that it waits for
went: another client finds out at once which broker is the coordinator now. So at most three are asked, one after the
other, each for a bounded time.
"""

# ruff: noqa: SLF001  # the codes of librdkafka's own errors have such names

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from keptlog.kafka_client.errors import no_answer
from keptlog.sinks.kafka_broker.waiting import in_time

_logger = logging.getLogger(__name__)

_ANSWER_SECONDS = 5.0
_TURN_SECONDS = 0.5
_CLIENT_SECONDS = 15.0
_MOST_CLIENTS = 3
"""One after the other, each for so long."""
_CLOSE_SECONDS = 5.0
_NOT_READY = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._TIMED_OUT,
    }
)


@dataclass
class PositionGroup:
    """Asks for the group's offsets; they are committed by the transactions."""

    new_consumer: Callable[[], Consumer]
    """Of the group; it subscribes to nothing."""
    consumer: Consumer = field(init=False)

    def __post_init__(self) -> None:
        self.consumer = self.new_consumer()

    @property
    def metadata(self) -> Any:
        """What a transaction takes as the group that its offsets are of."""
        return self.consumer.consumer_group_metadata()

    def committed(self, topic: str, partitions: int) -> list[TopicPartition]:
        """The group's offset for each partition of a topic, with its text; below 0 where there is none.

        Raises:
            KafkaException: there is no answer, or it is an error.
        """
        names = [TopicPartition(topic, number) for number in range(partitions)]
        committed = self._answered(names)
        for each in committed:
            if each.error:
                raise KafkaException(each.error)
        return committed

    def close(self) -> None:
        """Be done with it, in bounded time."""
        with contextlib.suppress(KafkaException):
            in_time(self.consumer.close, _CLOSE_SECONDS)

    def _answered(self, names: list[TopicPartition]) -> list[TopicPartition]:
        """Asked with another client when one does not answer: it may wait for ever, and the other finds out at once."""
        for client in range(1, _MOST_CLIENTS):
            try:
                return in_time(partial(self._asked, names), _CLIENT_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT:
                    raise
            text = "topic %s: client %d of %d got no answer about positions within %.0f s, the next one asks"
            _logger.warning(text, names[0].topic, client, _MOST_CLIENTS, _CLIENT_SECONDS)
            self.consumer = self.new_consumer()
        return in_time(partial(self._asked, names), _CLIENT_SECONDS)

    def _asked(self, names: list[TopicPartition]) -> list[TopicPartition]:
        """Asked again while the broker that has the answer is not ready."""
        consumer = self.consumer
        turns = round(_CLIENT_SECONDS / _TURN_SECONDS)
        for turn in range(1, turns + 1):
            try:
                return consumer.committed(names, timeout=_ANSWER_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in _NOT_READY:
                    raise
                text = "topic %s: the broker is not ready to tell positions (%s), turn %d of %d"
                _logger.debug(text, names[0].topic, error.args[0].name(), turn, turns)
            why = consumer.poll(_TURN_SECONDS)
            if why and why.error():
                raise KafkaException(why.error())
        raise no_answer()
