"""A broker that alone takes what is restored, or tells of it, is named where it is away: others do answer."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError

from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.kafka_client.leaders import LEADERLESS
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.sinks.kafka_broker import target as module
from keptlog.sinks.kafka_broker.position import Pair, Position
from keptlog.sinks.kafka_broker.target import Target, Targets
from keptlog.sinks.kafka_broker.writer import open_writer
from tests.mock_broker import PARTITIONS, answer, set_coordinator, set_leader
from tests.mock_cluster import MockCluster, mock_cluster, seen_elsewhere

HEALTHY, AWAY = 1, 2
PRODUCE = 0
PAIR = Pair("users", "id-here", Target("people", "id-there", PARTITIONS, {}))
FEW_SECONDS = dict.fromkeys(("message.timeout.ms", "transaction.timeout.ms", "socket.timeout.ms"), "3000")

ADDRESSES = pytest.mark.parametrize(
    ("advertised", "told"),
    [
        (("127.0.0.1", 1), "does not answer: 127.0.0.1:1/2: .*Connection refused.*; try again when it does"),
        (("x.invalid", 9092), "is not found: x.invalid:9092/2: Failed to resolve .*advertised.listeners.*"),
    ],
)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MockCluster:
    monkeypatch.setattr(module, "WAIT_SECONDS", 3)
    mock = mock_cluster(HEALTHY, AWAY)
    mock.create("people", {1: AWAY})
    set_coordinator(mock.owner, "group", PAIR.group, HEALTHY)
    set_coordinator(mock.owner, "transaction", PAIR.transactional_id, HEALTHY)
    return mock


def written(settings: ClientSettings) -> None:
    with open_writer(settings, PAIR) as writer:
        writer.write(1, Record(7, b"key", b"value", 7))
        writer.commit({1: Position(8, 1000, 0)})


def why(bootstrap: str, act: Callable[[ClientSettings], object]) -> KeptlogError:
    with pytest.raises(StorageUnavailable) as raised:
        act(ClientSettings.load({"bootstrap.servers": bootstrap} | FEW_SECONDS, {}))
    return raised.value


@ADDRESSES
@pytest.mark.parametrize("others", ["", "y.invalid:9092,"])
def test_the_leader_that_a_record_is_for(
    cluster: MockCluster, advertised: tuple[str, int], told: str, others: str
) -> None:
    with seen_elsewhere(cluster, AWAY, advertised) as address:
        error = why(others + address, written)
    said = f"users-1 can't be restored beyond offset 7: broker {AWAY} of the cluster at [^ ]* {told}"
    assert re.fullmatch(said, str(error)), error


def test_a_leader_that_lacks_in_sync_replicas_is_not_said_to_be_silent(cluster: MockCluster) -> None:
    """It answers so again and again; the client tells no more than that time is up."""
    set_leader(cluster.owner, "people", 1, HEALTHY)
    answer(cluster.owner, PRODUCE, *[KafkaError.NOT_ENOUGH_REPLICAS] * 200)
    error = why(cluster.bootstrap, written)
    said = f"users-1 can't be restored beyond offset 7: broker {HEALTHY} of the cluster at [^ ]* has not taken it"
    assert re.match(f"{said} in time: .*; does it answer, .*min.insync.replicas", str(error)), error


@ADDRESSES
@pytest.mark.parametrize("others", ["", "y.invalid:9092,"])
def test_the_leader_that_is_asked_whether_its_log_has_records(
    cluster: MockCluster, advertised: tuple[str, int], told: str, others: str
) -> None:
    with seen_elsewhere(cluster, AWAY, advertised) as address:
        error = why(others + address, lambda settings: Targets(settings).with_records(PAIR.target))
    said = f"topic people can't be looked at: broker {AWAY} of the cluster at [^ ]* {told}"
    assert re.fullmatch(said, str(error)), error


@ADDRESSES
def test_the_controller_that_is_asked_for_the_topic(
    cluster: MockCluster, advertised: tuple[str, int], told: str
) -> None:
    with seen_elsewhere(cluster, AWAY, advertised, controller=AWAY) as address:
        error = why(address, lambda settings: Targets(settings).find("people"))
    said = f"topic people can't be looked at: broker {AWAY} of the cluster at [^ ]* {told}"
    assert re.fullmatch(said, str(error)), error


@ADDRESSES
def test_the_controller_that_is_to_create_it(cluster: MockCluster, advertised: tuple[str, int], told: str) -> None:
    with seen_elsewhere(cluster, AWAY, advertised, controller=AWAY) as address:
        error = why(address, lambda settings: Targets(settings).create("others", 1, {}))
    said = f"topic others can't be created: broker {AWAY} of the cluster at [^ ]* {told}"
    assert re.fullmatch(said, str(error)), error


@pytest.mark.parametrize("led", [False, True])
def test_nobody_where_brokers_say_that_nobody_leads_the_log(cluster: MockCluster, *, led: bool) -> None:
    """As where its only replica is down."""
    for partition in range(PARTITIONS):
        if partition == 1 or not led:
            set_leader(cluster.owner, "people", partition, LEADERLESS)
    told = "at .* nobody leads the partition: .*; try again when a broker does"
    error = why(cluster.bootstrap, written)
    assert re.fullmatch(f"users-1 can't be restored beyond offset 7: {told}", str(error)), error
    error = why(cluster.bootstrap, lambda settings: Targets(settings).with_records(PAIR.target))
    assert re.fullmatch(r"topic people can't be looked at: .* says: .*[Ll]eader.*; try again", str(error)), error
