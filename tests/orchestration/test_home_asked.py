"""Which home a sensor's tick tells of is asked where it counts: each question opens the home's catalog."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from keptlog.dagster.resources import log_store
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.test_shown_deadlines import in_time, ticks, users

__all__ = ["in_time", "users"]  # fixtures


def test_which_home_tells_is_asked_once_by_a_loud_tick_and_not_by_a_quiet_one(
    in_time: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Mock(wraps=log_store._which_home)
    monkeypatch.setattr(log_store, "_which_home", asked)
    assert (ticks(in_time, 2), asked.call_count) == (0, 0)

    in_time.now_ms += 91 * DAY_MS

    assert (ticks(in_time, 1), asked.call_count) == (1, 1)


def test_a_home_without_erasures_is_not_asked_which_it_is(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Mock(wraps=log_store._which_home)
    monkeypatch.setattr(log_store, "_which_home", asked)

    for value in "ab":
        users.append("users", ("other", value), age_ms=0)
        assert ticks(users, 1) == 0

    assert asked.call_count == 0
