"""What doctor says of an ingest that gets nothing: the cause and the next step are those of the error that it got."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.ingest import lag
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.broker import BrokerConfig
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.told.examination import condition_problems
from keptlog.log.told.problem import Problem
from keptlog.passes.watch import ingest_evidence
from keptlog.sources.kafka_broker.topics import BrokerTopics
from keptlog.table.store import LogStore
from tests.mock_broker import MockBroker, mock_broker

NOW_MS = 1_800_000_000_000


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as started:
        started.produce("users", ("a", "1"))
        yield started


def told(store: LogStore, bootstrap: str, there: str = "users", position: int = 1) -> Problem:
    """The problem that is told of a topic here that comes from the broker."""
    store.create_topic("people", 1, {})
    source = SourceIdentity(there, bootstrap=bootstrap)
    store.ingest("people", [Arrival(OffsetRange(0, None, 0, position), ())], source, 1, "run")
    evidence = ingest_evidence(LagScanner(store).scan(ClientSettings.load({}, {}), NOW_MS))
    [problem] = condition_problems(evidence.conditions, BrokerConfig())
    return problem


def test_a_log_that_its_source_has_lost_is_a_choice(store: LogStore, broker: MockBroker) -> None:
    assert told(store, broker.bootstrap, position=10).todo == "it is a choice: the text names both"


def test_a_partition_that_nobody_leads_is_none(store: LogStore, broker: MockBroker) -> None:
    broker.lose_leader("users", 0)
    problem = told(store, broker.bootstrap)
    assert problem.cause.startswith("no broker leads it at the moment")
    assert "goes on once a broker leads it" in problem.todo


def test_a_topic_that_is_not_shown_is_none(store: LogStore, broker: MockBroker) -> None:
    problem = told(store, broker.bootstrap, "gone")
    assert problem.cause.startswith("the topic was deleted there")
    assert problem.todo.startswith("do what it says")


def test_a_topic_that_the_user_may_not_see_is_none(
    store: LogStore, broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = InvalidConfig("the user has no permission; have it granted")
    monkeypatch.setattr(lag, "_look", lambda *_: BrokerTopics({}, {"users": denied}))
    problem = told(store, broker.bootstrap)
    assert problem.cause.endswith("or the user may not see it")
    assert "have the permission" in problem.todo


@pytest.mark.parametrize(
    ("error", "cause", "todo"),
    [
        (InvalidConfig("the password is wrong"), "the cluster does not take this user", "correct the client settings"),
        (StorageUnavailable("nobody answers"), "the cluster is down", "see that it can be reached"),
    ],
)
def test_a_cluster_that_refuses_this_user_is_not_down(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, error: KeptlogError, cause: str, todo: str
) -> None:
    monkeypatch.setattr(lag, "_look", lambda *_: error)
    problem = told(store, "127.0.0.1:1")
    assert (problem.cause.startswith(cause), problem.todo.startswith(todo)) == (True, True)
