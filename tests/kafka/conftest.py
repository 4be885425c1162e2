"""Apache Kafka's own classes, one process of them for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.jars import classpath, or_skip
from tests.kafka.oracle import KafkaOracle, kafka_oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[KafkaOracle]:
    or_skip(classpath)
    with kafka_oracle() as started:
        yield started
