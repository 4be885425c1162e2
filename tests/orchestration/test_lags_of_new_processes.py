"""A process that ends after two ticks leaves no source unobserved, and a new one observes only what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.orchestration import told_lags
from keptlog.ingest import lag_news
from tests.orchestration.conftest import HOUR_MS
from tests.orchestration.ingesting import IngestWorld, ingest_world
from tests.orchestration.test_ingest_sensor import observed


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def test_processes_of_two_ticks_each_observe_all_topic_partitions_in_turn(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody has started a code server Dagster's daemon begins a process each minute."""
    monkeypatch.setattr(lag_news, "NEWS_PER_SCAN", 1)
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 5)
    seen: list[str] = []

    for _ in range(4):
        here.world.reopen()
        seen += [*observed(here.tick()), *observed(here.tick())]

    assert seen == ["users-2", "users-0", "users-1", "users-3"], "each once, first what is stopped"


@pytest.fixture
def unchanged(here: IngestWorld) -> IngestWorld:
    """All that there is was observed, and what a scan finds next is no other."""
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 5, 6)
    while here.tick().asset_events:
        pass
    return here


def test_a_new_process_observes_nothing_that_dagster_was_told(unchanged: IngestWorld) -> None:
    for _ in range(3):
        unchanged.world.reopen()
        unchanged.world.now_ms += HOUR_MS

        assert [observed(unchanged.tick()) for _ in range(2)] == [{}, {}]


def test_a_new_process_observes_what_has_changed_since_the_last_one(unchanged: IngestWorld) -> None:
    unchanged.world.reopen()
    unchanged.produce("users", ("a", "1"), partition=1)

    assert list(observed(unchanged.tick())) == ["users-1"]


def test_a_new_process_asks_dagster_about_a_few_topic_partitions_a_tick(
    unchanged: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told_lags, "ASKED_PER_TICK", 2)
    asked: list[str] = []
    really = dg.DagsterInstance.fetch_observations

    def fetch_observations(instance: dg.DagsterInstance, records_filter: dg.AssetRecordsFilter, limit: int) -> Any:
        asked.extend(records_filter.asset_partitions or ())
        return really(instance, records_filter, limit)

    monkeypatch.setattr(dg.DagsterInstance, "fetch_observations", fetch_observations)

    for _ in range(3):
        unchanged.world.reopen()
        unchanged.tick()

    assert sorted(asked[:4]) == ["users-0", "users-1", "users-2", "users-3"], "a new process goes on behind the last"
    asked.clear()
    unchanged.tick()
    unchanged.tick()
    assert len(asked) == 2, "each is asked about once"


def test_stopped_ones_whose_reason_changes_all_the_time_keep_no_other_one_waiting(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_news, "NEWS_PER_SCAN", 2)
    here.knows("users", 0, 50, 50, 0)
    seen: list[str] = []

    for _ in range(4):
        for partition in (1, 2):
            here.produce("users", ("a", "1"), partition=partition)
        here.world.reopen()
        seen += observed(here.tick())

    assert {"users-0", "users-3"} <= set(seen)
    assert {seen.count("users-1"), seen.count("users-2")} != {0}
