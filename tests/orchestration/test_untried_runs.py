"""A run that has failed around its ops, and not in them, has tried nothing: it is held against no log."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.resources.passes import FOLDER
from keptlog.passes.clean import Cleaner
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import dirty_ratio_sensor, failed_run_sensor

Break = Callable[[World, pytest.MonkeyPatch], None]


class SealedSpark(InProcessSpark):
    """A resource of somebody's own that can't be had."""

    def setup_for_execution(self, _: dg.InitResourceContext) -> None:
        raise ConnectionError("the vault is sealed")


def disk_is_full(_: World, patch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr("dagster._core.storage.upath_io_manager.UPathIOManager.handle_output", full)


def resource_is_sealed(world: World, patch: pytest.MonkeyPatch) -> None:
    patch.setitem(world.more_resources, "spark", SealedSpark(spark_config={}))


def output_is_gone(world: World, patch: pytest.MonkeyPatch) -> None:
    """As after a jump of the clock: another run takes it for a week old, and deletes it."""
    folder = Path(world.instance.storage_directory()) / FOLDER
    really = "dagster._core.storage.upath_io_manager.UPathIOManager.load_input"

    def gone(*_: object) -> None:
        shutil.rmtree(folder)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    patch.setattr(really, gone)


_BREAKS = pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (disk_is_full, "No space left on device"),
        (resource_is_sealed, "the vault is sealed"),
        (output_is_gone, "No such file or directory"),
    ],
)


@pytest.fixture
def users(world: World) -> World:
    """Its clock is Dagster's, which says when runs began and ended."""
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    return world


def fails(world: World, request: dg.RunRequest) -> str:
    """What the failed run sensor says of a run that fails."""
    assert not world.launch(request).success
    world.now_ms = time.time_ns() // 1_000_000 + 1
    return world.skips(failed_run_sensor)


@_BREAKS
def test_it_marks_no_log_and_is_asked_for_again_with_a_pause_only_after_the_second(
    users: World, monkeypatch: pytest.MonkeyPatch, break_it: Break, why: str
) -> None:
    keys = set()
    for _ in range(2):
        (request,) = users.requests(dirty_ratio_sensor)
        keys.add(request.run_key)
        with monkeypatch.context() as patch:
            break_it(users, patch)
            said = fails(users, request)
        assert why in said
        assert "that is no log's fault, nothing is marked for it" in said

    assert len(keys) == 2
    assert "an outage has stopped the clean of users-0, the next is asked for at" in users.skips(dirty_ratio_sensor)
    assert users.store.logs("users")[0].uncleanable is None


@_BREAKS
def test_the_fourth_within_an_hour_counts_as_a_run_that_died_and_says_of_what(
    users: World, monkeypatch: pytest.MonkeyPatch, break_it: Break, why: str
) -> None:
    """It may stay so, and somebody is to be told."""
    (request,) = users.requests(dirty_ratio_sensor)
    with monkeypatch.context() as patch:
        break_it(users, patch)
        for _ in range(3):
            assert "nothing is marked for it" in fails(users, request)

        assert "marked as uncleanable: users-0" in fails(users, request)

    mark = users.store.logs("users")[0].uncleanable
    assert mark
    assert why in mark.reason


def test_a_clean_that_fails_in_an_op_is_a_run_that_died(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (request,) = users.requests(dirty_ratio_sensor)
    monkeypatch.setattr(Cleaner, "stage", bug)

    assert "marked as uncleanable: users-0" in fails(users, request)
