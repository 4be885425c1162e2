"""A Kafka broker, one for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.kafka_jars import kafka_jars
from tests.broker.broker import Broker, running_broker
from tests.kafka.jars import or_skip


@pytest.fixture(scope="package")
def broker() -> Iterator[Broker]:
    or_skip(kafka_jars)
    with running_broker() as started:
        yield started
