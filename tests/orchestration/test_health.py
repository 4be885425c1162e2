"""What the asset ``keptlog/health`` tells: fed by what other sensors have seen, and honest about what nobody has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.assets.health import FULL_MS, ROWS
from keptlog.dagster.assets.mount import MountCall
from keptlog.dagster.orchestration.health_sensor import SHARED_MS
from keptlog.errors import LogCorrupt
from keptlog.notify.checks import checks_file
from keptlog.passes.marked import Death
from keptlog.passes.observer import Overview
from keptlog.table.metadata.logs import ObservedTopic
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World, unreadable_topics
from tests.orchestration.ingesting import ingest_world
from tests.orchestration.shipped import dirty_ratio_sensor, health_sensor, ingest_lag_sensor

MINUTE_MS = 60_000


def report(world: World) -> dg.AssetMaterialization | dg.AssetObservation:
    (event,) = world.tick(health_sensor).asset_events
    assert isinstance(event, dg.AssetMaterialization | dg.AssetObservation)
    assert event.asset_key == dg.AssetKey(["keptlog", "health"])
    return event


def told(world: World) -> dict[str, object]:
    return {name: value.value for name, value in report(world).metadata.items()}


def rows(world: World) -> list[list[str]]:
    """Of the table of a report in full, with the hyphens and spaces that people type."""
    table = str(told(world)["worst_logs"]).translate({0x2011: "-", 0xA0: " "})
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def test_the_worst_log_comes_first_with_its_reason_its_deadline_and_a_link(world: World) -> None:
    world.topic("fine")
    world.topic("crm.late", max_compaction_lag_ms=str(HOUR_MS))
    world.append("crm.late", ("a", "1"))
    world.topic("waiting", min_cleanable_dirty_ratio="1", max_compaction_lag_ms=str(7 * DAY_MS))
    world.append("waiting", ("a", "1"))

    late, waiting, fine = rows(world)
    world.cursors.clear()
    metadata = told(world)

    assert late[0] == "[crm.late-0](../crm.late/clean)"
    assert late[2:4] == ["**23 h**", "2027-01-14 09:00"]
    assert (late[5], late[4]) == ("to be cleaned now: a record is 23 h past max.compaction.lag.ms", "now")
    assert waiting[:3] == ["[waiting-0](../waiting/clean)", "1.00", "no"]
    assert "is not above min.cleanable.dirty.ratio=1.0" in waiting[5]
    assert waiting[4] == "2027-01-21 08:00"
    assert metadata["nearest_deadline"] == "[crm.late-0](../crm.late/clean) 2027-01-14 09:00 UTC"
    first, second, _ = str(metadata["worst"]).splitlines()
    assert first.startswith("* [crm.late-0](../crm.late/clean), **late by 23 h**: to be cleaned now")
    assert second.startswith("* [waiting-0](../waiting/clean), deadline 2027-01-21 08:00: dirty ratio")
    assert fine[3:] == ["none", "with new records", "empty: nothing was ever appended"]


def test_the_worst_at_a_glance_says_what_helps_of_a_file_its_offset_and_its_end_and_of_times_the_minute(
    world: World,
) -> None:
    world.topic("users")
    world.append("users", ("a", "1"))
    name = f"00000000000000000000-{'e' * 32}-{'f' * 32}.parquet"
    helps = "it is damaged; put the file back from a copy of the storage"
    why = f"file:///srv/keptlog/warehouse/keptlog/users/data/partition=0/{name} has 4 bytes, not 1686: {helps}"
    world.log_store.cleaner().mark_still_due(Death(("users-0",), why, world.now_ms), set(), now_ms=world.now_ms)

    worst = str(told(world)["worst"])

    assert f"…/00000000000000000000-…ffff.parquet has 4 bytes, not 1686: {helps}" in worst
    assert "file://" not in worst
    assert "uncleanable since 2027-01-15 08:00 UTC" in worst


def test_a_long_name_is_cut_in_its_middle_and_its_link_has_all_of_it(world: World) -> None:
    topic = f"server.{'very-' * 10}long.schema.users"
    world.topic(topic, max_compaction_lag_ms=str(HOUR_MS))
    world.append(topic, ("a", "1"))

    metadata = told(world)

    link = f"[server.very-very-ver…long.schema.users-0](../{topic}/clean)"
    assert str(metadata["worst"]).startswith(f"* {link}, **late by 23 h**")
    assert str(metadata["nearest_deadline"]).startswith(f"{link} 2027-01-14")
    assert f"| {link} |" in str(metadata["worst_logs"])


def test_the_numbers_that_are_plotted(world: World) -> None:
    world.topic("late", 2, max_compaction_lag_ms=str(HOUR_MS))
    world.append("late", ("a", "1"))
    world.append("late", ("a", "1"), age_ms=0, partition=1)

    numbers = told(world)

    assert (numbers["topics"], numbers["logs"], numbers["logs_late"], numbers["logs_due"]) == (1, 2, 1, 1)
    assert (numbers["logs_uncleanable"], numbers["topics_not_looked_at"]) == (0, 0)
    assert numbers["largest_late_ms"] == 23 * HOUR_MS
    assert numbers["cleanable_bytes"] == numbers["waiting_bytes"]
    assert "consumer_lag" not in numbers, "nothing is ingested"
    assert numbers["not_looked_at"] == "nothing"


def test_what_another_sensor_has_seen_is_not_looked_at_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topic("users")
    world.tick(dirty_ratio_sensor)
    observer = world.log_store.observer
    looks: list[int] = []
    look = observer.look

    def counted(now_ms: int) -> Overview:
        looks.append(now_ms)
        return look(now_ms)

    monkeypatch.setattr(observer, "look", counted)

    assert told(world)["logs"] == 1
    world.now_ms += SHARED_MS - 1
    assert told(world)["logs"] == 1
    assert looks == []
    world.now_ms += 1
    assert told(world)["logs"] == 1
    assert looks == [world.now_ms], "the other sensors are off"


def test_it_is_told_in_full_when_something_has_changed_and_in_numbers_otherwise(world: World) -> None:
    world.topic("users", min_cleanable_dirty_ratio="1", max_compaction_lag_ms=str(DAY_MS + HOUR_MS))
    world.append("users", ("a", "1"))
    kinds = []
    for _ in range(3):
        kinds.append(type(report(world)))
        world.now_ms += MINUTE_MS
    assert kinds == [dg.AssetMaterialization, dg.AssetObservation, dg.AssetObservation]
    world.reopen()
    assert isinstance(report(world), dg.AssetObservation), "a new process knows what was told"
    assert len(world.cursors["health_sensor"] or "") < 50

    world.now_ms += HOUR_MS
    assert isinstance(report(world), dg.AssetMaterialization), "it is late now"
    world.now_ms += FULL_MS
    assert isinstance(report(world), dg.AssetMaterialization), "told in full now and then"


def test_a_topic_that_cannot_be_read_is_neither_fine_nor_late(world: World) -> None:
    world.topic("good")
    world.topic("odd")
    world.store.load_table("odd").transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()

    numbers = told(world)

    assert (numbers["logs"], numbers["topics_not_looked_at"], numbers["logs_late"]) == (1, 1, 0)
    assert str(numbers["not_looked_at"]).startswith("* odd: ")
    assert "not looked at: odd: " in world.skips(health_sensor)


def test_of_many_topics_that_cannot_be_read_the_tick_says_how_many_more_there_are(world: World) -> None:
    unreadable_topics(world, 5)

    told = world.skips(health_sensor)

    assert told.count("log.p0.log-end-offset='many'") == 3
    assert told.endswith("; and 2 more")


def test_a_reason_of_several_lines_is_told_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topic("good")
    world.topic("odd")
    really = LogStore.observe

    def observe(store: LogStore, topic: str, location: str | None = None) -> ObservedTopic:
        if topic == "odd":
            raise LogCorrupt("odd: it is broken in two places:\nhere\nand there")
        return really(store, topic, location)

    monkeypatch.setattr(LogStore, "observe", observe)
    assert "odd: it is broken in two places: here and there" in str(told(world)["not_looked_at"])


def test_a_path_makes_no_report_wider_than_its_window(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topic("odd")
    path = f"s3://{'/'.join(['acme-data-lake'] * 12)}/metadata/00012-a.metadata.json"

    def observe(store: LogStore, topic: str, location: str | None = None) -> ObservedTopic:
        raise LogCorrupt(f"{topic}: {path} is damaged")

    monkeypatch.setattr(LogStore, "observe", observe)
    event = report(world)
    assert "…/00012-a.metadata.json is damaged" in str(event.metadata["not_looked_at"].value)
    assert "odd: …/00012-a.metadata.json is damaged" in str(event.description)


def test_where_nothing_can_be_looked_at_no_number_is_told(world: World) -> None:
    world.topic("users")
    world.tick(dirty_ratio_sensor)
    moved = world.path.rename(world.path.with_name("elsewhere"))
    world.path.write_text("not a folder")

    numbers = told(world)

    # That would be a plot in which no topic is missing, while none was looked at.
    assert {"logs", "logs_late", "largest_late_ms", "worst_logs", "topics_not_looked_at"}.isdisjoint(numbers)
    assert str(numbers["not_looked_at"]).startswith("* the home: ")
    assert "nothing could be looked at" in world.skips(health_sensor)

    world.path.unlink()
    moved.rename(world.path)
    assert told(world)["logs"] == 1


def test_why_a_due_log_is_not_cleaned_this_moment(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    assert rows(world)[0][5].startswith("to be cleaned now: dirty ratio 1.00")
    config = {"ops": {"plan": {"config": {"logs": ["users-0"]}}}}
    job = world.defs.get_job_def("clean_logs")
    run = world.instance.create_run_for_job(job, run_config=config, status=dg.DagsterRunStatus.STARTED)
    assert rows(world)[0][5] == "it is being cleaned"
    world.instance.delete_run(run.run_id)

    (world.path / "server.properties").write_text("log.cleaner.enable=false")
    world.reopen()
    assert "log.cleaner.enable=false" in rows(world)[0][5]


def test_a_due_log_that_the_next_run_has_no_room_for_says_too_that_spark_is_down(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.dagster.orchestration.requests.LOGS_PER_RUN", 1)
    monkeypatch.setattr(MountCall, "why_spark_is_down", lambda _: "Spark is down")
    for topic in ("orders", "users"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    assert [row[5] for row in rows(world)] == ["Spark is down", "Spark is down"]


def test_an_uncleanable_log_says_when_it_is_tried_again(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    died = Death(("users-0",), "run 7 died", world.now_ms)
    world.log_store.cleaner().mark_still_due(died, set(), now_ms=world.now_ms)

    assert told(world)["logs_uncleanable"] == 1
    world.cursors.clear()
    (row,) = rows(world)
    assert row[5].startswith("uncleanable since 2027-01-15T08:00:00.000Z, next try at ")
    assert "run 7 died" in row[5]
    assert row[4] >= "2027-01-15 08:00"

    world.now_ms += HOUR_MS
    world.cursors.clear()
    (again,) = rows(world)
    assert "run 7 died; to be cleaned now: dirty ratio 1.00" in again[5]


@pytest.mark.parametrize(
    ("first_ms", "next_try"), [(15_000, "with new records from 2027-01-15 08:00 on"), (2**62, "never")]
)
def test_an_uncleanable_log_that_is_not_due_is_not_tried_with_new_records_before_its_retry(
    world: World, first_ms: int, next_try: str
) -> None:
    """As after a setting was changed: the page said that new records make it due, which are left alone too."""
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    cleaner = world.log_store.cleaner()
    cleaner = replace(cleaner, broker=replace(cleaner.broker, log_cleaner_backoff_ms=first_ms))
    cleaner.mark_still_due(Death(("users-0",), "no space", world.now_ms), set(), now_ms=world.now_ms)
    world.store.alter_topic("users", {"min.cleanable.dirty.ratio": "1"})

    (row,) = rows(world)

    assert row[4] == next_try


def test_there_are_at_most_so_many_rows_and_the_cursor_stays_small(world: World) -> None:
    world.topic("users", ROWS + 5)
    assert len(rows(world)) == ROWS
    assert len(world.cursors["health_sensor"] or "") < 50


def test_the_consumer_lag_is_what_the_ingest_sensor_has_asked_for(tmp_path: Path) -> None:
    with ingest_world(tmp_path / "home") as ingesting:
        world = ingesting.world
        ingesting.knows("users", 0)
        ingesting.produce("users", ("b", "1"), ("c", "1"))
        before = told(world)
        assert "consumer_lag" not in before
        assert "consumer lag of 1 ingested topic" in str(before["not_looked_at"])

        world.tick(ingest_lag_sensor)
        assert told(world)["consumer_lag"] == 2

        ingesting.knows("gone", 0, bootstrap="127.0.0.1:9")
        world.tick(ingest_lag_sensor)
        world.cursors.clear()
        after = told(world)
        assert "consumer_lag" not in after, "not all of it is known"
        assert "127.0.0.1:9" in str(after["not_looked_at"])


def test_that_nobody_knows_what_verify_has_found_is_told_and_costs_no_number(world: World) -> None:
    world.topic("users")
    checks_file(world.path).parent.mkdir()
    checks_file(world.path).write_text('{"users-0"')
    said = world.skips(health_sensor)
    assert said.startswith("1 log, 0 late, 0 due, 0 uncleanable; not looked at: what verify has found: ")
    assert "checks.json: it is damaged; delete it, and run keptlog verify" in said
