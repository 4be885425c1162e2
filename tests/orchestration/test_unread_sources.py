"""Whether a topic has a broker is not known while its source can't be read: the sensors say that, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.log.source import SourceIdentity, StoredSource
from keptlog.table.metadata.state import read_source
from tests.orchestration.ingesting import IngestWorld, ingest_world
from tests.orchestration.shipped import health_sensor

MINUTE_MS = 60_000
SOURCE = "log.source"
END = "log.p0.log-end-offset"
NO_BROKER = "no broker at 127.0.0.1:1 answers"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    """Its only topic with a broker was asked for, and the broker did not answer."""
    with ingest_world(tmp_path / "home") as made:
        made.knows("orders", 0, bootstrap="127.0.0.1:1")
        assert NO_BROKER in made.skips()
        assert NO_BROKER in made.world.skips(health_sensor)
        made.world.now_ms += 2 * MINUTE_MS
        yield made


def damage(here: IngestWorld, name: str) -> str:
    """Let a property be no more what keptlog has written; gives what it was."""
    table = here.world.store.load_table("orders")
    before = str(table.properties[name])
    table.transaction().set_properties({name: "many"}).commit_transaction()
    return before


@pytest.mark.parametrize("name", [SOURCE, END])
def test_a_topic_whose_source_can_not_be_read_is_told_and_not_taken_for_one_without_a_broker(
    here: IngestWorld, name: str
) -> None:
    damage(here, name)

    told = here.skips()

    assert "orders: whether it has a broker is not known: " in told
    assert f"property {name}='many'" in told
    assert "no topic here has a Kafka source yet" not in told


@pytest.mark.parametrize("name", [SOURCE, END])
def test_the_silence_of_a_broker_that_nobody_knows_of_any_more_leaves_the_health(here: IngestWorld, name: str) -> None:
    damage(here, name)
    here.skips()

    told = here.world.skips(health_sensor)

    assert NO_BROKER not in told
    assert f"property {name}='many'" in told


def test_no_lag_is_told_of_a_home_where_an_ingested_topics_source_can_not_be_read(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 0, 0, 0)
    damage(here, SOURCE)
    here.skips()

    [event] = here.world.tick(health_sensor).asset_events

    assert "consumer_lag" not in event.metadata
    assert "the consumer lag of orders: property log.source='many'" in here.world.skips(health_sensor)


def test_its_broker_is_asked_again_once_the_source_can_be_read(here: IngestWorld) -> None:
    before = damage(here, SOURCE)
    here.skips()

    here.world.store.load_table("orders").transaction().set_properties({SOURCE: before}).commit_transaction()

    assert NO_BROKER in here.skips()


def test_a_table_that_is_no_topic_has_no_broker(tmp_path: Path) -> None:
    with ingest_world(tmp_path / "home") as made:
        made.world.topic("users")
        schema = made.world.store.load_table("users").schema()
        made.world.store._catalog.create_table(("keptlog", "copy"), schema)
        assert "no topic here has a Kafka source yet" in made.skips()


def test_an_ingested_topic_that_nothing_may_be_written_to_is_told_and_its_lag_is_not_known(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 0, 0, 0)
    table = here.world.store.load_table("orders")
    table.transaction().set_properties({"log.snapshot-id": "1"}).commit_transaction()

    told = here.skips()

    assert "orders: its lag is not looked at: " in told
    [event] = here.world.tick(health_sensor).asset_events
    assert "consumer_lag" not in event.metadata


@pytest.mark.parametrize("source", [None, SourceIdentity("notes")], ids=["appended", "imported"])
def test_a_topic_without_a_broker_that_was_away_while_brokers_were_asked_hides_no_lag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: SourceIdentity | None
) -> None:
    """The report had no lag then, and no word of why: its own look could read the topic, and saw no broker."""

    def read(topic: str, properties: Mapping[str, str]) -> StoredSource:
        if topic == "notes":
            raise StorageUnavailable("it is away")
        return read_source(topic, properties)

    monkeypatch.setattr("keptlog.ingest.lag.read_source", read)
    with ingest_world(tmp_path / "home") as made:
        made.produce("users", ("a", "1"))
        made.knows("users", 0, 0, 0, 0)
        made.world.topic("notes")
        if source:
            made.world.store.ingest("notes", [], source, 1, "imported")
        made.tick()

        [event] = made.world.tick(health_sensor).asset_events

        assert event.metadata["not_looked_at"].value == "nothing"
        assert event.metadata["consumer_lag"].value == 1
