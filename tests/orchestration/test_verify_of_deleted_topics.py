"""A topic that is deleted while the job ``verify`` reads all does not fail its run; one that was named does."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.passes.check import CheckResult
from keptlog.passes.verify import verify_log
from tests.orchestration.conftest import World
from tests.orchestration.test_attempts import verify
from tests.orchestration.test_looked_at_meanwhile import VERIFY_LOG


@pytest.fixture
def home(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two topics, the second of which somebody deletes while the first is read."""
    for topic in ("orders", "users"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("b", "1"))

    def deleted_meanwhile(*given: Any, **named: Any) -> list[CheckResult]:
        if "users" in world.store.topics():
            world.store.delete_topic("users", world.now_ms)
        return list(verify_log(*given, **named))

    monkeypatch.setattr(VERIFY_LOG, deleted_meanwhile)
    return world


def test_the_run_says_so_and_tells_nothing_of_its_checks(home: World) -> None:
    result = verify(home)

    assert result.success
    assert ("INFO", "users was deleted while it was verified") in home.told(result)
    told = {each.asset_key.path[0] for each in result.get_asset_check_evaluations()}
    assert told == {"orders"}


def test_who_has_named_it_is_told_that_nobody_could_look(home: World) -> None:
    result = verify(home, "orders", "users")

    assert not result.success
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    error = failed.step_failure_data.error
    assert error
    assert "1 log broken or not looked at: users-0: not looked at: " in error.message
