"""A Kafka broker, one for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.broker import Broker, running_broker
from tests.kafka.jars import classpath_or_skip


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    classpath_or_skip()
    with running_broker() as started:
        yield started
