"""A topic that is deleted while all are verified costs the others nothing; whoever has named it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keptlog.home import Home, open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from keptlog.passes import verify_pass
from keptlog.passes.check import CheckResult, Outcome
from keptlog.passes.holders import check_gone
from keptlog.passes.verify import verify_log
from keptlog.table.namespaces import NAMESPACE


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Two topics, the second of which somebody deletes while the first is looked at."""
    home = open_home(tmp_path, {})
    for topic in ("orders", "users"):
        home.store.create_topic(topic, 1, {"cleanup.policy": "compact"})
        home.append(topic, [NewRecord(b"a", b"1", wall_clock_ms(), 0)])

    def deleted_meanwhile(*given: Any) -> dict[int, CheckResult]:
        if "users" in home.store.topics():
            home.store.delete_topic("users", wall_clock_ms())
        return check_gone(*given)

    monkeypatch.setattr(verify_pass, "check_gone", deleted_meanwhile)
    return home


def test_what_is_left_is_fine(home: Home) -> None:
    found = home.verify()
    assert list(found) == ["orders-0"]
    assert all(each.passed for each in found["orders-0"])


def test_so_it_is_where_a_new_topic_has_the_name(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def made_anew(*given: Any) -> list[CheckResult]:
        if "users" not in home.store.topics():
            monkeypatch.undo()
            home.store.create_topic("users", 1, {"cleanup.policy": "compact"})
        return list(verify_log(*given))

    monkeypatch.setattr(verify_pass, "verify_log", made_anew)

    assert list(home.verify()) == ["orders-0"]


def test_what_another_program_drops_meanwhile_and_leaves_the_files_of_is_not_deleted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dropped_meanwhile(*given: Any) -> dict[int, CheckResult]:
        if "users" in home.store.topics():
            home.store.committer.catalog.drop_table((NAMESPACE, "users"))
        return check_gone(*given)

    monkeypatch.setattr(verify_pass, "check_gone", dropped_meanwhile)

    found = home.verify()

    assert Outcome.NOT_LOOKED_AT in {each.outcome for each in found["users-0"]}


def test_who_has_named_it_is_told_that_nobody_could_look(home: Home) -> None:
    found = home.verify("users", "orders")
    assert {each.outcome for each in found["orders-0"]} == {Outcome.OK}
    assert Outcome.NOT_LOOKED_AT in {each.outcome for each in found["users-0"]}
