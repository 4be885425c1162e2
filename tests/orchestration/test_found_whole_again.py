"""A log that was broken, and that a run has read in full and found whole, is whole for ``keptlog notify`` too.

Its check passes then. Who is told that it is broken would look in Dagster, and find it green.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keptlog.dagster.assets.checks import TopicFindings, look_at
from keptlog.notify.checks import broken_checks, leave_checks
from tests.orchestration.conftest import DAY_MS, World, flip_a_value
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.test_attempts import materialize, verify


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A topic whose log is clean."""
    # The clock is weeks ahead of the storage's, and nobody purges: what a clean replaces would be late at once.
    monkeypatch.setenv("KEPTLOG_BROKER_KEPTLOG_PURGE_INTERVAL_MS", str(365 * DAY_MS))
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    assert world.clean().success
    return world


def damaged(world: World) -> Callable[[], None]:
    """Only who reads every byte sees this damage; mends it when it is called."""
    path = world.segment_file("users", 0)
    content = path.read_bytes()
    flip_a_value(path)

    def mend() -> None:
        path.write_bytes(content)

    return mend


def append_and_clean(world: World) -> bool:
    world.append("users", ("z", "1"), ("z", "2"))
    return world.clean("users-0", requested=True).success


def test_by_a_clean(users: World) -> None:
    mend = damaged(users)
    assert not verify(users).success
    assert list(broken_checks(users.path)["users-0"]) == ["G1"]
    mend()
    assert append_and_clean(users)
    assert broken_checks(users.path) == {}


def test_by_a_materialization_that_has_nothing_to_clean(users: World) -> None:
    mend = damaged(users)
    assert not verify(users).success
    mend()
    assert materialize(users, ["users-0"]).success
    assert broken_checks(users.path) == {}


def test_by_a_clean_that_was_told_by_the_home_alone(users: World) -> None:
    leave_checks(users.path, {"users-0": {"G1": "a value has rotted"}})
    assert append_and_clean(users)
    assert broken_checks(users.path) == {}


def test_but_not_by_a_clean_that_reads_no_values(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command finds while a run looks back at its log, the run had no reason to read in full."""

    def found_meanwhile(*given: Any, **named: Any) -> TopicFindings:
        leave_checks(users.path, {"users-0": {"G1": "a value has rotted"}})
        return look_at(*given, **named)

    monkeypatch.setattr("keptlog.dagster.assets.report.look_at", found_meanwhile)
    assert append_and_clean(users)
    assert broken_checks(users.path) == {"users-0": {"G1": "a value has rotted"}}
