"""A topic that the catalog does not name any more, and whose files are there, is not gone: nothing of it is over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from keptlog.notify.checks import leave_checks
from keptlog.table.namespaces import NAMESPACE
from tests.notify.conftest import DAY_MS, Scene, told
from tests.notify.servers import HttpInbox

FOUND = {"users-0": {"G1": "a file is damaged"}}
BROKEN = ("began", "broken check", "users-0")
UNREADABLE = ("began", "unreadable", "users")
OVERDUE = ("began", "erasure deadline", "users")


def drop(scene: Scene, topic: str = "users") -> None:
    """As SQL's ``DROP TABLE`` without ``PURGE`` does."""
    scene.store.committer.catalog.drop_table((NAMESPACE, topic))


def notify(scene: Scene, times: int = 3) -> None:
    assert [scene.notify().code for _ in range(times)] == [0] * times


@pytest.fixture
def broken(scene: Scene, posts: HttpInbox) -> Scene:
    """A home in which verify has found a topic broken, and another one that nothing is wrong with."""
    scene.topic()
    scene.topic("orders")
    leave_checks(scene.home, FOUND)
    notify(scene, 1)
    assert told(posts) == [BROKEN]
    return scene


def test_what_verify_has_found_is_not_over_and_the_drop_is_told(broken: Scene, posts: HttpInbox) -> None:
    drop(broken)
    notify(broken)
    assert told(posts) == [BROKEN, UNREADABLE]
    assert json.loads((broken.home / "notify" / "checks.json").read_text()) == FOUND


def test_the_metrics_and_the_status_tell_of_it_too(broken: Scene) -> None:
    drop(broken)
    metrics = broken.keptlog("metrics", "write", "-").out
    assert 'keptlog_condition{condition="broken check",level="broken",subject="users-0",topic="users"} 1.0' in metrics
    assert 'keptlog_condition{condition="unreadable",level="broken",subject="users",topic="users"} 1.0' in metrics
    status = broken.keptlog("status")
    assert status.code == 1
    assert "users: the catalog does not name it any more" in status.err


def test_what_is_broken_stays_so_once_the_table_is_registered_again(broken: Scene, posts: HttpInbox) -> None:
    location = broken.store.metadata_locations()["users"]
    drop(broken)
    notify(broken)
    broken.store.committer.catalog.register_table((NAMESPACE, "users"), location)
    notify(broken)
    assert told(posts) == [BROKEN, UNREADABLE, ("cleared", "unreadable", "users")]
    assert broken.keptlog("status").code == 1


def test_the_deadline_of_an_erasure_stays_passed(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.topic("orders")
    scene.environment.setenv("KEPTLOG_NOW_MS", str(scene.now_ms))
    erase = ["erase", "users", "--key", "key-of-a-person", "--by", "14d", "--run-id", "ticket-1", "--yes"]
    assert scene.keptlog(*erase).code == 0
    scene.notify(after_ms=15 * DAY_MS)
    assert OVERDUE in told(posts)
    before = told(posts)
    drop(scene)
    notify(scene)
    assert told(posts)[len(before) :] == [UNREADABLE]
    overdue = 'keptlog_condition{condition="erasure deadline",level="broken",subject="users",topic="users"} 1.0'
    assert overdue in scene.keptlog("metrics", "write", "-").out


def test_the_drop_of_a_topic_that_nothing_was_wrong_with_is_told(scene: Scene, posts: HttpInbox) -> None:
    """The last one, too: then no topic is listed at all."""
    scene.topic()
    notify(scene, 1)
    drop(scene)
    notify(scene)
    assert told(posts) == [UNREADABLE]


def test_all_is_over_once_the_files_are_gone(broken: Scene, posts: HttpInbox) -> None:
    drop(broken)
    notify(broken)
    shutil.rmtree(broken.home / "warehouse" / NAMESPACE / "users")
    notify(broken)
    cleared = {("cleared", "broken check", "users-0"), ("cleared", "unreadable", "users")}
    assert (told(posts)[:2], {*told(posts)[2:]}) == ([BROKEN, UNREADABLE], cleared)
    assert broken.keptlog("status").code == 0


def test_a_topic_that_keptlog_deletes_is_told_as_over(broken: Scene, posts: HttpInbox) -> None:
    broken.store.delete_topic("users", broken.now_ms)
    notify(broken)
    assert told(posts) == [BROKEN, ("cleared", "broken check", "users-0")]


def test_a_folder_that_no_topic_of_this_home_had_is_nobodys_matter(scene: Scene, posts: HttpInbox) -> None:
    """Another catalog may have its topics below the same warehouse."""
    scene.topic()
    scene.topic("theirs")
    drop(scene, "theirs")
    notify(scene)
    assert told(posts) == []
    assert scene.keptlog("status").code == 0


def test_a_folder_that_can_not_be_listed_does_not_say_that_a_topic_is_gone(
    broken: Scene, posts: HttpInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(broken)

    def refused(*_args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("keptlog.table.io.files.list_local", refused)
    notify(broken)
    assert told(posts) == [BROKEN, UNREADABLE]


def test_a_folder_is_remembered_where_the_table_lies(broken: Scene) -> None:
    state = json.loads((broken.home / "notify" / "state.json").read_text())
    folders = {topic: Path(folder.removeprefix("file://")) for topic, folder in state["folders"].items()}
    assert folders == {topic: broken.home / "warehouse" / NAMESPACE / topic for topic in ("orders", "users")}
