"""Where topics have no ids, or had none, as before Kafka 2.8, one is not added to the very one that it comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.kafka_client.settings import ClientSettings
from keptlog.kafka_client.topic_ids import NO_ID
from keptlog.passes.restore import Restore
from keptlog.sinks.kafka_broker.target import Target, Targets
from tests.mock_cluster import mock_cluster, seen_elsewhere
from tests.restore.stand_in import TARGET, Broker
from tests.restore.test_missed_deletions import Scene
from tests.table.foreign import set_properties

WITHOUT_ID = Target("people", NO_ID, 1, TARGET.config)
RestoreFrom = Callable[[dict[str, str]], list[int]]


@pytest.fixture
def restore_from(tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> RestoreFrom:
    """Restore a topic with this source, and whoever asks for it adds to what is there, to a target that has records."""
    monkeypatch.setattr(Targets, "with_records", lambda *_, **__: [0])
    monkeypatch.setattr(Restore, "_target", lambda *_: (WITHOUT_ID, False))
    monkeypatch.setattr(Targets, "are_at", lambda *_: False)
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"))

    def restored(source: dict[str, str]) -> list[int]:
        set_properties(tmp_path, {"log.source": json.dumps(source)}, "users")
        return scene.restore(append_to_existing=True)

    return restored


def test_the_topic_that_it_comes_from_is_refused(restore_from: RestoreFrom, broker: Broker) -> None:
    with pytest.raises(InvalidConfig, match=r"^users comes from topic people there, whose people-0 has, or had, rec"):
        restore_from({"topic": "people", "bootstrap": "nowhere:1"})
    assert broker.sent == []


def test_so_is_one_whose_records_its_retention_took(
    restore_from: RestoreFrom, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for one that was made anew, and the next ingest brought all records here once more."""
    monkeypatch.setattr(Targets, "with_records", lambda *_, ever=False: [0] if ever else [])
    with pytest.raises(InvalidConfig, match=r"^users comes from topic people there, whose people-0 has, or had, rec"):
        restore_from({"topic": "people", "bootstrap": "nowhere:1"})
    assert broker.sent == []


@pytest.mark.parametrize(
    "source",
    [
        {"topic": "others", "bootstrap": "nowhere:1"},
        {"topic": "people", "bootstrap": "elsewhere:1"},
        {"topic": "people"},
    ],
    ids=["another name", "other brokers", "a log directory"],
)
def test_any_other_is_not(restore_from: RestoreFrom, source: dict[str, str]) -> None:
    assert restore_from(source) == [0]


def test_so_is_one_that_has_an_id_by_now(
    restore_from: RestoreFrom, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers that came to Kafka 2.8 give each topic one; nothing was ingested since."""
    monkeypatch.setattr(Restore, "_target", lambda *_: (TARGET, False))
    with pytest.raises(InvalidConfig, match=r"^users comes from topic people there, whose people-0 has, or had, rec"):
        restore_from({"topic": "people", "bootstrap": "nowhere:1"})
    assert broker.sent == []


def test_one_that_has_another_id_is_another(restore_from: RestoreFrom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Restore, "_target", lambda *_: (TARGET, False))
    assert restore_from({"topic": "people", "topic_id": "id-before", "bootstrap": "nowhere:1"}) == [0]


def test_one_that_was_lost_there_and_was_made_anew_by_a_restore_goes_on(restore_from: RestoreFrom) -> None:
    assert restore_from({"topic": "people"}) == [0]  # has a position from now on
    assert restore_from({"topic": "people", "bootstrap": "nowhere:1"}) == []


def test_the_brokers_that_it_comes_from_are_known_by_each_of_their_addresses() -> None:
    """Only the address that was named for the restore was compared, which may be that of another listener."""
    cluster, another = mock_cluster(1, 2), mock_cluster(1, 2)
    targets = Targets(ClientSettings.load({"bootstrap.servers": cluster.bootstrap}, {}))
    assert targets.are_at(f"nowhere:1,127.0.0.1:{cluster.ports[2]}")
    with seen_elsewhere(cluster, 1, ("127.0.0.1", 1)) as listener:
        assert targets.are_at(listener)
    assert not targets.are_at(another.bootstrap)
    assert not targets.are_at("")


def test_a_topic_is_refused_by_another_address_of_the_brokers_that_it_comes_from(
    restore_from: RestoreFrom, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Targets, "are_at", lambda _, bootstrap: bootstrap == "listener:2")
    with pytest.raises(InvalidConfig, match=r"^users comes from topic people there, whose people-0 has, or had, rec"):
        restore_from({"topic": "people", "bootstrap": "listener:2"})
    assert broker.sent == []
