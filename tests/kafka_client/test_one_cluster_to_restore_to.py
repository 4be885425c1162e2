"""A restore is refused where its bootstrap list names brokers of two clusters: one would tell, the other be written."""

from __future__ import annotations

from itertools import permutations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.kafka_client.settings import ClientSettings
from keptlog.sinks.kafka_broker.target import Target, Targets
from tests.mock_broker import PARTITIONS, mock_broker


def test_neither_is_looked_at_whichever_answers_first() -> None:
    with mock_broker() as one, mock_broker() as other:
        for each in (one, other):
            each.produce("users", ("ada", "1"))
        for pair in permutations((one.bootstrap, other.bootstrap)):
            targets = Targets(ClientSettings.load({"bootstrap.servers": ",".join(pair)}, {}))
            with pytest.raises(InvalidConfig, match="has brokers of several clusters"):
                targets.with_records(Target("users", "id", PARTITIONS, {}))
            with pytest.raises(InvalidConfig, match="has brokers of several clusters"):
                targets.find("users")
