"""Failed is failed until that log passes: in the Partitions tab, in the checks, and in the run that verifies."""

import asyncio
from collections.abc import Sequence
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

from keptlog.dagster.assets.checks import TopicFindings, look_at
from keptlog.table.namespaces import DELETING, NAMESPACE
from tests.orchestration.conftest import DAY_MS, World, flip_a_value
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import KEYS, failed_run_sensor

GREEN, RED = "MATERIALIZED", "FAILED"
PARTITIONS = dg.StaticPartitionsDefinition(["users-0", "users-1", "users-2"])


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A topic with three logs, each with something to clean."""
    # The clock is weeks ahead of the storage's, and nobody purges: what a clean replaces would be late at once.
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users", 3)
    dirty(world, 0, 1, 2)
    return world


def dirty(world: World, *partitions: int) -> None:
    for partition in partitions:
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)


def tab(world: World) -> list[str | None]:
    """What the Partitions tab shows of the three logs."""
    found = world.instance.get_status_by_partition(KEYS.clean("users"), PARTITIONS.get_partition_keys(), PARTITIONS)
    return [status.value if status else None for _, status in sorted((found or {}).items())]


def checks(world: World) -> dict[str, tuple[str, str]]:
    """What the asset's page shows of its checks: a color and words."""
    found: dict[str, tuple[str, str]] = {}
    keys = world.defs.resolve_asset_graph().asset_check_keys
    for key in (each for each in keys if each.asset_key == KEYS.clean("users")):
        record = world.instance.get_latest_asset_check_evaluation_record(key)
        if record and record.event and record.status.value in {"SUCCEEDED", "FAILED"} and _is_shown(world, record):
            evaluation = record.event.dagster_event and record.event.dagster_event.asset_check_evaluation_data
            assert evaluation
            is_error = evaluation.severity is dg.AssetCheckSeverity.ERROR
            color = "green" if evaluation.passed else "red" if is_error else "yellow"
            found[key.name.partition("_")[0]] = (color, evaluation.description or "")
    return found


def _is_shown(world: World, record: AssetCheckExecutionRecord) -> bool:
    """Whether Dagster takes an evaluation for one of the last materialization: its page shows no other.

    Without a target it goes by seconds, and which came first within one it can't tell.
    """
    assert record.evaluation
    has_target = record.evaluation.target_materialization_data is not None
    return not has_target or asyncio.run(record.targets_latest_materialization(LoadingContextForTest(world.instance)))


def last_results(world: World, check: str) -> list[dict[str, Any]]:
    keys = [key for key in world.defs.resolve_asset_graph().asset_check_keys if key.name.startswith(check)]
    (key,) = [key for key in keys if key.asset_key == KEYS.clean("users")]
    record = world.instance.get_latest_asset_check_evaluation_record(key)
    assert record
    assert record.event
    assert record.event.dagster_event
    table = record.event.dagster_event.asset_check_evaluation_data.metadata["last_results"]
    assert isinstance(table, dg.TableMetadataValue)
    return [dict(row.data) for row in table.records]


def verify(world: World, *logs: str) -> dg.ExecuteInProcessResult:
    config = {"ops": {"verify_logs": {"config": {"logs": list(logs)}}}}
    return world.run_job("verify", dg.RunRequest(run_config=config))


def materialize(world: World, names: Sequence[str]) -> dg.ExecuteInProcessResult:
    """Of two names all from the first to the second."""
    first, last = names[0], names[-1]
    of_range = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    job = world.defs.resolve_implicit_global_asset_job_def()
    return job.get_subset(asset_selection={KEYS.clean("users")}).execute_in_process(
        instance=world.instance,
        raise_on_error=False,
        tags={"dagster/partition": first} if first == last else of_range,
    )


@pytest.mark.parametrize(
    ("is_failed", "materialized_after", "shown"),
    [(True, [], RED), (True, ["users-0"], GREEN), (False, [], None)],
    ids=["planned by a run that failed", "materialized by a later run", "planned by a run that did not fail"],
)
def test_of_dagster_a_partition_is_failed_if_the_last_word_on_it_is_a_plan_of_a_failed_run(
    world: World, *, is_failed: bool, materialized_after: list[str], shown: str | None
) -> None:
    """What ``keptlog.dagster.assets.attempts`` relies on, for a job without assets."""

    @dg.op
    def plans(context: dg.OpExecutionContext) -> None:
        planned = AssetMaterializationPlannedData(KEYS.clean("users"), partition="users-0")
        event = dg.DagsterEvent.build_asset_materialization_planned_event(context.job_name, "plans", planned)
        context.instance.report_dagster_event(event, context.run.run_id)
        if is_failed:
            raise dg.Failure("it did not work")

    @dg.op
    def materializes(context: dg.OpExecutionContext) -> None:
        for name in materialized_after:
            context.log_event(dg.AssetMaterialization(KEYS.clean("users"), partition=name))

    @dg.job(executor_def=dg.in_process_executor)
    def first() -> None:
        plans()

    @dg.job(executor_def=dg.in_process_executor)
    def second() -> None:
        materializes()

    first.execute_in_process(instance=world.instance, raise_on_error=False)
    second.execute_in_process(instance=world.instance)
    assert tab(world) == [shown, None, None]


def test_a_log_whose_clean_fails_is_failed_until_a_clean_of_it_lands(users: World) -> None:
    assert users.clean().success
    assert tab(users) == [GREEN] * 3
    dirty(users, 0, 1, 2)
    repair = users.break_segment("users", 1)
    assert not users.clean().success
    assert tab(users) == [GREEN, RED, GREEN]
    dirty(users, 0, 2)
    assert users.clean("users-0", "users-2").success
    assert tab(users) == [GREEN, RED, GREEN]
    repair()
    assert users.clean("users-1", requested=True).success
    assert tab(users) == [GREEN] * 3


def test_a_log_that_was_left_alone_in_a_run_of_assets_that_fails_is_not_failed(users: World) -> None:
    assert materialize(users, ["users-0", "users-2"]).success
    dirty(users, 1)
    users.break_segment("users", 1)
    assert not materialize(users, ["users-0", "users-2"]).success
    assert tab(users) == [GREEN, RED, GREEN]


def test_checks_stay_red_over_a_broken_log_whatever_else_is_cleaned(users: World) -> None:
    assert users.clean().success
    assert {color for color, _ in checks(users).values()} == {"green"}
    dirty(users, 0, 1, 2)
    broken_file = users.segment_file("users", 1).name
    repair = users.break_segment("users", 1)
    users.clean()
    for _ in range(2):
        found = checks(users)
        assert {name for name, (color, _) in found.items() if color == "red"} == {"G1", "cleaned"}
        # What nobody could look at is not fine again because others were looked at.
        assert {name for name, (color, _) in found.items() if color == "yellow"} == {"G2", "G3", "G4", "G5"}
        assert "users-1: nothing is broken in what was read; not looked at: " in found["G2"][1]
        assert broken_file in found["G1"][1]
        assert "users-1: " in found["cleaned"][1]
        dirty(users, 0, 2)
        users.now_ms += 60_000
        assert users.clean("users-0", "users-2").success
    assert "not looked at since" in checks(users)["G1"][1]
    times = {row["partitions"]: row["looked_at"] for row in last_results(users, "G1")}
    assert times["1"] < times["0, 2"]
    repair()
    assert users.clean("users-1", requested=True).success
    assert {color for color, _ in checks(users).values()} == {"green"}


def test_a_check_and_a_run_name_a_log_once_whose_reason_begins_with_it(users: World) -> None:
    users.segment_file("users", 1).unlink()
    result = users.clean("users-1")
    failure = result.failure_data_for_node("commit")
    assert failure
    assert failure.user_failure_data
    assert (failure.user_failure_data.description or "").startswith("1 not cleaned, 0 cleaned: users-1: segment ")
    assert checks(users)["cleaned"][1].startswith("users-1: segment ")


def test_what_was_never_looked_at_is_counted_and_neither_fine_nor_broken(users: World) -> None:
    assert users.clean("users-0").success
    assert [row["partitions"] for row in last_results(users, "G1")] == ["0"]
    color, description = checks(users)["G1"]
    assert color == "green"
    assert description == "never looked at: 2 of 3 topic-partitions"


def test_a_topic_that_cannot_be_read_has_no_news_of_its_guarantees_and_a_clean_that_did_not_land(users: World) -> None:
    assert users.clean().success
    table = users.store.load_table("users")
    right = table.properties["log.p0.log-end-offset"]
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    assert not users.clean().success
    table.refresh().transaction().set_properties({"log.p0.log-end-offset": right}).commit_transaction()
    found = checks(users)
    assert {name for name, (color, _) in found.items() if color == "red"} == {"cleaned"}
    assert "log.p0.log-end-offset='many'" in found["cleaned"][1]
    assert verify(users).success
    assert {color for color, _ in checks(users).values()} == {"green"}


def test_a_topic_that_is_created_again_begins_without_a_memory(users: World) -> None:
    users.break_segment("users", 1)
    users.clean()
    users.store.delete_topic("users", 0)
    users.topic("users", 3)
    dirty(users, 0)
    assert users.clean().success
    assert [row["partitions"] for row in last_results(users, "G1")] == ["0"]
    assert checks(users)["G1"][0] == "green"


def test_verifying_sees_what_breaks_in_a_log_that_nobody_changes_and_says_which_file(users: World) -> None:
    assert users.clean().success
    users.topic("other")
    broken_file = users.segment_file("users", 2).name
    repair = users.break_segment("users", 2)

    result = verify(users)

    assert not result.success
    failure = result.failure_data_for_node("verify_logs")
    assert failure
    assert failure.user_failure_data
    assert (failure.user_failure_data.description or "").startswith("1 log broken or not looked at: users-2: ")
    assert broken_file in (failure.user_failure_data.description or "")
    assert "try again" not in (failure.user_failure_data.description or "")
    assert tab(users) == [GREEN, GREEN, RED]
    found = checks(users)
    assert found["G2"][0] == "yellow"
    assert "users-2: nothing is broken in what was read; not looked at: " in found["G2"][1]
    assert {name for name, (color, _) in found.items() if color == "red"} == {"G1"}
    assert broken_file in found["G1"][1]

    assert verify(users, "users-0", "users-1").success
    assert tab(users) == [GREEN, GREEN, RED]
    assert checks(users)["G1"][0] == "red"
    repair()
    assert verify(users).success
    assert tab(users) == [GREEN] * 3
    assert checks(users)["G1"][0] == "green"


def test_one_topic_that_cannot_be_read_fails_the_run_that_verifies_and_hides_no_other(users: World) -> None:
    assert users.clean().success
    users.topic("odd")
    users.store.load_table("odd").transaction().set_properties({"log.partitions": "many"}).commit_transaction()

    result = verify(users)

    assert not result.success
    failure = result.failure_data_for_node("verify_logs")
    assert failure
    assert failure.user_failure_data
    assert (failure.user_failure_data.description or "").startswith("1 not looked at: topic odd: ")
    assert [row["partitions"] for row in last_results(users, "G1")] == ["0-2"]


def test_a_topic_that_is_half_deleted_fails_the_run_that_verifies_all(users: World) -> None:
    assert users.clean().success
    users.topic("odd")
    catalog = users.store.committer.catalog
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, "odd"), (DELETING, "odd"))

    result = verify(users)

    assert not result.success
    failure = result.failure_data_for_node("verify_logs")
    assert failure
    assert failure.user_failure_data
    assert "odd: its deletion was begun and is not finished" in (failure.user_failure_data.description or "")
    assert {color for color, _ in checks(users).values()} == {"green"}
    assert verify(users, "users").success


def test_what_verify_found_broken_stays_failed_when_it_is_materialized_as_it_is(users: World) -> None:
    """Only who reads every byte sees this damage, and the clean has nothing to do."""
    assert users.clean().success
    path = users.segment_file("users", 2)
    content = path.read_bytes()
    flip_a_value(path)
    assert not verify(users).success
    assert tab(users) == [GREEN, GREEN, RED]

    result = materialize(users, ["users-0", "users-2"])

    assert not result.success
    failure = next(iter(result.filter_events(lambda event: event.is_step_failure))).step_failure_data.user_failure_data
    assert failure
    assert (failure.description or "").startswith("1 log not as it should be: users-2: ")
    assert tab(users) == [GREEN, GREEN, RED]
    assert checks(users)["G1"][0] == "red"
    assert not materialize(users, ["users-2"]).success
    assert checks(users)["G1"][0] == "red"
    path.write_bytes(content)
    assert materialize(users, ["users-0", "users-2"]).success
    assert tab(users) == [GREEN] * 3
    assert checks(users)["G1"][0] == "green"


def test_a_log_that_is_found_broken_after_its_clean_has_landed_is_failed(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_and_look(*given: Any, **named: Any) -> TopicFindings:
        users.break_segment("users", 2)
        return look_at(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr("keptlog.dagster.assets.report.look_at", break_and_look)
        result = materialize(users, ["users-0", "users-2"])

    assert not result.success
    assert users.store.logs("users")[2].checkpoint == 2, "it was cleaned all the same"
    assert tab(users) == [GREEN, GREEN, RED]
    assert checks(users)["G1"][0] == "red"


def test_a_log_that_is_cleaned_and_still_broken_stays_failed_whoever_cleans_it(users: World) -> None:
    """Its clean lands, for it does not read the segment that is damaged."""
    assert users.clean().success
    path = users.segment_file("users", 2)
    content = path.read_bytes()
    flip_a_value(path)
    assert not verify(users).success
    users.store.alter_topic("users", {"internal.segment.bytes": "1"})  # so that no segment joins another
    for partition in (0, 2):
        users.append("users", ("z", "1"), ("z", "2"), partition=partition)

    result = users.clean("users-0", "users-2", requested=True)

    assert users.store.logs("users")[2].checkpoint == 4, "it was cleaned all the same"
    assert path.exists(), "the damaged segment was kept"
    failure = result.failure_data_for_node("commit")
    assert failure
    assert failure.user_failure_data
    assert (failure.user_failure_data.description or "").startswith("1 log not as it should be: users-2: ")
    assert tab(users) == [GREEN, GREEN, RED]
    assert "it has named what failed itself" in users.skips(failed_run_sensor), "it is no run that has died"
    path.write_bytes(content)
    assert verify(users).success
    assert tab(users) == [GREEN] * 3


def test_a_log_that_failed_stays_failed_when_it_is_materialized_while_the_cleaner_is_off(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = users.break_segment("users", 1)
    assert not users.clean("users-0", "users-1").success
    repair()
    assert tab(users) == [GREEN, RED, None]
    monkeypatch.setenv("KEPTLOG_BROKER_LOG_CLEANER_ENABLE", "false")
    users.reopen()

    result = materialize(users, ["users-0", "users-2"])

    assert not result.success
    assert tab(users) == [GREEN, RED, RED]
    told = next(iter(result.filter_events(lambda event: event.is_step_failure))).step_failure_data.user_failure_data
    assert told
    assert "users-2: log.cleaner.enable=false" in (told.description or "")


@pytest.mark.parametrize("way", ["the job", "an asset"])
def test_what_a_run_has_found_broken_is_told_before_what_it_has_made(users: World, way: str) -> None:
    result = users.clean() if way == "the job" else materialize(users, ["users-0", "users-2"])
    kinds = [event.event_type_value for event in result.all_events]
    made = [number for number, kind in enumerate(kinds) if kind == "ASSET_MATERIALIZATION"]
    checked = [number for number, kind in enumerate(kinds) if kind == "ASSET_CHECK_EVALUATION"]
    assert made
    assert checked
    assert max(checked) < min(made)


def test_all_logs_are_verified_every_night_from_the_start(world: World) -> None:
    world.topic("users")
    schedule = world.defs.get_repository_def().get_schedule_def("verify_schedule")
    assert (schedule.job_name, schedule.cron_schedule) == ("verify", "0 4 * * *")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
