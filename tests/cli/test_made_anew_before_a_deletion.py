"""Who agrees to delete a topic agrees to the one that he saw: a later one of its name stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.cli import topics
from keptlog.errors import StalePlan
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.table.store import LogStore
from tests.cli.conftest import Run
from tests.passes.applying import applier, file
from tests.passes.conftest import NOW_MS
from tests.table.stores import new_id

AGAIN = "was deleted and created again meanwhile; the new one was not deleted"


def _made_anew(store: LogStore, name: str) -> None:
    store.delete_topic(name, NOW_MS)
    store.create_topic(name, 1, {})
    store.append(name, [NewRecord(b"new", b"1", NOW_MS, 0)], new_id(), NOW_MS)


def _keys(store: LogStore, name: str) -> list[bytes | None]:
    return [record.key for _, record in store.read(name)]


def test_a_command_that_waits_for_its_answer(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog("topic", "create", "users")
    monkeypatch.setattr(topics, "require_consent", lambda _: _made_anew(open_home(home).store, "users"))
    told = keptlog("topic", "delete", "users")
    assert told.code != 0
    assert f"topic users {AGAIN}" in told.err
    assert _keys(open_home(home).store, "users") == [b"new"]
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    assert open_home(home).store.topics() == []


def test_an_apply_whose_plan_is_older(home: Path) -> None:
    store = open_home(home).store
    for name in ("users", "other"):
        store.create_topic(name, 1, {})
    plan = applier(store).plan(file(), ("users", "other"))
    _made_anew(store, "users")
    done = applier(store).carry_out(plan, NOW_MS)
    assert isinstance(done.failed["users"], StalePlan)
    assert AGAIN in str(done.failed["users"])
    assert (_keys(store, "users"), store.topics(), list(done.deletions)) == ([b"new"], ["users"], ["other"])


def test_a_topic_that_is_gone_already_is_not_there(home: Path) -> None:
    store = open_home(home).store
    store.create_topic("users", 1, {})
    plan = applier(store).plan(file(), ("users",))
    store.delete_topic("users", NOW_MS)
    assert "users" in applier(store).carry_out(plan, NOW_MS).failed
