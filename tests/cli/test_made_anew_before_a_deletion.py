"""Who agrees to delete a topic agrees to the one that he saw: a later one of its name stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from keptlog.cli import topics
from keptlog.errors import StalePlan, StorageUnavailable
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.passes import apply
from keptlog.table.commits.loading import id_to_delete
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.deletion import Deletion
from keptlog.table.removal.topic_deletion import TopicDeletion
from keptlog.table.store import LogStore
from tests.cli.conftest import Run
from tests.passes.applying import applier, file
from tests.passes.conftest import NOW_MS
from tests.table.foreign import set_location
from tests.table.stores import new_id

AGAIN = "was deleted and created again meanwhile; the new one was not deleted"


def _made_anew(store: LogStore, name: str) -> None:
    store.delete_topic(name, NOW_MS)
    store.create_topic(name, 1, {})
    store.append(name, [NewRecord(b"new", b"1", NOW_MS, 0)], new_id(), NOW_MS)


def _begun(store: LogStore, name: str) -> None:
    """A topic whose deletion was killed behind its first step."""
    store.create_topic(name, 1, {})
    catalog = store.committer.catalog
    catalog.create_namespace_if_not_exists((DELETING,))
    catalog.rename_table((NAMESPACE, name), (DELETING, name))


def _finished_and_made_anew(store: LogStore, name: str) -> None:
    assert store.deletion(name, NOW_MS).finish().is_over
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


def test_a_command_that_is_to_finish_a_deletion(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_home(home).store
    _begun(store, "users")
    monkeypatch.setattr(topics, "require_consent", lambda _: _finished_and_made_anew(store, "users"))
    told = keptlog("topic", "delete", "users")
    assert told.code != 0
    assert f"topic users {AGAIN}" in told.err
    assert _keys(store, "users") == [b"new"]


def test_an_apply_that_is_to_finish_a_deletion(home: Path) -> None:
    store = open_home(home).store
    _begun(store, "users")
    plan = applier(store).plan(file(), ("users",))
    _finished_and_made_anew(store, "users")
    done = applier(store).carry_out(plan, NOW_MS)
    assert AGAIN in str(done.failed["users"])
    assert _keys(store, "users") == [b"new"]


def test_an_apply_before_whose_plan_another_call_has_finished_the_deletion(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_home(home).store
    _begun(store, "users")

    def finished_before(catalog: Catalog, name: str) -> str:
        store.deletion(name, NOW_MS).finish()
        return id_to_delete(catalog, name)

    monkeypatch.setattr(apply, "id_to_delete", finished_before)
    plan = applier(store).plan(file(), ("users",))
    assert (plan.deletions, plan.gone, plan.has_differences) == ((), ("users",), False)


def test_an_apply_that_can_not_tell_which_topic_is_meant_deletes_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_home(home).store
    for name in ("users", "other"):
        store.create_topic(name, 1, {})

    def passing_outage(catalog: Catalog, name: str) -> str:
        if name == "users":
            raise StorageUnavailable("for a moment")
        return id_to_delete(catalog, name)

    with monkeypatch.context() as outage:
        outage.setattr(apply, "id_to_delete", passing_outage)
        plan = applier(store).plan(file(), ("users", "other"))
    assert (plan.deletions, list(plan.failed)) == (("other",), ["users"])
    done = applier(store).carry_out(plan, NOW_MS)
    assert (store.topics(), list(done.failed), list(done.deletions)) == (["users"], ["users"], ["other"])


def test_one_who_finishes_the_deletion_leaves_what_was_made_meanwhile(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_home(home).store
    _begun(store, "users")
    finish = Deletion._finish

    def finish_and_make_anew(self: Deletion) -> TopicDeletion:
        done = finish(self)
        store.create_topic("users", 1, {})
        set_location(home, home / "warehouse", "users")  # what is wrong with the new one is nothing to this call
        return done

    monkeypatch.setattr(Deletion, "_finish", finish_and_make_anew)
    deletion = store.delete_topic("users", NOW_MS, id_to_delete(store.committer.catalog, "users"))
    assert (deletion.unfinished, len(deletion.deleted_files)) == (None, 1)
    assert (store.topics(), store.being_deleted()) == (["users"], [])


@pytest.mark.parametrize("is_begun", [True, False])
def test_the_library_deletes_what_was_there_when_it_was_called(
    home: Path, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    store = open_home(home).store
    if is_begun:
        _begun(store, "users")
    else:
        store.create_topic("users", 1, {})
    delete = Deletion.delete

    def delete_late(self: Deletion) -> TopicDeletion:
        monkeypatch.undo()
        if is_begun:
            _finished_and_made_anew(store, "users")
        else:
            _made_anew(store, "users")
        return delete(self)

    monkeypatch.setattr(Deletion, "delete", delete_late)
    with pytest.raises(StalePlan, match=AGAIN):
        open_home(home).delete_topic("users")
    assert _keys(store, "users") == [b"new"]


def test_a_library_whose_call_finishes_a_deletion_leaves_a_topic_made_meanwhile(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_home(home).store
    _begun(store, "users")
    finish = Deletion._finish

    def finish_late(self: Deletion) -> TopicDeletion:
        monkeypatch.undo()
        _finished_and_made_anew(store, "users")
        return finish(self)

    monkeypatch.setattr(Deletion, "_finish", finish_late)
    assert open_home(home).delete_topic("users") == 0
    assert _keys(store, "users") == [b"new"]


def test_whose_a_topic_is_comes_before_what_is_wrong_with_it(home: Path) -> None:
    store = open_home(home).store
    store.create_topic("users", 1, {})
    topic_id = id_to_delete(store.committer.catalog, "users")
    _made_anew(store, "users")
    set_location(home, home / "warehouse", "users")
    with pytest.raises(StalePlan, match=AGAIN):
        store.delete_topic("users", NOW_MS, topic_id)


def test_a_list_that_lags_hides_no_deletion(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As DynamoDB's does: what was renamed just now is still listed under its old name."""
    store = open_home(home).store
    _begun(store, "users")
    catalog = store.committer.catalog
    listed = {(NAMESPACE,): [(NAMESPACE, "users")]}
    monkeypatch.setattr(type(catalog), "list_tables", lambda _, namespace: listed.get(namespace, []))
    assert not store.delete_topic("users", NOW_MS, id_to_delete(catalog, "users")).unfinished
    monkeypatch.undo()
    assert (store.topics(), store.being_deleted()) == ([], [])


def test_both_go_where_both_are_there(home: Path) -> None:
    store = open_home(home).store
    _begun(store, "users")
    catalog = store.committer.catalog
    catalog.rename_table((DELETING, "users"), (DELETING, "aside"))
    store.create_topic("users", 1, {})
    catalog.rename_table((DELETING, "aside"), (DELETING, "users"))
    assert not store.delete_topic("users", NOW_MS, id_to_delete(catalog, "users")).unfinished
    assert (store.topics(), store.being_deleted()) == ([], [])


def test_a_topic_that_is_gone_already_is_not_there(home: Path) -> None:
    store = open_home(home).store
    store.create_topic("users", 1, {})
    plan = applier(store).plan(file(), ("users",))
    store.delete_topic("users", NOW_MS)
    assert "users" in applier(store).carry_out(plan, NOW_MS).failed
