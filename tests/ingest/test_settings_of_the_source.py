"""A topic that is made as it is at its broker keeps what it keeps there, whatever this home's settings say."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigSource

from keptlog.home import new_id, wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.config import DECIDING, TopicConfig
from keptlog.sources.kafka_broker import topics
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.mock_broker import mock_broker

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
HOME_FOR_COMPACTION = {
    "log.cleanup.policy": "compact",
    "log.cleaner.compaction.strategy": "timestamp",
    "log.cleaner.delete.retention.ms": "0",
    "log.retention.hours": "1",
    "log.retention.bytes": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
}


@dataclass(frozen=True)
class Entry:
    """What a broker says of one setting."""

    name: str
    value: str | None
    source: int


def default(name: str, value: str | None) -> Entry:
    return Entry(name, value, ConfigSource.DEFAULT_CONFIG.value)


STOCK = (
    default("cleanup.policy", "delete"),
    default("retention.ms", str(7 * DAY_MS)),
    default("retention.bytes", "-1"),
    default("delete.retention.ms", str(DAY_MS)),
    default("min.cleanable.dirty.ratio", "0.5"),
    default("compression.type", "producer"),
    default("min.insync.replicas", "1"),
)


def made_here(
    home: Path, monkeypatch: pytest.MonkeyPatch, entries: tuple[Entry, ...], config: dict[str, str]
) -> tuple[TopicConfig, set[str]]:
    """How a new topic is configured in a home for compaction, and what was left out of its settings there."""
    said = {"new": {entry.name: entry for entry in entries}}
    monkeypatch.setattr(topics, "_all_settings", lambda *_: (said, {}))
    home.mkdir(exist_ok=True)
    store = LogStore(open_catalog(home), HOME_FOR_COMPACTION, sleep=time.sleep, new_id=new_id)
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    with mock_broker() as broker:
        broker.produce("new", ("a", "1"))
        source = partial(KafkaBrokers, ClientSettings.load({}, {}), {"new": "new"}, broker.bootstrap)
        plans = ingest.plan(source(config, with_broker_config=True))
        assert not ingest.carry_out(plans, "1").failed
    return store.describe_topic("new").config, set(plans.topics[0].left_out)


def test_a_default_at_the_source_decides_what_goes_and_not_a_setting_of_this_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, left_out = made_here(tmp_path / "home", monkeypatch, STOCK, {})
    assert (config.cleanup_policy, config.compaction_strategy) == (("delete",), "offset")
    assert (config.retention_ms, config.retention_bytes, config.delete_retention_ms) == (7 * DAY_MS, -1, DAY_MS)
    assert left_out == set()


def test_what_only_decides_when_something_is_done_is_the_homes_where_it_is_a_default_at_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = made_here(tmp_path / "home", monkeypatch, STOCK, {})
    assert config.min_cleanable_dirty_ratio == 0.1


def test_what_is_asked_for_goes_on_top_of_a_default_at_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"retention.ms": str(2 * HOUR_MS), "compaction.strategy": "timestamp"}
    config, _ = made_here(tmp_path / "home", monkeypatch, STOCK, wanted)
    assert (config.retention_ms, config.compaction_strategy) == (2 * HOUR_MS, "timestamp")


def test_a_strategy_that_the_source_names_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some that speak Kafka's protocol have KIP-280."""
    header = Entry("compaction.strategy.header", "version", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    entries = (*STOCK, default("compaction.strategy", "header"), header)
    config, _ = made_here(tmp_path / "home", monkeypatch, entries, {})
    assert (config.compaction_strategy, config.compaction_strategy_header) == ("header", "version")


def test_a_value_that_only_older_brokers_take_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a topic did not come in at all. Kafka before 4 has segments of any size."""
    small = Entry("segment.bytes", "30000", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    config, left_out = made_here(tmp_path / "home", monkeypatch, (*STOCK, small), {})
    assert (config.segment_bytes, left_out) == (2**30, {"segment.bytes"})


def test_what_is_asked_for_in_its_place_is_not_told_as_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Entry("segment.bytes", "30000", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    config, left_out = made_here(tmp_path / "home", monkeypatch, (*STOCK, small), {"segment.bytes": "2000000"})
    assert (config.segment_bytes, left_out) == (2_000_000, set())


def test_what_the_source_does_not_say_is_the_homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, _ = made_here(tmp_path / "home", monkeypatch, (*STOCK[2:], default("retention.ms", None)), {})
    assert (config.cleanup_policy, config.retention_ms) == (("compact",), HOUR_MS)
    assert set(config.of_the_topic) == set(DECIDING)
