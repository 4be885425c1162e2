"""A run that is given a name that means nothing does its work for the others, and says so of that one."""

from __future__ import annotations

import dagster as dg
import pytest

from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import KEYS


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A topic that was cleaned, so that something is to be purged, and one that nobody names."""
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users", file_delete_delay_ms="0")
    world.topic("other", file_delete_delay_ms="0")
    for topic in ("users", "other"):
        world.append(topic, ("a", "1"), ("a", "2"))
    assert world.clean().success
    return world


def failure(result: dg.ExecuteInProcessResult) -> str:
    assert not result.success
    (failed,) = result.filter_events(lambda event: event.is_step_failure)
    data = failed.step_failure_data.user_failure_data
    assert data, "Dagster tells an error of its own"
    return data.description or ""


def checked(world: World, result: dg.ExecuteInProcessResult) -> set[dg.AssetKey]:
    """Of an op that fails, Dagster has what it told on the way only in its log."""
    told = world.instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    return {each.dagster_event.asset_check_evaluation_data.asset_key for each in told if each.dagster_event}


def run(world: World, job: str, op: str, **config: object) -> dg.ExecuteInProcessResult:
    return world.run_job(job, dg.RunRequest(run_config={"ops": {op: {"config": config}}}))


def test_verify_reads_the_logs_that_are_there(users: World) -> None:
    result = run(users, "verify", "verify_logs", logs=["user", "users"])
    assert failure(result) == "1 unknown name: there is no topic or topic-partition 'user': did you mean users?"
    assert checked(users, result) == {KEYS.clean("users")}


def test_verify_reads_nothing_where_no_name_means_anything(users: World) -> None:
    result = run(users, "verify", "verify_logs", logs=["user"])
    assert "did you mean users?" in failure(result)
    assert checked(users, result) == set()


def test_purge_deletes_the_files_of_the_topics_that_are_there(users: World) -> None:
    before = users.store.load_table("users").metadata.snapshots
    result = run(users, "purge", "delete_retired_files", topics=["user", "users"])
    assert failure(result) == "1 not purged: there is no topic 'user': did you mean users?"
    assert len(users.store.load_table("users").metadata.snapshots) < len(before)


def test_purge_deletes_nothing_where_no_name_is_a_topics(users: World) -> None:
    before = len(users.store.load_table("other").metadata.snapshots)
    result = run(users, "purge", "delete_retired_files", topics=["user"])
    assert "did you mean users?" in failure(result)
    assert len(users.store.load_table("other").metadata.snapshots) == before


@pytest.mark.parametrize("way", ["the job", "an asset"])
def test_a_clean_of_a_topic_that_was_dropped_tells_of_no_asset_that_never_was(users: World, way: str) -> None:
    if way == "the job":
        users.store.delete_topic("users", 0)
        result = users.clean("users-0", "other")
    else:
        job = users.defs.resolve_implicit_global_asset_job_def()
        users.store.delete_topic("users", 0)
        result = job.get_subset(asset_selection={KEYS.clean("users")}).execute_in_process(
            instance=users.instance, raise_on_error=False, tags={"dagster/partition": "users-0"}
        )
    why = "its topic was deleted, or made anew with fewer partitions, since Dagster was shown it"
    gone = f"users-0 is not there any more: {why}"
    unknown = "there is no topic or topic-partition 'users-0': see keptlog topic list"
    assert failure(result) == f"1 not cleaned, 0 cleaned: {unknown if way == 'the job' else gone}"
    assert checked(users, result) <= {KEYS.clean("other")}
