"""Erasures in Dagster: jobs that ask for them and prove them, an asset that shows them, and a check of their deadlines.

Time is the wall clock's: a purge compares it with the times of snapshots and files.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.assets.markdown import SHOWN_AT_ONCE
from keptlog.errors import InvalidConfig
from keptlog.log.erasures.erasure import ErasureState
from tests.erasure.test_of_no_key import stored_without_key
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, erase_config, hash_of, passes, run, states
from tests.orchestration.shipped import DEADLINE_CHECK, ERASURES_KEY

VALUE = "lives in Rotterdam"


@pytest.fixture
def users(world: World) -> str:
    """A topic with a value of the key that is to go, and one of another."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, VALUE), ("other", "stays"), age_ms=0)
    return "users"


def materialized(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """The metadata of the asset as the run materialized it."""
    (found,) = [
        event.materialization.metadata
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION and event.asset_key == ERASURES_KEY
    ]
    return {name: value.value for name, value in found.items()}


def evaluated(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (found,) = [each for each in result.get_asset_check_evaluations() if each.asset_check_key == DEADLINE_CHECK]
    return found


def test_a_run_asks_for_an_erasure_and_shows_it_in_the_asset(world: World, users: str) -> None:
    result = run(world, "erase", erase_config(world, users))

    assert result.success
    assert [key for _, key, value in world.records(users) if value is None] == [KEY.encode()]
    told = materialized(result)
    assert (told["keys"], told["erasures-open-count"], told["erasures-overdue-count"]) == (1, 1, 0)
    row = told["requests"].splitlines()[2].translate({0x2011: "-", 0xA0: " "})
    assert re.fullmatch(
        rf"\| users \| tombstoned \| ([-\d]{{10}} [\d:]{{5}} \| ){{2}} \| 1 \| {result.run_id} \| *", row
    ), row
    assert evaluated(result).passed


def test_the_same_run_tried_again_asks_for_nothing_twice(world: World, users: str) -> None:
    config = erase_config(world, users, id="r1")
    assert run(world, "erase", config).success
    before = world.records(users)

    assert run(world, "erase", config).success

    assert world.records(users) == before
    assert states(world) == {"r1": "tombstoned"}


def test_what_is_no_hash_is_refused_before_there_is_a_run_and_is_not_repeated(world: World, users: str) -> None:
    config = erase_config(world, users)
    config["ops"]["ask_for_erasure"]["config"]["key_hashes"] = [KEY]

    with pytest.raises(InvalidConfig, match="no run was made of it") as refused:
        run(world, "erase", config)

    assert KEY not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert world.instance.get_runs() == []
    assert states(world) == {}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"topics": ["nowhere"]}, "there is no topic 'nowhere'"),
        ({"by": "soon"}, "'soon' is no time"),
        ({"key_hashes": []}, "there is no key to erase"),
        ({"here": True}, "has no source"),
    ],
)
def test_what_can_not_be_asked_for_fails_the_run_in_one_line(
    world: World, users: str, changed: dict[str, Any], reason: str
) -> None:
    config = erase_config(world, users)
    config["ops"]["ask_for_erasure"]["config"] |= changed
    result = run(world, "erase", config)
    (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert failure.error
    assert reason in failure.error.message


def test_no_key_and_no_value_is_in_what_dagster_stores(tmp_path: Path) -> None:
    folder = tmp_path / "dagster"
    folder.mkdir()
    with dg.instance_for_test(temp_dir=str(folder)) as instance:
        world = World(tmp_path / "home", instance, time.time_ns() // 1_000_000)
        world.topic("users", 1, **SETTINGS)
        world.append("users", (KEY, VALUE), age_ms=0)
        assert run(world, "erase", erase_config(world, "users", reason="the search finds this")).success
        bad = erase_config(world, "users")
        bad["ops"]["ask_for_erasure"]["config"]["key_hashes"] = [KEY]
        with pytest.raises(InvalidConfig):
            run(world, "erase", bad)
        files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        assert any(b"the search finds this" in content for content in files)
        assert not any(KEY.encode() in content or VALUE.encode() in content for content in files)


def test_an_overdue_erasure_fails_the_check_and_says_what_it_needs(world: World, users: str) -> None:
    assert run(world, "erase", erase_config(world, users, id="r1", by="1h")).success
    world.now_ms += HOUR_MS + 5000

    result = world.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=world.instance, asset_selection=[ERASURES_KEY]
    )

    evaluation = evaluated(result)
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "users: 1 erasure overdue" in (evaluation.description or "")
    assert "needs clean" in (evaluation.description or "")
    told = materialized(result)
    assert (told["erasures-overdue-count"], told["erasure-delay-secs"]) == (1, 5)
    glance = r"\* users: tombstoned, \*\*overdue\*\*, deadline [\u2011\d]{10} [\d:]{5} UTC, next: a clean"
    assert re.match(glance, told["most_urgent"])
    # From so many characters on, a page shows a text on a click, in a window of its own: the table is too wide for it.
    assert len(told["most_urgent"]) < SHOWN_AT_ONCE <= len(told["requests"])
    deadline = re.search(r"\| tombstoned \| ([^|*]*) \*\*overdue\*\* \| a clean \|", told["requests"])
    assert deadline
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", deadline[1].replace("\N{NON-BREAKING HYPHEN}", "-"))


def test_a_topic_that_can_not_be_read_makes_the_check_warn_and_costs_only_itself(world: World, users: str) -> None:
    world.topic("odd", 1, **SETTINGS)
    world.append("odd", (KEY, "1"), age_ms=0)
    assert run(world, "erase", erase_config(world, users, "odd", id="r1")).success
    for path in world.path.rglob("odd/metadata/receipts/erasures/*"):
        path.write_text("rotten")

    result = world.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=world.instance, asset_selection=[ERASURES_KEY]
    )

    evaluation = evaluated(result)
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "not looked at: odd: " in (evaluation.description or "")
    assert "| users | tombstoned |" in materialized(result)["requests"]


def test_cleans_and_purges_bring_an_erasure_on_until_it_is_deleted_and_a_run_verifies_it(
    world: World, users: str, spark: SparkSession
) -> None:
    assert run(world, "erase", erase_config(world, users, id="r1")).success
    seen = [states(world)["r1"]]
    for _ in range(2):
        world.now_ms += 2 * HOUR_MS
        assert world.clean(users, requested=True).success
        seen.append(world.store.observe(users).erasures.needs[0].need)
        assert run(world, "purge", {"ops": {"delete_retired_files": {"config": {"orphan_grace_ms": 0}}}}).success
    seen.append(world.store.observe(users).erasures.needs[0].need)
    assert seen == ["tombstoned", "expiry", "purge", "verification"]

    result = run(world, "verify_erasures", {})

    assert result.success
    told = materialized(result)
    assert (told["verified"], told["erasures-open-count"]) == (1, 0)
    assert "| users | verified |" in told["requests"]
    assert "most_urgent" not in told
    assert evaluated(result).passed


def test_a_clean_whose_erasures_can_not_be_told_is_no_failed_clean(
    world: World, users: str, spark: SparkSession
) -> None:
    assert run(world, "erase", erase_config(world, users, id="r1")).success
    for path in world.path.rglob("metadata/receipts/erasures/*"):
        path.write_text("rotten")
    world.now_ms += 2 * HOUR_MS

    assert world.clean(users, requested=True).success
    assert run(world, "purge", {}).success


def test_an_id_that_nobody_knows_fails_the_verification(world: World, users: str) -> None:
    result = run(world, "verify_erasures", {"ops": {"verify_deleted": {"config": {"ids": ["r9"]}}}})
    assert not result.success


@pytest.mark.parametrize("state", [ErasureState.DELETED, ErasureState.VERIFIED])
def test_one_of_no_key_fails_a_verification_that_names_it_and_no_other(
    world: World, users: str, state: ErasureState
) -> None:
    """As an older keptlog has left it."""
    stored_without_key(passes(world), ErasureState.TOMBSTONED, state)
    named = run(world, "verify_erasures", {"ops": {"verify_deleted": {"config": {"ids": ["r1"]}}}})
    assert (named.success, run(world, "verify_erasures", {}).success) == (False, True)
    assert "r1 in users: it was made for no key" in str(named.failure_data_for_node("verify_deleted"))


def test_hashes_are_never_shown_in_full(world: World, users: str) -> None:
    result = run(world, "erase", erase_config(world, users))
    digest = hash_of(world).partition(":")[2]
    assert digest not in str(materialized(result))
    events = [event.message or "" for event in result.all_events]
    assert not any(digest in message for message in events)
