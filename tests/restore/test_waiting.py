"""A call of librdkafka that forgets its timeout does not hold up a restore for ever."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from keptlog.sinks.kafka_broker.waiting import in_time


def test_a_call_that_does_not_end_is_given_up() -> None:
    never = threading.Event()
    with pytest.raises(KafkaException) as raised:
        in_time(never.wait, 0.05)
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT
    never.set()


def test_what_a_call_gives_is_given() -> None:
    assert in_time(lambda: 7, 5) == 7


def test_what_a_call_raises_is_raised() -> None:
    def fenced() -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED))

    with pytest.raises(KafkaException) as raised:
        in_time(fenced, 5)
    assert raised.value.args[0].code() == KafkaError._FENCED
