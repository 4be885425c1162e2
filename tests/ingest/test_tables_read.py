"""An ingest of some topics reads the tables of these alone, each once before it reads its source."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from keptlog.dagster.orchestration import ingest_job
from keptlog.dagster.orchestration.ingest_job import IngestConfig
from keptlog.home import wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.memory import MemorySource


@pytest.fixture
def read(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Which tables are read, of a store with two topics of a broker."""
    for topic in ("others", "users"):
        store.create_topic(topic, 1, {})
        source = SourceIdentity(f"{topic}-there", bootstrap="127.0.0.1:1")
        store.ingest(topic, [Arrival(OffsetRange(0, None, 0, 0), ())], source, 1, "run")
    counted: Counter[str] = Counter()
    really = store.load_table

    def load(topic: str) -> Any:
        counted[topic] += 1
        return really(topic)

    monkeypatch.setattr(store, "load_table", load)
    return counted


@pytest.mark.parametrize("config", [IngestConfig(topic_partitions=["users-0"]), IngestConfig(topics=["users"])])
def test_a_run_that_names_what_it_ingests_reads_no_other_table(
    store: LogStore, read: Counter[str], config: IngestConfig
) -> None:
    log_store: Any = SimpleNamespace(store=store, perhaps_away=lambda: "")
    only = {TopicPartition.parse(name) for name in config.topic_partitions}
    assert ingest_job._topics(config, only, log_store) == {"users": "users-there"}
    assert read == {"users": 1}


def test_a_run_that_names_nothing_reads_them_all(store: LogStore, read: Counter[str]) -> None:
    log_store: Any = SimpleNamespace(store=store, perhaps_away=lambda: "")
    assert ingest_job._topics(IngestConfig(), set(), log_store).keys() == {"others", "users"}
    assert read == {"others": 1, "users": 1}


def test_a_plan_reads_each_of_its_tables_once(store: LogStore, read: Counter[str]) -> None:
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    ingest.plan(MemorySource({"users": (3,), "new": (3,)}))
    assert read == {"users": 1}
