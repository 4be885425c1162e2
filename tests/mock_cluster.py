"""A mock cluster of two brokers, one of which is asked, maybe through one who gives the other's address wrongly."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread

from confluent_kafka import Producer

from tests.mock_broker import PARTITIONS, set_leader

NO_CONTROLLER = 0
"""What a mock cluster says, which has no such broker."""


@dataclass(frozen=True)
class MockCluster:
    """It lives as long as its owner."""

    owner: Producer
    asked: int
    ports: Mapping[int, int]
    id: str
    """As brokers tell it, before who is their controller."""

    @property
    def bootstrap(self) -> str:
        """The address of the one that is asked."""
        return f"127.0.0.1:{self.ports[self.asked]}"

    def create(self, topic: str, leaders: Mapping[int, int]) -> None:
        """Create a topic with a record in each partition; those without another leader are led by the one asked."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for partition in range(PARTITIONS):
            producer.produce(topic, key=b"k", value=b"v", partition=partition)
        assert not producer.flush(60)
        for partition in range(PARTITIONS):
            set_leader(self.owner, topic, partition, leaders.get(partition, self.asked))


def mock_cluster(asked: int, other: int) -> MockCluster:
    """Start one of brokers with these ids, which are 1 and 2."""
    owner = Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "unused", "log_level": 0})
    told = owner.list_topics(timeout=60)
    ports = {broker.id: broker.port for broker in told.brokers.values()}
    assert {*ports} == {asked, other}
    return MockCluster(owner, asked, ports, str(told.cluster_id))


@contextmanager
def seen_elsewhere(
    cluster: MockCluster, broker: int, advertised: tuple[str, int], controller: int = NO_CONTROLLER
) -> Iterator[str]:
    """Where the cluster is asked through somebody who says that one of its brokers is at another address."""
    asked = socket.create_server(("127.0.0.1", 0))
    own = asked.getsockname()
    said = {_address(("127.0.0.1", cluster.ports[broker])): _address(advertised)}
    said[_address(("127.0.0.1", cluster.ports[cluster.asked]))] = _address(own)
    said[_number(cluster.id, NO_CONTROLLER)] = _number(cluster.id, controller)

    def pass_on(source: socket.socket, target: socket.socket, words: Mapping[bytes, bytes]) -> None:
        with suppress(OSError):  # the test is over
            while data := source.recv(2**16):
                for word, instead in words.items():
                    data = data.replace(word, instead)
                target.sendall(data)

    def serve() -> None:
        with suppress(OSError):  # as above
            while True:
                client, _ = asked.accept()
                broker = socket.create_connection(("127.0.0.1", cluster.ports[cluster.asked]))
                Thread(target=pass_on, args=(client, broker, {}), daemon=True).start()
                Thread(target=pass_on, args=(broker, client, said), daemon=True).start()

    serving = Thread(target=serve)
    serving.start()
    try:
        yield f"127.0.0.1:{own[1]}"
    finally:
        asked.shutdown(socket.SHUT_RDWR)  # or who waits for the next client goes on
        asked.close()
        serving.join()


def _address(of: tuple[str, int]) -> bytes:
    """As Kafka's protocol has it: all here are as long."""
    return _number(*of)


def _number(behind: str, number: int) -> bytes:
    return behind.encode() + number.to_bytes(4, "big")
