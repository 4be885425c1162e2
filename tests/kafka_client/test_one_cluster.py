"""Of a bootstrap list only addresses are asked for their cluster that it does not tell, and no one that can't be asked
stops anybody.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Producer

from keptlog.kafka_client import one_cluster
from keptlog.kafka_client.settings import ClientSettings
from keptlog.sources.kafka_broker.topics import look_at_topics
from tests.mock_broker import MockBroker, mock_broker


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as started:
        started.produce("users", ("ada", "1"))
        yield started


def looked_at(*addresses: str) -> float:
    """How many seconds a look took that has found the topic."""
    began = time.monotonic()
    found = look_at_topics(ClientSettings.load({"bootstrap.servers": ",".join(addresses)}, {}), ["users"])
    assert found.topics.keys() == {"users"}, found.missing
    return time.monotonic() - began


def test_another_address_of_the_same_cluster_is_as_good_as_those_that_it_tells(broker: MockBroker) -> None:
    looked_at(broker.bootstrap, broker.bootstrap.replace("127.0.0.1", "localhost"))


@pytest.mark.parametrize("down", ["127.0.0.1:1", "nowhere.invalid:9092", "[::1]:1", f"{'long' * 20}.invalid"])
def test_one_that_is_down_or_has_no_host_is_not_judged(broker: MockBroker, down: str) -> None:
    looked_at(down, broker.bootstrap)


def test_addresses_that_a_cluster_tells_are_not_asked(broker: MockBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_: object) -> None:
        raise AssertionError("its cluster is known")

    monkeypatch.setattr(one_cluster, "_cluster_of", asked)
    looked_at(broker.bootstrap, f"PLAINTEXT://{broker.bootstrap}")


def test_one_that_says_nothing_is_waited_for_once_in_some_minutes(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, asked = one_cluster._cluster_of, list[str | None]()

    def noted(settings: ClientSettings) -> str | None:
        asked.append(settings.bootstrap)
        return really(settings)

    monkeypatch.setattr(one_cluster, "_cluster_of", noted)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as another:
        silent, other = (f"127.0.0.1:{each.getsockname()[1]}" for each in (one, another))
        assert looked_at(broker.bootstrap, silent, other) < 5, "they are asked side by side"
        looked_at(broker.bootstrap, silent, other)
        assert sorted(map(str, asked)) == sorted([silent, other])
        monkeypatch.setattr(one_cluster, "_ASK_AGAIN_SECONDS", 0.0)
        looked_at(broker.bootstrap, silent, other)
        assert len(asked) == 4


@pytest.mark.parametrize("count", [3, 8])
def test_in_the_place_of_one_that_is_down_clients_get_brokers_of_the_cluster_and_no_more_than_are_needed(
    count: int,
) -> None:
    owner = Producer({"test.mock.num.brokers": count, "bootstrap.servers": "unused", "log_level": 0})
    owner.produce("users", key="ada", value="1")
    assert not owner.flush(60)
    brokers = [f"{each.host}:{each.port}" for each in owner.list_topics(timeout=60).brokers.values()]
    listed = f"127.0.0.1:1,{brokers[-1]}"
    found = look_at_topics(ClientSettings.load({"bootstrap.servers": listed}, {}), ["users"])
    assert found.settings
    given = (found.settings.bootstrap or "").split(",")
    assert given[0] == brokers[-1], "what was named comes first"
    assert set(given) <= set(brokers)
    assert len(given) == len(set(given)) == min(count, 5)


def with_slow_names(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Any]) -> None:
    """Only for Python: this machine's names can't be made slow for librdkafka, too."""
    really = socket.getaddrinfo

    def looked_up(host: str, *rest: Any, **more: Any) -> Any:
        return answer() if host == "slow.invalid" else really(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)


def test_a_name_server_that_takes_long_is_waited_for_some_seconds_once(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Event()
    with_slow_names(monkeypatch, lambda: ended.wait(20) and [])
    try:
        assert looked_at(broker.bootstrap, "slow.invalid:9092") < 5
        assert looked_at(broker.bootstrap, "slow.invalid:9092") < 1
    finally:
        ended.set()


def test_a_host_of_many_addresses_that_swallow_everything_is_waited_for_as_long_as_one(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first:
        first.connect(full.getsockname())  # no other one is let in
        found = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())
        with_slow_names(monkeypatch, lambda: [found] * 8)
        assert looked_at(broker.bootstrap, "slow.invalid:9092") < 5


def test_one_whose_name_is_slow_and_that_refuses_costs_nothing_the_next_time(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))
    with_slow_names(monkeypatch, lambda: Event().wait(2) or [found])
    looked_at(broker.bootstrap, "slow.invalid:9092")
    assert looked_at(broker.bootstrap, "slow.invalid:9092") < 1
