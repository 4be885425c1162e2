"""An erasure of a topic that can't be read is named, and is overdue from its deadline on, as any other."""

from __future__ import annotations

import re
import time
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.assets.markdown import SHOWN_AT_ONCE
from keptlog.log.told.conditions import Matter, Thresholds
from keptlog.passes.observer import observe
from keptlog.passes.watch import sighting_of
from tests.broken_topics import cut_in_half, metadata_file
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.erasing import SETTINGS, ask
from tests.orchestration.shipped import DEADLINE_CHECK, ERASURES_KEY, erasure_sensor


@pytest.fixture
def users(world: World) -> str:
    """A topic with an erasure that is to be done within four hours; another one is fine."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("fine", 1, **SETTINGS)
    world.topic("users", 1, **SETTINGS)
    world.append("users", ("user-7@example.org", "1"), ("other", "1"), age_ms=0)
    ask(world, by_ms=4 * HOUR_MS)
    return "users"


def break_log(world: World) -> None:
    """Its logs can't be told any more; its table can be read."""
    table = world.store.load_table("users")
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()


def damage_register(world: World, topic: str = "users") -> None:
    """Its requests can't be told any more."""
    for path in world.path.rglob(f"{topic}/metadata/receipts/erasures/*.json"):
        path.write_text("{")


def materialized(world: World) -> dict[str, Any]:
    """What the asset shows once somebody has materialized it."""
    result = world.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=world.instance, asset_selection=[ERASURES_KEY]
    )
    (made,) = result.get_asset_materialization_events()
    return {name: value.value for name, value in made.materialization.metadata.items()}


def evaluation(result: dg.SensorResult) -> dg.AssetCheckEvaluation:
    (found,) = [each for each in result.asset_events if isinstance(each, dg.AssetCheckEvaluation)]
    return found


def numbers(result: dg.SensorResult) -> dict[str, Any]:
    (found,) = [each for each in result.asset_events if isinstance(each, dg.AssetObservation)]
    return {name: value.value for name, value in found.metadata.items()}


def test_a_tick_names_the_erasure_and_what_keeps_the_topic_from_being_read(world: World, users: str) -> None:
    break_log(world)

    result = world.tick(erasure_sensor)

    assert result.skip_reason
    told = result.skip_reason.skip_message or ""
    assert "1 erasure open in 1 topic, none overdue" in told
    assert "users can't be read: property log.p0.log-end-offset='many'" in told
    assert numbers(result)["erasures-open-count"] == 1
    assert "| users | 1 | 0 |" in numbers(result)["topics"]


def test_behind_its_deadline_it_fails_the_check_and_is_an_error_of_each_tick(world: World, users: str) -> None:
    break_log(world)
    world.tick(erasure_sensor)
    world.now_ms += 5 * HOUR_MS

    result = world.tick(erasure_sensor)

    told = evaluation(result)
    assert (told.passed, told.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert (told.description or "").startswith("users: 1 erasure overdue, the first since ")
    assert "it can't be read: property log.p0.log-end-offset='many'" in (told.description or "")
    assert numbers(result)["erasures-overdue-count"] == 1
    assert "1 erasure open in 1 topic, 1 overdue" in world.skips(erasure_sensor)


def test_where_nothing_of_a_topic_was_ever_seen_it_is_not_said_that_no_erasure_is_open(
    world: World, users: str
) -> None:
    break_log(world)
    cut_in_half(metadata_file(world.store, "users"))
    world.reopen()
    assert world.skips(erasure_sensor).startswith("no erasure is known to be open; users can't be read: ")


def test_a_topic_that_can_not_be_read_any_more_keeps_the_erasures_that_were_seen(world: World, users: str) -> None:
    world.tick(erasure_sensor)
    break_log(world)
    cut_in_half(metadata_file(world.store, "users"))
    assert "1 erasure open in 1 topic, none overdue" in world.skips(erasure_sensor)


def test_whoever_materializes_the_asset_sees_the_request_and_that_it_is_overdue(world: World, users: str) -> None:
    break_log(world)
    world.now_ms += 5 * HOUR_MS

    result = world.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=world.instance, asset_selection=[ERASURES_KEY]
    )

    (check,) = [each for each in result.get_asset_check_evaluations() if each.asset_check_key == DEADLINE_CHECK]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert (check.description or "").startswith("users: 1 erasure overdue, the first since ")
    (made,) = result.get_asset_materialization_events()
    assert "| users | tombstoned |" in str(made.materialization.metadata["requests"].value)


def test_the_most_urgent_ones_name_an_overdue_topic_whose_requests_can_not_be_read(world: World, users: str) -> None:
    """It named one of next year alone, and a red check beside it."""
    ask(world, "fine", by_ms=2000 * HOUR_MS, request_id="r2")
    damage_register(world)
    world.now_ms += 5 * HOUR_MS

    told = materialized(world)

    overdue, next_year = told["most_urgent"].splitlines()
    assert overdue.startswith("* users: 1 erasure, **overdue**, deadline ")
    assert ", not looked at: " in overdue
    assert next_year.startswith("* fine: tombstoned, deadline ")
    assert "and 1 topic not looked at" in told["requests"]


def test_they_are_told_also_where_no_request_at_all_can_be_read(world: World, users: str) -> None:
    damage_register(world)
    told = materialized(world)
    assert re.match(r"\* users: 1 erasure, deadline \S+ \S+ UTC, not looked at: ", told["most_urgent"])
    assert told["requests"].startswith("none\n\nand 1 topic not looked at")


def test_what_has_no_place_among_the_most_urgent_ones_is_counted(world: World, users: str) -> None:
    for number in range(30):
        ask(world, by_ms=(5 + number) * HOUR_MS, request_id=f"r-{number}")
    ask(world, "fine", by_ms=2000 * HOUR_MS, request_id="r2")
    damage_register(world, "fine")

    lines = materialized(world)["most_urgent"].splitlines()

    shown = lines[:-1]
    assert (lines[-1], len("\n".join(lines)) < SHOWN_AT_ONCE) == (f"* and {32 - len(shown)} more", True)


def test_requests_of_which_the_same_is_told_have_one_line_among_the_most_urgent_ones(world: World, users: str) -> None:
    """There were twelve equal lines."""
    for number in range(30):
        ask(world, "fine", by_ms=2000 * HOUR_MS, request_id=f"r-{number}")
    [_, of_fine] = materialized(world)["most_urgent"].splitlines()
    assert of_fine.startswith("* fine: tombstoned, deadline ")
    assert of_fine.endswith(" (30 requests)")


def test_requests_of_which_the_same_is_told_have_one_line_also_where_those_of_another_topic_stand_between_them(
    world: World, users: str
) -> None:
    """Their deadlines differ by milliseconds, so those of two topics alternate; each had a line of its own."""
    world.now_ms -= world.now_ms % 60_000  # so that all have one minute
    for number in range(60):
        ask(world, ("fine", "users")[number % 2], by_ms=2000 * HOUR_MS + number, request_id=f"r-{number}")
    [_, *lines] = materialized(world)["most_urgent"].splitlines()
    assert [line.split(":")[0] for line in lines] == ["* fine", "* users"]
    assert [line.endswith(" (30 requests)") for line in lines] == [True, True]


def test_whoever_is_told_of_overdue_erasures_is_told_of_it(world: World, users: str) -> None:
    break_log(world)
    seen = sighting_of(observe(world.store, now_ms=world.now_ms + 5 * HOUR_MS), Thresholds())
    (told,) = [each for each in seen.conditions if each.matter is Matter.ERASURE]
    assert told.text.startswith("users has 1 erasure past the deadline")
    assert users in seen.judged[Matter.ERASURE], "it is over once it is seen to be"
