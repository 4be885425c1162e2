"""A run that names brokers and no topic leaves out those of another cluster, and holds none of them back."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mock_broker import MockBroker, mock_broker
from tests.orchestration.ingesting import IngestWorld, ingest_world

HALF_AN_HOUR_MS = 1_800_000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    """A home with a topic of a broker, which has something new."""
    with ingest_world(tmp_path / "home") as made:
        made.produce("users", ("a", "1"))
        made.knows("users", 0, 0, 0, 0)
        yield made


@pytest.fixture
def other() -> Iterator[MockBroker]:
    with mock_broker() as broker:
        broker.produce("orders", ("b", "2"))
        yield broker


def test_the_sensor_goes_on_asking_for_topics_of_the_other_cluster(here: IngestWorld, other: MockBroker) -> None:
    here.knows("orders", 0, 0, 0, 0, bootstrap=other.bootstrap)
    for _ in range(3):
        here.world.now_ms += HALF_AN_HOUR_MS
        result = here.ingest(bootstrap=other.bootstrap)
        assert result.success
    assert here.asked() == ["users-0"]
    assert here.world.records("orders") == [(0, b"b", b"2")]
    assert here.world.records("users") == []


def test_what_is_left_out_is_a_warning_of_the_run(here: IngestWorld, other: MockBroker) -> None:
    here.knows("orders", 0, 0, 0, 0, bootstrap=other.bootstrap)
    result = here.ingest(bootstrap=other.bootstrap)
    warnings = [
        each.user_message for each in here.world.instance.all_logs(result.run_id) if each.level == logging.WARNING
    ]
    assert any(each.startswith(f"users left out: last at {here.broker.bootstrap}") for each in warnings)


def test_a_run_that_finds_none_of_the_topics_is_refused_and_holds_none_back(
    here: IngestWorld, other: MockBroker
) -> None:
    assert "users left out" in here.failure(here.ingest(bootstrap=other.bootstrap))
    assert here.asked() == ["users-0"]


def test_brokers_that_give_no_answer_hold_no_topic_of_others_back(here: IngestWorld) -> None:
    assert "nothing could be done" in here.failure(here.ingest(bootstrap="127.0.0.1:9"))
    assert here.asked() == ["users-0"]


def test_a_failure_is_not_over_because_a_run_over_another_cluster_succeeded(
    here: IngestWorld, other: MockBroker
) -> None:
    here.knows("orders", 0, 0, 0, 0, bootstrap=other.bootstrap)
    here.failure(here.ingest(topics=["users"], bootstrap=other.bootstrap))
    assert here.ingest(bootstrap=other.bootstrap).success
    assert "users-0: failed" in here.skips()
