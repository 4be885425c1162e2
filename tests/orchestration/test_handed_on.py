"""What the ops of a clean hand on is gone when it has landed; of a run that failed it is kept for a week."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.resources.passes import FOLDER, KEPT_SECONDS
from keptlog.errors import StorageUnavailable
from keptlog.passes.clean import Cleaner
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import failed_run_sensor

_worlds: list[World] = []


def clean_logs() -> dg.JobDefinition:
    """As Dagster finds it once more for a run that is executed again."""
    return _worlds[-1].defs.get_job_def("clean_logs")


@pytest.fixture
def users(world: World) -> Iterator[World]:
    """Its clock is Dagster's, which says when runs began and ended."""
    world.now_ms = time.time_ns() // 1_000_000
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    _worlds.append(world)
    yield world
    _worlds.pop()


def again(world: World, run_id: str) -> dg.ExecuteJobResult:
    """Re-execute from failure."""
    options = dg.ReexecutionOptions.from_failure(run_id, world.instance)
    job = dg.reconstructable(clean_logs)
    return dg.execute_job(job, instance=world.instance, reexecution_options=options, raise_on_error=False)


def kept(world: World) -> list[str]:
    """The files of what runs have handed on: run, op and output of each."""
    folder = storage(world) / FOLDER
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def storage(world: World) -> Path:
    return Path(world.instance.storage_directory())


def of_run(run_id: str) -> list[str]:
    return [f"{run_id}/{op}/result" for op in ("compact", "expire_tombstones", "plan")]


def grow_old(world: World, run_id: str) -> None:
    week_ago = time.time() - KEPT_SECONDS - 1
    os.utime(storage(world) / FOLDER / run_id, (week_ago, week_ago))


def require_not_taken_up(users: World, late: dg.ExecuteInProcessResult) -> None:
    """A re-execution has found nothing that it could go on with, says so, and marks nothing."""
    assert not late.success
    (step,) = [each for each in late.all_events if each.is_step_failure]
    assert "Launch a new run" in str(step.step_failure_data.error)
    users.now_ms = time.time_ns() // 1_000_000
    assert f"run {late.run_id}: it could not load what the run before had handed on" in users.skips(failed_run_sensor)


def test_a_clean_that_has_landed_leaves_nothing_but_what_it_printed(users: World) -> None:
    of_others = storage(users) / "a run of others" / "made"
    of_others.parent.mkdir(parents=True)
    of_others.write_bytes(b"1")

    result = users.clean()

    assert result.success
    assert kept(users) == []
    assert of_others.exists()
    left = {each.parent.name for each in (storage(users) / result.run_id).rglob("*") if each.is_file()}
    assert left <= {"compute_logs"}


def test_what_a_run_that_failed_has_handed_on_is_kept_and_committed_later(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StorageUnavailable("the catalog is away")

    with monkeypatch.context() as patch:
        patch.setattr(Cleaner, "commit", away)
        failed = users.clean()
    assert not failed.success
    assert kept(users) == of_run(failed.run_id)

    assert again(users, failed.run_id).success

    assert users.records("users") == [(1, b"a", b"2")]


def test_after_a_week_the_next_run_deletes_it(users: World) -> None:
    users.break_segment("users")
    failed = users.clean()
    assert kept(users) == of_run(failed.run_id)
    users.clean()
    assert kept(users) == of_run(failed.run_id)
    grow_old(users, failed.run_id)

    users.clean()

    assert kept(users) == []


def killed(*_: object) -> None:
    raise MemoryError


def test_who_takes_it_up_later_is_told_to_launch_a_new_run_and_no_log_is_at_fault(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Cleaner, "commit", killed)
        failed = users.clean("users-0")
    grow_old(users, failed.run_id)
    users.clean()
    users.tick(failed_run_sensor)
    for value in "345":
        users.append("users", ("a", value))

    late = again(users, failed.run_id)

    require_not_taken_up(users, late)
    (log,) = users.store.logs("users")
    assert log.uncleanable is None


def test_what_another_keptlog_has_handed_on_is_not_taken_up(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its passes may have other fields, or the same in another order."""
    with monkeypatch.context() as patch:
        patch.setattr(Cleaner, "commit", killed)
        failed = users.clean("users-0")
    monkeypatch.setattr("keptlog.spark.packed.fingerprint", lambda: "upgraded")

    late = again(users, failed.run_id)

    require_not_taken_up(users, late)
    assert users.clean("users-0", requested=True).success, "a new run does it"


def test_what_a_run_hands_on_is_of_the_code_that_it_began_with(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade during a long plan replaces the files, and not what this process has imported."""
    really = Cleaner.plan_for

    def upgraded_meanwhile(*given: Any, **named: Any) -> Any:
        later.setattr("keptlog.spark.packed.fingerprint", lambda: "upgraded")
        return really(*given, **named)

    with monkeypatch.context() as later:
        later.setattr(Cleaner, "plan", upgraded_meanwhile)
        later.setattr(Cleaner, "plan_for", upgraded_meanwhile)
        later.setattr(Cleaner, "commit", killed)
        failed = users.clean("users-0")
    assert kept(users) == of_run(failed.run_id)

    assert again(users, failed.run_id).success, "the code is that of the run before"

    assert users.records("users") == [(1, b"a", b"2")]


def test_what_can_not_be_deleted_fails_no_clean(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("keptlog.dagster.resources.passes.shutil.rmtree", refused)

    result = users.clean()

    assert result.success
    (warning,) = [text for level, text in users.told(result) if level == "WARNING"]
    assert warning.startswith("what a run had handed on could not be deleted: ")
