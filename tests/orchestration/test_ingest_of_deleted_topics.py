"""A run that was asked for before a topic was deleted brings nothing of that topic back, and ingests the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from keptlog.ingest import kafka_brokers
from keptlog.table.store import LogStore
from tests.orchestration.conftest import COMPACT
from tests.orchestration.ingesting import IngestWorld, asked_by, ingest_world
from tests.orchestration.shipped import KEYS, ingest_lag_sensor


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IngestWorld]:
    """A home with two topics of a broker that the client settings name, too."""
    with ingest_world(tmp_path / "home") as made:
        monkeypatch.setenv("KEPTLOG_KAFKA_BOOTSTRAP_SERVERS", made.broker.bootstrap)
        for topic in ("users", "orders"):
            made.produce(topic, ("a", "1"))
            made.knows(topic, 0, 0, 0, 0)
        yield made


@pytest.mark.parametrize("is_made_anew", [False, True], ids=["gone", "made anew"])
def test_what_the_sensor_asked_for_stays_deleted_and_other_topics_are_ingested(
    here: IngestWorld, *, is_made_anew: bool
) -> None:
    (request,) = here.world.requests(ingest_lag_sensor)
    assert asked_by(request) == ["orders-0", "users-0"]
    here.world.store.delete_topic("users", here.world.now_ms)
    if is_made_anew:
        here.world.store.create_topic("users", 1, COMPACT)

    failure = here.failure(here.run(request))

    assert "1 not ingested, 1 ingested: users: topic users is not here any more, or remembers no broker" in failure
    assert here.world.records("orders") == [(0, b"a", b"1")]
    assert here.world.store.topics() == (["orders", "users"] if is_made_anew else ["orders"])
    assert not is_made_anew or here.world.records("users") == []


def test_a_run_over_nothing_but_a_deleted_topic_names_it(here: IngestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEPTLOG_KAFKA_BOOTSTRAP_SERVERS")
    here.world.store.delete_topic("users", here.world.now_ms)

    failure = here.failure(here.ingest(topic_partitions=["users-0"]))

    assert "1 not ingested, 0 ingested: users: topic users is not here any more" in failure
    assert here.world.records("orders") == []


@pytest.mark.parametrize("named", [["users-0", "orders-0"], []], ids=["named", "all"])
def test_a_topic_that_is_deleted_while_its_run_begins_does_not_come_back(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch, named: list[str]
) -> None:
    really = kafka_brokers.topics_from_brokers

    def then_deleted(store: LogStore, only: Collection[str] | None = None) -> dict[str, str]:
        known = really(store, only)
        store.delete_topic("users", here.world.now_ms)
        return known

    monkeypatch.setattr(kafka_brokers, "topics_from_brokers", then_deleted)
    failure = here.failure(here.ingest(topic_partitions=named))

    assert "1 not ingested, 1 ingested: users: topic users is not here any more" in failure
    assert here.world.store.topics() == ["orders"]


def test_a_topic_that_is_here_without_a_broker_takes_one_from_the_launchpad(here: IngestWorld) -> None:
    here.produce("profiles", ("a", "1"))
    here.world.store.create_topic("profiles", 4, COMPACT)

    result = here.ingest(topic_partitions=["profiles-0", "gone-0"], bootstrap=here.broker.bootstrap)

    assert "1 not ingested, 1 ingested: gone: " in here.failure(result)
    assert here.world.records("profiles") == [(0, b"a", b"1")]


def test_a_dirty_section_of_a_topic_that_was_made_anew_takes_nothing_from_the_old_ones_broker(
    here: IngestWorld,
) -> None:
    job = here.world.defs.resolve_implicit_global_asset_job_def()
    here.world.store.delete_topic("users", here.world.now_ms)
    here.world.store.create_topic("users", 1, COMPACT)

    result = job.get_subset(asset_selection={KEYS.dirty("users")}).execute_in_process(
        instance=here.world.instance, raise_on_error=False, tags={"dagster/partition": "users-0"}
    )

    assert not result.success
    assert here.world.records("users") == []
