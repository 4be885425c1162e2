"""Apache Kafka's own classes, one process of them for all tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.kafka.jars import KafkaMissing, classpath
from tests.kafka.oracle import KafkaOracle, kafka_oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[KafkaOracle]:
    """Skips where Kafka can't be had; where a build server has Maven, it must be had."""
    try:
        classpath()
    except KafkaMissing as missing:
        if os.environ.get("CI") == "true" and shutil.which("mvn"):
            raise
        pytest.skip(str(missing))
    with kafka_oracle() as started:
        yield started
