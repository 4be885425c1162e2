"""The sensor on consumer lag: one run for what is behind, a reason for all else, longer pauses for what fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from keptlog.errors import StorageUnavailable
from keptlog.ingest import lag, lag_news
from keptlog.log.lost_deletions import SeenCurrent, seen_current
from keptlog.log.source import IngestPlan, StoredSource, plan_ingest
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, HOUR_MS
from tests.orchestration.ingesting import IngestWorld, asked_by, ingest_world
from tests.orchestration.shipped import ingest_kafka, ingest_lag_sensor

SECOND_MS = 1000
MINUTE_MS = 60_000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def observed(result: dg.SensorResult) -> dict[str, dict[str, object]]:
    """By partition key, the numbers that a tick tells of sources."""
    assert all(each.asset_key.path[1] == "source" for each in result.asset_events)
    return {
        str(each.partition): {name: value.value for name, value in each.metadata.items()}
        for each in result.asset_events
    }


def test_it_runs_from_the_start_and_says_how_to_begin_while_no_topic_has_a_broker(here: IngestWorld) -> None:
    here.world.topic("appended")

    assert ingest_lag_sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert "no topic here has a Kafka source yet: `keptlog ingest kafka" in here.skips()


def test_one_run_is_asked_for_over_what_is_behind_new_partitions_too_and_brings_it_in(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"), partition=2)
    here.produce("orders", ("a", "1"), ("b", "1"))
    here.knows("users", 0, 0)
    here.knows("orders", 1, 0, 0, 0)

    (request,) = here.world.requests(ingest_lag_sensor)

    assert asked_by(request) == ["orders-0", "users-2", "users-3"]
    assert request.tags["keptlog/trigger"] == "consumer_lag"
    assert here.run(request).success
    assert here.world.records("users", 2) == [(0, b"a", b"1")]
    assert "2 ingested topics, 8 topic-partitions, none is behind its broker" in here.skips()


def test_too_little_is_waited_for_but_not_for_ever(here: IngestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_INGEST_MIN_LAG", "3")
    monkeypatch.setenv("KEPTLOG_INGEST_MAX_WAIT_MS", str(MINUTE_MS))
    here.knows("users", 0, 0, 0, 0)
    here.produce("users", ("a", "1"))
    here.produce("users", ("b", "1"), partition=1)
    assert "users is only 2 behind; due at 2027-01-15T08:01:00" in here.skips()

    here.world.now_ms += MINUTE_MS
    assert here.asked() == ["users-0", "users-1"]
    here.world.now_ms -= MINUTE_MS
    here.produce("users", ("c", "1"))
    assert here.asked() == ["users-0", "users-1"]


def test_the_wait_begins_anew_after_an_ingest(here: IngestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_INGEST_MIN_LAG", "3")
    monkeypatch.setenv("KEPTLOG_INGEST_MAX_WAIT_MS", str(MINUTE_MS))
    here.knows("users", 0, 0, 0, 0)
    here.produce("users", ("a", "1"))
    here.skips()
    assert here.ingest().success
    here.world.now_ms += MINUTE_MS
    here.produce("users", ("b", "1"))

    assert "users is only 1 behind" in here.skips()


def test_a_setting_that_is_no_number_is_told_and_breaks_no_tick(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_INGEST_MIN_LAG", "much")
    here.knows("users", 0)

    assert "KEPTLOG_INGEST_MIN_LAG=much is no whole number from 1 up" in here.skips()


def test_a_topic_that_is_being_ingested_is_not_asked_for_again(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    (request,) = here.world.requests(ingest_lag_sensor)
    instance = here.world.instance
    run = instance.create_run_for_job(ingest_kafka, run_config=request.run_config, status=dg.DagsterRunStatus.STARTED)

    assert "users is being ingested" in here.skips()
    instance.delete_run(run.run_id)
    assert here.asked() == ["users-0"]
    instance.create_run_for_job(
        here.world.defs.resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({dg.AssetKey(["users", "dirty"])}),
        status=dg.DagsterRunStatus.STARTING,
    )
    assert "users is being ingested" in here.skips()


def test_a_run_over_all_topics_counts_for_each(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0)
    here.world.instance.create_run_for_job(ingest_kafka, status=dg.DagsterRunStatus.STARTED)

    assert "users is being ingested" in here.skips()


def test_a_broker_that_does_not_answer_is_told_and_holds_up_no_other(
    here: IngestWorld,
) -> None:
    here.knows("orders", 0, bootstrap="127.0.0.1:1")
    assert "topic orders can't be looked at: no broker at 127.0.0.1:1 answers" in here.skips()

    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    here.knows("profiles", 0, there="gone")

    (request,) = here.world.requests(ingest_lag_sensor)
    assert asked_by(request) == ["users-0"]
    assert here.run(request).success
    assert "profiles: " in here.skips()
    assert "has no topic 'gone'" in here.skips()


def test_a_topic_that_is_made_anew_with_fewer_partitions_holds_up_no_other(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 0, 0, 0)
    here.skips()
    here.world.store.delete_topic("users", here.world.now_ms)
    here.knows("users", 1)
    here.produce("orders", ("a", "1"))
    here.knows("orders", 0, 0, 0, 0)

    assert "orders-0" in here.asked()


def test_of_a_topic_that_is_made_anew_nothing_is_remembered(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 0, 0, 0)
    assert "none is behind" in here.skips()
    here.world.store.delete_topic("users", here.world.now_ms)
    here.knows("users", 1, 0, 0, 0)
    here.produce("users", ("b", "1"))

    (request,) = here.world.requests(ingest_lag_sensor)

    assert asked_by(request) == ["users-0"]
    assert request.run_config["ops"]["ingest"]["config"]["seen_ms"] == {}


def test_a_run_is_told_when_nothing_was_missing_and_at_which_position(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Mapping[str, SeenCurrent]] = []

    def listen(stored: StoredSource, topic: str, seen: Mapping[str, SeenCurrent]) -> StoredSource:
        told.append(seen)
        return seen_current(stored, topic, seen)

    monkeypatch.setattr("keptlog.ingest.ingest_pass.seen_current", listen)
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 0, 0, 0)
    assert "none is behind" in here.skips()
    seen_ms = here.world.now_ms
    here.produce("users", ("b", "1"))
    (request,) = here.world.requests(ingest_lag_sensor)
    assert here.run(request).success
    assert [seen for seen in told if seen] == [{"users-0": SeenCurrent(1, seen_ms)}]


def test_a_trouble_with_one_topic_that_nobody_foresaw_is_told_and_costs_only_that_topic(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(topic: str, *known: Any) -> IngestPlan:
        if topic == "users":
            raise ZeroDivisionError("division by zero")
        return plan_ingest(topic, *known)

    monkeypatch.setattr(lag, "plan_ingest", plan)
    here.produce("users", ("a", "1"))
    here.produce("orders", ("a", "1"))
    here.knows("users", 0)
    here.knows("orders", 1, 0, 0, 0)
    assert "topic users: the look at it stopped at ZeroDivisionError: division by zero" in here.skips()
    here.produce("orders", ("b", "1"))

    assert here.asked() == ["orders-0"]


def test_a_topic_that_could_not_be_read_for_a_moment_is_looked_at_again(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StorageUnavailable("the bucket does not answer")

    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(LogStore, "load_table", away)
        here.skips()

    assert here.asked() == ["users-0"]


def test_what_is_stopped_is_asked_for_with_longer_and_longer_pauses_and_always_told(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 100, 0, 0, 0)
    why = "stopped: users-0: it ends at offset 100 here and at 1 at its source"

    keys = []
    for pause_ms in (15 * SECOND_MS, 30 * SECOND_MS):
        (request,) = here.world.requests(ingest_lag_sensor)
        assert asked_by(request) == ["users-0"]
        keys.append(request.run_key)
        assert "users-0: it ends at offset 100" in here.failure(here.run(request))
        here.world.now_ms += pause_ms - 1
        assert why in here.skips()
        assert ", the next ingest is at 2027-01-15" in here.skips()
        here.world.now_ms += 1
    assert len(set(keys)) == len(keys)


def test_what_an_ingest_has_stopped_at_is_named_once_and_waits_for_the_threshold(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.broker.produce("users", ("a", "1"), timestamp_ms=2**62)  # which no table can hold
    here.knows("users", 0, 0, 0, 0)
    (first,) = here.world.requests(ingest_lag_sensor)
    assert "which no table can hold" in here.failure(here.run(first))
    here.world.now_ms += 15 * SECOND_MS

    (again,) = here.world.requests(ingest_lag_sensor)

    assert asked_by(again) == ["users-0"]
    assert again.tags["keptlog/topic_partitions"] == "users-0"
    monkeypatch.setenv("KEPTLOG_INGEST_MIN_LAG", "3")
    monkeypatch.setenv("KEPTLOG_INGEST_MAX_WAIT_MS", str(HOUR_MS))
    assert "stopped: users-0" in here.skips()
    assert "users is only 1 behind" in here.skips()


def test_a_stopped_topic_partition_neither_holds_up_nor_fails_the_rest_of_its_topic(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"), partition=1)
    here.knows("users", 100, 0, 0, 0)
    (first,) = here.world.requests(ingest_lag_sensor)
    assert asked_by(first) == ["users-1", "users-0"]
    assert not here.run(first).success
    here.produce("users", ("b", "1"), partition=1)

    (second,) = here.world.requests(ingest_lag_sensor)

    assert asked_by(second) == ["users-1"]
    assert here.run(second).success
    assert here.world.records("users", 1) == [(0, b"a", b"1"), (1, b"b", b"1")]


def test_a_partition_without_a_leader_is_told_and_neither_holds_up_nor_fails_the_rest_of_its_topic(
    here: IngestWorld,
) -> None:
    here.produce("users", ("a", "1"), partition=0)
    here.knows("users", 0, 0, 0, 0)
    here.broker.lose_leader("users", 1)

    (request,) = here.world.requests(ingest_lag_sensor)

    assert asked_by(request) == ["users-0"]
    assert here.run(request).success
    assert here.world.records("users", 0) == [(0, b"a", b"1")]
    assert "users-1: topic users: its offsets can't be looked at" in here.skips()


def test_a_clock_that_was_ahead_when_a_topic_fell_behind_lengthens_no_wait(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_INGEST_MIN_LAG", "3")
    monkeypatch.setenv("KEPTLOG_INGEST_MAX_WAIT_MS", str(MINUTE_MS))
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    here.world.now_ms += DAY_MS
    here.skips()
    here.world.now_ms -= DAY_MS

    assert "users is only 1 behind; due at 2027-01-15T08:01:00" in here.skips()


def test_the_lag_of_every_topic_partition_is_observed_when_it_changes(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"), ("b", "1"), ("c", "1"))
    here.knows("users", 1, 7)

    first = observed(here.tick())

    told = {name: each for name, each in first["users-0"].items() if name != "log" and not name.startswith("topic_")}
    assert told == {"position": 1, "log_start_offset": 0, "last_stable_offset": 3, "consumer_lag": 2}
    assert str(first["users-1"]["stopped"]).startswith("it ends at offset 7 here and at 0 at its source")
    assert first["users-2"]["consumer_lag"] == 0
    assert observed(here.tick()) == {}
    here.produce("users", ("d", "1"))
    assert observed(here.tick()) == {}
    here.world.now_ms += 5 * MINUTE_MS
    assert {name: each["consumer_lag"] for name, each in observed(here.tick()).items()} == {"users-0": 3}
    assert here.ingest(topic_partitions=["users-0"]).success
    assert {name: each["consumer_lag"] for name, each in observed(here.tick()).items()} == {"users-0": 0}


def test_a_lag_is_observed_again_after_a_tick_that_dagster_did_not_store(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0)
    here.tick()
    assert here.ingest().success
    before = dict(here.world.cursors)
    assert list(observed(here.tick())) == ["users-0"]
    here.world.cursors = before

    assert list(observed(here.tick())) == ["users-0"]

    assert observed(here.tick()) == {}
    here.world.cursors.clear()
    here.world.instance.wipe_assets([dg.AssetKey(["users", "source"])])
    assert sorted(observed(here.tick())) == ["users-0", "users-1", "users-2", "users-3"], "Dagster knows of nothing"


def test_a_source_that_was_wiped_in_dagster_is_observed_again_once(here: IngestWorld) -> None:
    """It stayed empty until its lag changed, also where it said why it is stopped."""
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 5)
    while here.tick().asset_events:
        pass
    here.world.instance.wipe_assets([dg.AssetKey(["users", "source"])])

    again = observed(here.tick())

    assert sorted(again) == ["users-0", "users-1", "users-2", "users-3"]
    assert "stopped" in again["users-2"]
    assert [observed(here.tick()) for _ in range(2)] == [{}, {}]


def test_observations_come_a_few_at_a_time_stopped_ones_first_and_dagster_takes_them(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_news, "NEWS_PER_SCAN", 3)
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 5)

    first, second = here.tick(), here.tick()

    assert list(observed(first)) == ["users-2", "users-0", "users-1"]
    assert list(observed(second)) == ["users-3"]
    for event in [*first.asset_events, *second.asset_events]:
        here.world.instance.report_runless_asset_event(event)


def test_topics_that_no_commit_touched_are_not_read_again(here: IngestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 0, 0, 0)
    here.skips()
    monkeypatch.delattr(LogStore, "load_table")
    here.world.now_ms += HOUR_MS

    assert "none is behind" in here.skips()
