"""A Kafka broker, one for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.kafka_jars import kafka_jars
from keptlog.home import new_id
from tests.broker.broker import Broker, running_broker
from tests.broker.twins import Twins
from tests.kafka.jars import or_skip
from tests.logs import open_store


@pytest.fixture(scope="package")
def broker() -> Iterator[Broker]:
    or_skip(kafka_jars)
    with running_broker() as started:
        yield started


@pytest.fixture
def twins(broker: Broker, tmp_path: Path) -> Twins:
    return Twins(broker, tmp_path, open_store(tmp_path), f"restored-{new_id()}")
