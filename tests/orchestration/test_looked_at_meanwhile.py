"""What a long run finds at its end is newer than what others found meanwhile, whenever the run began."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData

from keptlog.dagster.assets import sections
from keptlog.dagster.assets.mount import AssetRun
from keptlog.dagster.assets.siblings import Siblings, take_over
from keptlog.dagster.resources.clock import ClockResource
from keptlog.notify.checks import broken_checks
from keptlog.passes.check import CheckResult
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.verify import verify_log
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.instance import begin
from tests.orchestration.shipped import KEYS, clean_logs
from tests.orchestration.test_attempts import RED, checks, last_results, materialize, tab, verify

VERIFY_LOG = "keptlog.dagster.assets.checks.verify_log"


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two logs; the clock goes on by a second at each look at it."""
    passed, really = itertools.count(1000, 1000), ClockResource.read_ms
    monkeypatch.setattr(ClockResource, "read_ms", lambda clock: really(clock) + next(passed))
    world.topic("users", 2)
    for partition in range(2):
        world.append("users", ("a", "1"), ("b", "2"), partition=partition)
    return world


def test_a_log_that_broke_after_another_run_had_found_it_whole_stays_broken(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_last(*given: Any, **named: Any) -> list[CheckResult]:
        monkeypatch.setattr(VERIFY_LOG, verify_log)
        assert verify(users, "users-0").success
        users.break_segment("users")
        return list(verify_log(*given, **named))

    monkeypatch.setattr(VERIFY_LOG, read_last)
    assert not verify(users, "users-0").success
    assert checks(users)["G1"][0] == "red"

    assert verify(users, "users-1").success

    assert checks(users)["G1"][0] == "red", "users-0 is broken, and nobody has looked at it again"


def test_a_clean_that_landed_after_another_run_had_found_its_log_uncleanable_ends_that(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.more_resources["spark"] = InProcessSpark(spark_config={})
    users.append("users", ("a", "3"), ("b", "4"))
    mend = users.break_segment("users")
    assert not users.clean("users-0", requested=True).success
    mend()
    really = Cleaner.commit

    def commit_later(*given: Any) -> Pass:
        monkeypatch.setattr(Cleaner, "commit", really)
        verify(users, "users-0")
        assert checks(users)["cleaned"][0] == "red"
        return really(*given)

    monkeypatch.setattr(Cleaner, "commit", commit_later)
    assert users.clean("users-0", requested=True).success
    assert checks(users)["cleaned"][0] == "green"

    verify(users, "users-1")

    assert checks(users)["cleaned"][0] == "green"


def test_a_log_that_another_run_found_broken_after_this_one_had_read_it_is_broken(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_second(*given: Any, **named: Any) -> list[CheckResult]:
        monkeypatch.setattr(VERIFY_LOG, verify_log)
        users.break_segment("users")
        assert not verify(users, "users-0").success
        return list(verify_log(*given, **named))

    _at_the_second_log(monkeypatch, read_second)
    assert verify(users).success

    assert checks(users)["G1"][0] == "red"
    assert list(broken_checks(users.path)["users-0"]) == ["G1"]
    assert tab(users)[0] == RED


def test_a_clean_that_dies_after_this_run_had_read_its_log_is_not_ended_by_it(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was under way when this run began."""
    cleaning = users.instance.create_run_for_job(clean_logs)
    begin(users.instance, cleaning)
    planned = AssetMaterializationPlannedData(KEYS.clean("users"), partition="users-0")
    event = dg.DagsterEvent.build_asset_materialization_planned_event(cleaning.job_name, "commit", planned)
    users.instance.report_dagster_event(event, cleaning.run_id)

    def read_second(*given: Any, **named: Any) -> list[CheckResult]:
        monkeypatch.setattr(VERIFY_LOG, verify_log)
        users.instance.report_run_failed(cleaning, "its machine is gone")
        return list(verify_log(*given, **named))

    _at_the_second_log(monkeypatch, read_second)
    assert verify(users).success

    assert tab(users)[0] == RED


def test_a_log_whose_clean_landed_after_this_run_had_loaded_it_as_uncleanable_is_cleaned(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.more_resources["spark"] = InProcessSpark(spark_config={})
    users.append("users", ("a", "3"), ("b", "4"))
    mend = users.break_segment("users")
    assert not users.clean("users-0", requested=True).success
    mend()

    def read_second(*given: Any, **named: Any) -> list[CheckResult]:
        monkeypatch.setattr(VERIFY_LOG, verify_log)
        assert users.clean("users-0", requested=True).success
        return list(verify_log(*given, **named))

    _at_the_second_log(monkeypatch, read_second)
    verify(users)

    assert checks(users)["cleaned"][0] == "green"


def test_a_log_that_was_found_broken_and_mended_before_this_run_read_it_is_whole(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_first(*given: Any, **named: Any) -> list[CheckResult]:
        monkeypatch.setattr(VERIFY_LOG, verify_log)
        mend = users.break_segment("users", partition=1)
        assert not verify(users, "users-1").success
        mend()
        return list(verify_log(*given, **named))

    monkeypatch.setattr(VERIFY_LOG, read_first)
    assert verify(users).success

    assert checks(users)["G1"][0] == "green"
    assert broken_checks(users.path) == {}


def test_all_logs_that_a_run_found_whole_share_a_row_of_the_few_that_are_remembered(users: World) -> None:
    assert verify(users).success
    assert [row["partitions"] for row in last_results(users, "G1")] == ["0-1"]


def _at_the_second_log(monkeypatch: pytest.MonkeyPatch, read: Callable[..., list[CheckResult]]) -> None:
    def read_first(*given: Any, **named: Any) -> list[CheckResult]:
        monkeypatch.setattr(VERIFY_LOG, read)
        return list(verify_log(*given, **named))

    monkeypatch.setattr(VERIFY_LOG, read_first)


@pytest.mark.parametrize("cleans", [1, 6])
def test_what_a_run_by_hand_finds_broken_is_shown_however_many_evaluated_while_it_waited(
    users: World, monkeypatch: pytest.MonkeyPatch, cleans: int
) -> None:
    """Dagster made its rows when it made the run: those of the others are newer."""
    users.break_segment("users", 1)

    def clean_others() -> None:
        for each in range(cleans):
            users.append("users", ("a", f"{each}"))
            assert users.clean("users-0", requested=True).success
        assert checks(users)["G1"][0] == "green"

    before_it_looks(users, monkeypatch, clean_others)
    assert not materialize(users, ["users-1"]).success
    assert [checks(users)[name][0] for name in ("G1", "cleaned")] == ["red", "red"]

    users.append("users", ("b", "9"))
    assert users.clean("users-0", requested=True).success

    assert checks(users)["G1"][0] == "red", "users-1 is broken, and nobody has looked at it again"


def test_what_a_run_by_hand_finds_whole_again_is_shown_though_it_was_found_broken_while_it_waited(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert materialize(users, ["users-0", "users-1"]).success

    def break_and_mend() -> None:
        mend = users.break_segment("users", 1)
        assert not verify(users, "users-1").success
        assert checks(users)["G1"][0] == "red"
        mend()

    before_it_looks(users, monkeypatch, break_and_mend)
    assert materialize(users, ["users-1"]).success
    assert checks(users)["G1"][0] == "green"


def before_it_looks(world: World, monkeypatch: pytest.MonkeyPatch, others: Callable[[], None]) -> None:
    """Let others work after the next run of assets was made, which waits in Dagster's queue."""
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    waiting, really = [others], take_over

    def begin_later(run: AssetRun) -> Siblings:
        if waiting:
            waiting.pop()()
        return really(run)

    monkeypatch.setattr(sections, "take_over", begin_later)
