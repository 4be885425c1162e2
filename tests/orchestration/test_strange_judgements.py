"""A log of which something can't be told, in a way that no code foresees, costs only its topic in runs and ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.assets import outlook
from keptlog.log.assessment import Assessment, assess
from keptlog.log.segment import Log
from keptlog.log.topic_partition import TopicPartition
from tests.orchestration.conftest import World, logs_of
from tests.orchestration.shipped import dirty_ratio_sensor, health_sensor, max_compaction_lag_sensor, retention_sensor

CLEAN = dg.AssetKey(["users", "clean"])
Told = Log | Assessment | Sequence[Assessment]


def strange(really: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same, which takes logs or judgements first, and stops where this topic or topic-partition is among them."""

    def tell(told: Told, *rest: Any, **more: Any) -> Any:
        if any(name in {str(each), each.topic} for each in _names(told)):
            raise OverflowError("int too large")
        return really(told, *rest, **more)

    return tell


def _names(told: Told) -> list[TopicPartition]:
    if isinstance(told, Log):
        return [told.topic_partition]
    return [each.log.topic_partition for each in ([told] if isinstance(told, Assessment) else told)]


def _metadata(told: dg.EventLogRecord) -> Mapping[str, Any]:
    assert told.asset_materialization
    return told.asset_materialization.metadata


def cleaned_by_hand(world: World, name: str) -> dg.ExecuteInProcessResult:
    job = world.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={CLEAN})
    return job.execute_in_process(instance=world.instance, partition_key=name, raise_on_error=False)


@pytest.fixture
def users(world: World) -> World:
    """Two logs; one is to be cleaned."""
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    world.append("users", ("a", "1"), partition=1)
    return world


@pytest.fixture
def two(world: World) -> World:
    """Two topics with a log each that is due."""
    for topic in ("odd", "fine"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    return world


def test_a_clean_that_has_landed_is_told_though_another_log_of_the_topic_cant_be_judged(
    users: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step ended in a KeyError, and nobody was told of the clean."""
    _ = users.defs
    monkeypatch.setattr("keptlog.passes.judging.assess", strange(assess, "users-1"))
    result = cleaned_by_hand(users, "users-0")
    assert (result.success, users.records("users")) == (True, [(1, b"a", b"2")])
    [told] = users.instance.fetch_materializations(CLEAN, limit=9).records
    assert (told.partition_key, "topic_id" in _metadata(told)) == ("users-0", True)
    assert any("what users waits for is not told: " in text for level, text in users.told(result) if level == "WARNING")


@pytest.mark.parametrize("name", ["users-0", "users-1"])
def test_a_look_or_clean_is_told_though_nobody_can_tell_what_its_topic_waits_for(
    users: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(outlook, "_reasons", strange(outlook._reasons, "users"))
    result = cleaned_by_hand(users, name)
    assert result.success
    [told] = users.instance.fetch_materializations(CLEAN, limit=9).records
    assert (told.partition_key, "topic_id" in _metadata(told), "topic_why" in _metadata(told)) == (name, True, False)
    assert any("what users waits for is not told: " in text for level, text in users.told(result) if level == "WARNING")


@pytest.mark.parametrize("what", ["_reasons", "verdict_under"])
def test_a_log_is_cleaned_though_nobody_can_tell_what_another_topic_waits_for(
    two: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The tick ended before it asked for a clean, each time."""
    monkeypatch.setattr(outlook, what, strange(getattr(outlook, what), "odd"))
    result = two.tick(dirty_ratio_sensor)
    [request] = result.run_requests or []
    assert sorted(logs_of(request)) == ["fine-0", "odd-0"]
    assert dg.AssetKey(["fine", "dirty"]) in {each.asset_key for each in result.asset_events}


@pytest.mark.parametrize("what", ["urgency", "dirty_version", "deadline_ms", "late_from_ms", "holdings"])
def test_whatever_a_judgement_cant_say_costs_only_its_topic_in_the_ticks_of_all_sensors(
    two: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """It was asked for where all topics are sorted, digested, or shown: that ended the tick."""
    monkeypatch.setattr(Assessment, what, property(strange(vars(Assessment)[what].fget, "odd")))
    asked = [logs_of(request) for request in two.requests(dirty_ratio_sensor)]
    for sensor in (max_compaction_lag_sensor, health_sensor, retention_sensor(300)):
        two.tick(sensor)
    assert asked == [["fine-0"]]
    assert "odd can't be read: the look at it stopped at OverflowError" in two.skips(max_compaction_lag_sensor)
