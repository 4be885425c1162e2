"""What others find, delete or make anew while a long verify goes on is not told by what that has seen before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import Home, open_home
from keptlog.log.segment import Log
from keptlog.notify.checks import broken_checks, leave_checks
from keptlog.passes import verify_pass
from keptlog.passes.check import CheckResult
from keptlog.passes.holders import check_gone
from keptlog.passes.verify import verify_log
from keptlog.table.store import LogStore


def test_a_break_that_another_found_in_a_log_that_was_read_before_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(tmp_path, {})
    home.store.create_topic("users", 2, {"cleanup.policy": "compact"})
    read: list[int] = []

    def found_at_the_second(*given: Any) -> list[CheckResult]:
        if read:
            leave_checks(tmp_path, {"users-0": {"G1": "a value has rotted"}})
        read.append(len(read))
        return list(verify_log(*given))

    monkeypatch.setattr(verify_pass, "verify_log", found_at_the_second)
    assert all(each.passed for results in home.verify().values() for each in results)

    assert len(read) == 2
    assert broken_checks(tmp_path) == {"users-0": {"G1": "a value has rotted"}}


@pytest.fixture
def two(tmp_path: Path) -> Home:
    """Two topics."""
    home = open_home(tmp_path, {})
    for topic in ("orders", "users"):
        home.store.create_topic(topic, 1, {"cleanup.policy": "compact"})
    return home


def _what_the_first_holds_is_late(monkeypatch: pytest.MonkeyPatch, before_the_second: Callable[[], object]) -> None:
    """The first topic has something that should be gone; something is done before the storage of the second is seen."""

    def late(store: Any, topic: str, *given: Any) -> dict[int, CheckResult]:
        found = check_gone(store, topic, *given)
        if topic == "users":
            before_the_second()
            return found
        return {each: replace(result, passed=False, description="late") for each, result in found.items()}

    monkeypatch.setattr(verify_pass, "check_gone", late)


def test_what_a_topic_holds_is_known_as_soon_as_its_storage_was_looked_at(
    two: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[object] = []
    _what_the_first_holds_is_late(monkeypatch, lambda: known.append(broken_checks(two.path)))
    two.verify()
    assert known == [{"orders-0": {"G8": "late"}}]


def test_what_another_found_gone_meanwhile_is_not_told_as_late_again(
    two: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    _what_the_first_holds_is_late(monkeypatch, lambda: leave_checks(two.path, {"orders-0": {"G8": None}}))
    two.verify()
    assert broken_checks(two.path) == {}


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_what_was_found_of_a_topic_that_was_deleted_meanwhile_is_not_told_of_its_name(
    two: Home, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    def late_and_deleted(store: Any, topic: str, *given: Any) -> dict[int, CheckResult]:
        found = check_gone(store, topic, *given)
        if topic == "users":
            return found
        two.delete_topic(topic)
        if is_made_anew:
            two.store.create_topic(topic, 1, {"cleanup.policy": "compact"})
        return {each: replace(result, passed=False, description="late") for each, result in found.items()}

    monkeypatch.setattr(verify_pass, "check_gone", late_and_deleted)
    two.verify()
    assert broken_checks(two.path) == {}


def test_each_broken_log_of_a_topic_is_left_without_a_look_at_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that has lost its volume has a thousand of them."""
    home = open_home(tmp_path, {})
    home.store.create_topic("users", 5, {"cleanup.policy": "compact"})

    def broken(*given: Any) -> list[CheckResult]:
        return [replace(each, passed=False, description="gone") for each in verify_log(*given)]

    looks: list[str] = []
    really = LogStore.logs

    def logs(store: LogStore, topic: str) -> list[Log]:
        looks.append(topic)
        return really(store, topic)

    monkeypatch.setattr(verify_pass, "verify_log", broken)
    monkeypatch.setattr(LogStore, "logs", logs)
    home.verify()
    assert sorted(broken_checks(tmp_path)) == [f"users-{number}" for number in range(5)]
    assert len(looks) <= 2
