"""The id of a topic is the same whether a broker tells it or a log directory."""

from __future__ import annotations

import pytest
from confluent_kafka import Uuid

from keptlog.kafka_client.topic_ids import topic_id_of


@pytest.mark.parametrize(
    ("high", "low", "written"),
    [
        (-1, -4, "_____________________A"),
        (0x7BEF7BEF7BEF7BEF, 3, "e-9773vve-8AAAAAAAAAAw"),
        (1, 2, "AAAAAAAAAAEAAAAAAAAAAg"),
    ],
)
def test_an_id_is_written_as_kafka_writes_it(high: int, low: int, written: str) -> None:
    assert topic_id_of(Uuid(high, low)) == written
