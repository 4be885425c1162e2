"""A restore is refused where its bootstrap list names brokers of two clusters: one would tell, the other be written."""

from __future__ import annotations

import socket
from itertools import permutations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.kafka_client.settings import ClientSettings
from keptlog.sinks.kafka_broker.target import Target, Targets, of_one_cluster
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


def test_one_that_does_not_say_which_it_is_of_is_not_written_to_if_it_answers_later() -> None:
    with mock_broker() as own, socket.create_server(("127.0.0.1", 0)) as silent:
        listed = f"127.0.0.1:{silent.getsockname()[1]},{own.bootstrap}"
        assert of_one_cluster(ClientSettings.load({"bootstrap.servers": listed}, {})).bootstrap == own.bootstrap


def test_all_of_a_list_are_kept_that_are_of_the_cluster() -> None:
    with mock_broker() as own:
        listed = f"{own.bootstrap},{own.bootstrap.replace('127.0.0.1', 'localhost')}"
        for _ in range(2):
            assert of_one_cluster(ClientSettings.load({"bootstrap.servers": listed}, {})).bootstrap == listed
