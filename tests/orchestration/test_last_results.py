"""What checks remember of each topic-partition: whole as it is written and read, small however many there are."""

from __future__ import annotations

import json
from dataclasses import replace

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import DagsterEvent, DagsterEventType
from hypothesis import given
from hypothesis import strategies as st

from keptlog.dagster.assets.last_results import (
    ROWS,
    TABLE,
    WHOLE_TOPIC,
    LastResult,
    _from_rows,
    as_table,
    last_results,
    merged,
    results_of,
    with_few_times,
)
from tests.orchestration.conftest import DAY_MS, World

NOW_MS = 1_800_000_000_000

times = st.integers(NOW_MS, NOW_MS + 20)
results = st.dictionaries(
    st.integers(0, 40),
    st.builds(LastResult, times, st.sampled_from([None, "offsets do not rise", "is gone"]))
    | st.builds(LastResult, times, st.just("its file is gone"), st.just(value=False))
    | st.builds(LastResult, times, st.none(), is_in_full=st.just(value=False)),
)


@given(results)
def test_what_is_written_is_read_again(written: dict[int, LastResult]) -> None:
    assert dict(_from_rows(as_table(written).records)) == written


def test_a_file_in_a_problem_is_told_by_its_name_without_the_folders_that_a_page_has_no_room_for() -> None:
    name = f"{0:020d}-{'e' * 32}-{'f' * 32}.parquet"
    path = f"file:///srv/lake/users/data/partition=0/{name}"
    problem = f"{path} has 4 bytes, not 2064: it is damaged; put the file back from a copy of the storage"
    (row,) = as_table({0: LastResult(NOW_MS, problem)}).records
    assert row.data["problem"] == problem.replace(path, f"…/{name}")


@given(results, results)
def test_what_was_looked_at_now_counts_and_all_else_stays(
    before: dict[int, LastResult], now: dict[int, LastResult]
) -> None:
    now = {number: replace(each, at_ms=each.at_ms + 20) for number, each in now.items()}
    found = merged(before, now, None)
    assert found.keys() == before.keys() | now.keys()
    for number, each in found.items():
        is_still_broken = number in before and before[number].is_broken and number in now and not now[number].is_sure
        assert each == (before if is_still_broken or number not in now else now)[number]


@given(results, results)
def test_what_a_run_tells_is_what_the_next_one_reads_back_whichever_of_two_looked_first(
    before: dict[int, LastResult], now: dict[int, LastResult]
) -> None:
    key = dg.AssetKey(["users", "clean"])
    evaluations = [
        (dg.AssetCheckEvaluation(asset_key=key, check_name="G1", passed=True, metadata={TABLE: as_table(each)}), NOW_MS)
        for each in (now, before)
    ]
    assert merged(before, now, None) == results_of(evaluations, None, NOW_MS + DAY_MS)


@pytest.mark.parametrize(
    ("problem", "counts"), [(None, "G1 is broken"), ("offsets do not rise", "offsets do not rise")]
)
def test_what_was_found_whole_at_a_time_that_is_to_come_outweighs_nothing(problem: str | None, counts: str) -> None:
    """The clock that was ahead has dated the evaluation too. What it found broken stays so until that time."""
    later_ms = NOW_MS + 1_000
    told = {TABLE: as_table({0: LastResult(later_ms, problem)})}
    key = dg.AssetKey(["users", "clean"])
    evaluation = dg.AssetCheckEvaluation(asset_key=key, check_name="G1", passed=problem is None, metadata=told)
    before = results_of([(evaluation, later_ms)], None, NOW_MS)
    assert merged(before, {0: LastResult(NOW_MS, "G1 is broken")}, None)[0].problem == counts


def test_a_topic_that_could_be_read_after_a_run_had_tried_stays_readable() -> None:
    looked = {0: LastResult(NOW_MS + 1, None)}
    assert merged(looked, {WHOLE_TOPIC: LastResult(NOW_MS, "no metadata")}, 4) == looked


def test_a_topic_that_could_not_be_read_after_a_run_had_looked_at_a_log_stays_so() -> None:
    unreadable = {WHOLE_TOPIC: LastResult(NOW_MS + 1, "no metadata")}
    assert merged(unreadable, {0: LastResult(NOW_MS, None)}, 4).keys() == {WHOLE_TOPIC, 0}


def test_a_topic_that_could_not_be_read_can_be_once_a_log_of_it_was_looked_at() -> None:
    unreadable = merged({3: LastResult(NOW_MS, None)}, {WHOLE_TOPIC: LastResult(NOW_MS, "no metadata")}, None)
    assert [row.data["partitions"] for row in as_table(unreadable).records] == ["all", "3"]
    assert dict(_from_rows(as_table(unreadable).records)) == unreadable
    assert merged(unreadable, {0: LastResult(NOW_MS, None)}, 4).keys() == {0, 3}


def test_what_could_not_be_looked_at_by_a_clock_that_is_ahead_is_not_broken_for_it(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"))
    world.now_ms += DAY_MS
    assert world.clean().success
    world.segment_file("users").rename(world.path / "away")
    world.run_job("verify", dg.RunRequest())
    world.now_ms -= DAY_MS
    check = dg.AssetCheckKey(dg.AssetKey(["users", "clean"]), "G2_order_is_kept")
    (found,) = last_results(world.instance, check, None, world.now_ms).values()
    assert (found.is_looked_at, found.is_broken) == (False, False)


_LATER = NOW_MS + 1000


@pytest.mark.parametrize(
    "later",
    [LastResult(_LATER, "no answer", is_looked_at=False), LastResult(_LATER, None, is_in_full=False)],
    ids=["could not look", "did not read the values"],
)
def test_what_a_run_found_broken_stays_so_beside_one_that_began_later_ended_before_and_was_not_sure(
    later: LastResult,
) -> None:
    broken = LastResult(NOW_MS, "offsets do not rise")
    assert _told_by_runs_that_know_nothing_of_each_other(later, broken) == broken
    assert _told_by_runs_that_know_nothing_of_each_other(broken, later) == broken


def test_what_was_found_whole_in_full_outweighs_an_older_break_also_once_it_was_looked_at_quickly() -> None:
    broken, whole = LastResult(NOW_MS, "offsets do not rise"), LastResult(NOW_MS + 500, None)
    quick = LastResult(_LATER, None, is_in_full=False)
    assert _told_by_runs_that_know_nothing_of_each_other(broken, whole, quick, broken) == quick


def _told_by_runs_that_know_nothing_of_each_other(*results: LastResult) -> LastResult:
    check = dg.AssetCheckKey(dg.AssetKey(["users", "clean"]), "G2_order_is_kept")
    with dg.DagsterInstance.ephemeral() as instance:
        for result in results:
            made = dg.AssetCheckEvaluation(
                asset_key=check.asset_key,
                check_name=check.name,
                passed=False,
                metadata={TABLE: as_table({0: result})},
            )
            instance.report_runless_asset_event(made)
        return last_results(instance, check, None, NOW_MS + DAY_MS)[0]


def test_a_clean_tells_that_it_has_not_read_the_values_and_a_verification_that_it_has(world: World) -> None:
    world.topic("users")
    world.append("users", ("a", "1"))
    check = dg.AssetCheckKey(dg.AssetKey(["users", "clean"]), "G1_one_record_a_key")
    assert world.clean().success
    assert not last_results(world.instance, check, None, world.now_ms)[0].is_in_full
    world.now_ms += 1000
    world.run_job("verify", dg.RunRequest())
    assert last_results(world.instance, check, None, world.now_ms)[0].is_in_full


def test_many_that_could_not_be_looked_at_stay_so_beside_older_results_that_were_fine() -> None:
    fine = dict.fromkeys(range(ROWS + 9), LastResult(NOW_MS + 50, None))
    unseen = {number: LastResult(NOW_MS + 100 + number, "away", is_looked_at=False) for number in fine}
    read = dict(_from_rows(as_table(unseen).records))
    assert all(each.at_ms > NOW_MS + 50 for each in read.values())


def test_partitions_that_a_topic_does_not_have_are_forgotten() -> None:
    assert merged({7: LastResult(NOW_MS, "broken")}, {0: LastResult(NOW_MS, None)}, 4).keys() == {0}


def test_ten_thousand_topic_partitions_looked_at_one_by_one_stay_small_and_none_broken_becomes_whole() -> None:
    written = {number: LastResult(NOW_MS + number, "x" * 5000 if number % 3 == 0 else None) for number in range(10_000)}
    table = as_table(written)
    assert len(table.records) == 2 * (ROWS + 1)
    assert len(json.dumps([dict(row.data) for row in table.records])) < 100_000
    read = dict(_from_rows(table.records))
    assert read.keys() == written.keys()
    for number, each in read.items():
        assert (each.problem is None) == (written[number].problem is None)
        # Who reads several tables takes the newest: what is fine may look older than it is, what is broken may not.
        assert each.at_ms <= written[number].at_ms or each.is_broken
        assert each.at_ms >= written[number].at_ms or not each.is_broken


def test_evaluations_that_were_planned_and_not_made_push_none_out(world: World) -> None:
    """A backfill plans one for each of its partitions, and an outage makes none of them."""
    world.topic("users", 2)
    world.append("users", ("a", "1"))
    world.break_segment("users")
    world.run_job("verify", dg.RunRequest())
    check = dg.AssetCheckKey(dg.AssetKey(["users", "clean"]), "G1_one_record_a_key")
    for number in range(30):
        planned = AssetCheckEvaluationPlanned(asset_key=check.asset_key, check_name=check.name, partitions_subset=None)
        event = DagsterEvent(
            DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED.value, "materialize", event_specific_data=planned
        )
        world.instance.report_dagster_event(event, f"run-{number}")
    found = last_results(world.instance, check, None, world.now_ms)
    assert found[0].problem is not None


def test_an_evaluation_that_can_not_be_understood_tells_nothing_and_breaks_no_check(world: World) -> None:
    world.topic("users")
    check = dg.AssetCheckKey(dg.AssetKey(["users", "clean"]), "G1_one_record_a_key")
    rows = [
        {"partitions": "0", "result": "broken", "looked_at": "after the year 9999", "problem": "gone"},
        {"logs": "0"},
    ]
    for row in rows:
        table = dg.MetadataValue.table([dg.TableRecord(row)])
        evaluation = dg.AssetCheckEvaluation(
            asset_key=check.asset_key, check_name=check.name, passed=False, metadata={TABLE: table}
        )
        world.instance.report_runless_asset_event(evaluation)

    assert last_results(world.instance, check, None, world.now_ms) == {}
    assert world.run_job("verify", dg.RunRequest()).success


def test_logs_that_were_broken_while_a_run_went_on_share_one_time_behind_that_and_the_others_the_first() -> None:
    before = {number: LastResult(NOW_MS + 500, "its disk is away") for number in range(100)}
    now = {number: LastResult(NOW_MS + 10 * number, None) for number in range(200)}
    found = merged(before, with_few_times(before, now), None)
    assert {number for number, each in found.items() if each.is_broken} == set(range(50))
    assert len({each.at_ms for each in found.values() if not each.is_broken}) == 2
    assert min(found[number].at_ms for number in range(50, 100)) >= NOW_MS + 500
