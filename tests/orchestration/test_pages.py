"""What an asset's page says without a click: the sensors that look after it, what its logs wait for, and until when."""

from __future__ import annotations

import re

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import SensorSnap

from keptlog.log.broker import CLEANER_DISABLED
from keptlog.log.segment import Log
from keptlog.log.source import SourceIdentity
from keptlog.passes.marked import Death
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import CLEAN_SENSORS, KEYS, dirty_ratio_sensor, health_sensor


def test_a_clean_section_lists_the_sensors_that_clean_it_and_they_ask_for_runs_of_the_job(world: World) -> None:
    """Dagster's webserver goes by what is pinned here."""
    world.topic("users")
    world.topic("orders")
    repository = world.defs.get_repository_def()
    graph = repository.asset_graph

    for sensor in CLEAN_SENSORS:
        snap = SensorSnap.from_def(repository.get_sensor_def(sensor.name), repository)
        assert list(snap.target_dict) == ["clean_logs"]
        assert snap.asset_selection
        listed = {key for key in snap.asset_selection.resolve(graph) if key.path[-1] != "dirty"}
        assert listed == {
            dg.AssetKey(["users", "clean"]),
            dg.AssetKey(["orders", "clean"]),
        }
    health = SensorSnap.from_def(repository.get_sensor_def("health_sensor"), repository)
    assert health.target_dict == {}
    assert health.asset_selection
    assert health.asset_selection.resolve(graph) == {dg.AssetKey(["keptlog", "health"])}


def test_erasures_and_what_is_ingested_list_the_sensors_that_look_after_them(world: World) -> None:
    world.topic("users")
    world.topic("orders")
    world.store.ingest("orders", [], SourceIdentity("crm.orders", None, "127.0.0.1:1"), 1, "remember-its-source")
    repository = world.defs.get_repository_def()

    snaps = {sensor.name: SensorSnap.from_def(sensor, repository) for sensor in repository.sensor_defs}

    listed = {
        name: snap.asset_selection.resolve(repository.asset_graph)
        for name, snap in snaps.items()
        if snap.asset_selection and name not in {sensor.name for sensor in CLEAN_SENSORS}
    }
    assert listed == {
        "health_sensor": {dg.AssetKey(["keptlog", "health"])},
        "erasure_sensor": {dg.AssetKey(["erasures"])},
        "ingest_lag_sensor": {dg.AssetKey(["orders", "source"]), dg.AssetKey(["orders", "dirty"])},
    }
    assert list(snaps["erasure_sensor"].target_dict) == ["clean_logs", "purge", "verify_erasures"]
    assert list(snaps["ingest_lag_sensor"].target_dict) == ["ingest_kafka"]


def test_the_sensors_of_a_home_without_topics_are_on_no_page(world: World) -> None:
    repository = world.defs.get_repository_def()
    snaps = [SensorSnap.from_def(sensor, repository) for sensor in repository.sensor_defs]
    assert [snap.asset_selection for snap in snaps] == [None] * len(snaps)


def test_both_sections_tell_why_nothing_is_cleaned_until_when_and_the_totals_of_the_topic(world: World) -> None:
    world.topic("users", 2, min_cleanable_dirty_ratio="1", max_compaction_lag_ms=str(7 * DAY_MS))
    world.append("users", ("a", "1"), ("b", "1"))
    world.append("users", ("c", "1"), partition=1, age_ms=HOUR_MS // 2)

    events = world.tick(dirty_ratio_sensor).asset_events
    *looks, first, second, clean = ({name: each.value for name, each in event.metadata.items()} for event in events)

    assert first["why"] == (
        "left alone: dirty ratio 1.00 is not above min.cleanable.dirty.ratio=1.0 and no record is past its maximum lag"
    )
    assert (first["due_at"], first["deadline"]) == (
        "2027-01-21T08:00:00.001Z, or with new records",
        "2027-01-21T08:00:00.000Z",
    )
    assert second["why"] == "left alone: all dirty records are in the active segment"
    for told in (*looks, first, second, clean):
        assert str(told["topic_why"]).splitlines() == [f"* users-0: {first['why']}", f"* users-1: {second['why']}"]
        # The other log's segment is closed before, but its ratio can't be above 1 then.
        assert (told["topic_due_at"], told["topic_deadline"]) == (first["due_at"], first["deadline"])
        assert (told["topic_logs"], told["topic_records"], told["topic_dirty_records"]) == (2, 3, 3)
        assert told["topic_cleanable_bytes"] + told["topic_waiting_bytes"] == told["dagster/size_bytes"]  # type: ignore[operator]
    assert clean["dagster/row_count"] == 3
    assert [(event.asset_key.path[-1], event.partition) for event in events] == [
        ("clean", "users-0"),
        ("clean", "users-1"),
        ("dirty", "users-0"),
        ("dirty", "users-1"),
        ("clean", None),
    ]


def test_neither_a_path_nor_a_long_name_makes_the_reason_wider_than_the_window(world: World) -> None:
    """Both columns of the page were as wide as the path, and what is to be done stood behind its edge."""
    topic = f"server.{'very_' * 10}long.schema.users"
    world.topic(topic)
    world.append(topic, ("a", "1"))
    name = f"00000000000000000000-{'e' * 32}-{'f' * 32}.parquet"
    why = f"file:///srv/keptlog/warehouse/keptlog/users/data/partition=0/{name} is damaged: put it back"
    death = Death((f"{topic}-0",), why, world.now_ms)
    world.log_store.cleaner().mark_still_due(death, set(), now_ms=world.now_ms)

    told = [each.metadata for each in world.tick(dirty_ratio_sensor).asset_events]

    texts = {key: str(value.value) for each in told for key, value in each.items() if not key.startswith("dagster/")}
    reasons = [texts[key] for key in ("why", "topic_why", "uncleanable")]
    assert all("…/00000000000000000000-…ffff.parquet is damaged: put it back" in each for each in reasons)
    assert all(len(word) <= 28 for each in texts.values() for word in re.split(r"[\s-]", each)), texts
    assert texts["topic_why"].startswith("server.very_ve…chema.users-0: "), texts
    assert all("location" not in each for each in told), "Dagster shows it as the asset's storage already"


def test_a_log_that_failed_is_due_when_it_is_tried_again_and_not_with_new_records(world: World) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    death = Death(("users-0",), "no space", world.now_ms)
    world.log_store.cleaner().mark_still_due(death, set(), now_ms=world.now_ms)

    told = [
        {name: each.value for name, each in event.metadata.items()}
        for event in world.tick(dirty_ratio_sensor).asset_events
    ]

    retry = "2027-01-15T08:00:15.000Z"
    assert [page["due_at"] for page in told if "due_at" in page] == [
        f"{retry}, when it is tried again",
        "with new records",
    ]
    assert {page["topic_due_at"] for page in told if "topic_due_at" in page} == {f"{retry}, or with new records"}


def test_a_log_that_failed_and_is_not_due_says_from_when_new_records_make_it_so(world: World) -> None:
    """As after a setting was changed: it said that new records make it due, and it is left alone with these too."""
    world.topic("users", 1)
    world.append("users", ("a", "1"), ("a", "2"))
    world.log_store.cleaner().mark_still_due(Death(("users-0",), "no space", world.now_ms), set(), now_ms=world.now_ms)
    world.store.alter_topic("users", {"min.cleanable.dirty.ratio": "1"})

    told = [event.metadata for event in world.tick(dirty_ratio_sensor).asset_events]

    due = {str(page[name].value) for page in told for name in ("due_at", "topic_due_at") if name in page}
    assert due == {"with new records from 2027-01-15T08:00:15.000Z on"}


def test_with_the_cleaner_off_no_page_promises_a_clean(world: World) -> None:
    world.topic("users", 3, min_cleanable_dirty_ratio="0.6", max_compaction_lag_ms=str(7 * DAY_MS))
    world.append("users", ("a", "1"), ("b", "1"))
    world.append("users", ("c", "1"), partition=1, age_ms=HOUR_MS // 2)
    world.append("users", ("c", "1"), ("c", "2"), partition=2)
    died = Death(("users-2",), "run 7 died", world.now_ms)
    world.log_store.cleaner().mark_still_due(died, set(), now_ms=world.now_ms)
    (world.path / "server.properties").write_text("log.cleaner.enable=false")
    world.reopen()
    when = "when log.cleaner.enable=true is in the broker settings"

    events = [*world.tick(dirty_ratio_sensor).asset_events, *world.tick(health_sensor).asset_events]
    told = [{name: str(each.value) for name, each in event.metadata.items()} for event in events]

    assert {page["due_at"] for page in told if "due_at" in page} == {when}
    assert {page["topic_due_at"] for page in told if "topic_due_at" in page} == {when}
    assert {page["topic_why"] for page in told if "topic_why" in page} == {
        f"users-0, users-1, users-2: left alone: {CLEANER_DISABLED}"
    }
    assert {page["why"] for page in told if "why" in page} == {f"left alone: {CLEANER_DISABLED}"}
    (marked,) = [page["uncleanable"] for page in told if "uncleanable" in page]
    assert f"next try {when}" in marked
    table = told[-1]["worst_logs"].splitlines()[2:]
    assert [CLEANER_DISABLED in line for line in table] == [True] * 3
    assert ["| cleaner off |" in line for line in table] == [True] * 3
    assert CLEANER_DISABLED in world.skips(health_sensor)


def test_a_topic_that_is_only_deleted_from_is_promised_no_clean(world: World) -> None:
    """It was shown as the latest record of every key, which sensors clean when it is due."""
    world.topic("users", cleanup_policy="delete")
    world.append("users", ("a", "1"))
    never = "never: cleanup.policy is delete"

    events = [*world.tick(dirty_ratio_sensor).asset_events, *world.tick(health_sensor).asset_events]
    told = [{name: str(each.value) for name, each in event.metadata.items()} for event in events]

    assert {page["due_at"] for page in told if "due_at" in page} == {never}
    assert {page["topic_due_at"] for page in told if "topic_due_at" in page} == {never}
    assert not any("cleaned_by" in page for page in told)
    assert "| never |" in told[-1]["worst_logs"]


@pytest.mark.parametrize(
    ("policy", "clean", "dirty"),
    [
        (
            "delete",
            "All records of users, in order, at their own offsets. The oldest segments go by retention.ms and "
            "retention.bytes; the topic is not compacted.",
            "No clean comes to them: the topic is not compacted.",
        ),
        (
            "compact,delete",
            "The latest record of every key of users, in order, at their own offsets. The sensors clean it when it is "
            "due; materialize partitions to clean them now. The oldest segments go by retention.ms and "
            "retention.bytes too, whatever their keys.",
            "told when they change.",
        ),
        (
            "",
            "All records of users, in order, at their own offsets. Nothing goes by itself; the topic is not compacted.",
            "No clean comes to them: the topic is not compacted.",
        ),
    ],
)
def test_the_description_of_a_section_is_that_of_its_cleanup_policy(
    world: World, policy: str, clean: str, dirty: str
) -> None:
    world.topic("users", cleanup_policy=policy)
    world.reopen()
    specs = {spec.key: spec.description or "" for spec in world.defs.resolve_all_asset_specs()}
    assert specs[KEYS.clean("users")] == clean
    assert specs[KEYS.dirty("users")].endswith(dirty)


def test_a_clean_of_one_log_tells_the_totals_of_the_whole_topic(world: World) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    world.append("users", ("b", "1"), ("c", "2"), partition=1)

    world.more_resources["spark"] = InProcessSpark(spark_config={})
    assert world.clean("users-0").success

    event = world.instance.get_latest_materialization_event(dg.AssetKey(["users", "clean"]))
    assert event
    assert event.asset_materialization
    told = {name: each.value for name, each in event.asset_materialization.metadata.items()}
    assert (told["records_out"], told["topic_records"], told["topic_logs"]) == (1, 3, 2)
    assert str(told["topic_why"]).startswith("* users-0: left alone: clean")
    assert told["topic_due_at"] == "now", "users-1 is due"


def test_a_dirty_section_is_as_large_as_what_is_dirty_and_the_clean_one_as_the_whole_table(world: World) -> None:
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    world.append("users", ("b", "1"), ("c", "2"), partition=1)
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    assert world.clean("users-0").success

    sizes = {
        event.asset_key.path[-1]: {name: each.value for name, each in event.metadata.items()}
        for event in world.tick(dirty_ratio_sensor).asset_events
    }

    dirty_bytes, clean_bytes = (sum(segment.size_bytes for segment in log.segments) for log in _logs(world, 1, 0))
    assert sizes["dirty"]["dagster/size_bytes"] == dirty_bytes
    assert sizes["clean"]["dagster/size_bytes"] == dirty_bytes + clean_bytes


def _logs(world: World, *partitions: int) -> list[Log]:
    logs = world.store.logs("users")
    return [logs[partition] for partition in partitions]
