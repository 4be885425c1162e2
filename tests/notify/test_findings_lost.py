"""That the file with what verify has found is gone is no check that passed: what people were told stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.notify.conftest import Scene, told
from tests.notify.servers import HttpInbox

BEGAN = ("began", "broken check", "users-0")


@pytest.fixture
def segment(scene: Scene, posts: HttpInbox) -> Path:
    """The only one of a log, which is damaged, and people were told so."""
    scene.topic()
    path = Path(scene.store.logs("users")[0].segments[0].path.removeprefix("file://"))
    (scene.home / "whole").write_bytes(path.read_bytes())
    path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
    assert scene.keptlog("verify").code == 1
    scene.notify()
    scene.notify()
    assert told(posts) == [BEGAN]
    return path


def mend(scene: Scene, segment: Path) -> None:
    segment.write_bytes((scene.home / "whole").read_bytes())


def test_what_people_were_told_of_is_not_over(scene: Scene, segment: Path, posts: HttpInbox) -> None:
    (scene.home / "notify" / "checks.json").unlink()
    for _ in range(4):
        scene.notify()
    assert told(posts) == [BEGAN]
    status = scene.keptlog("status", "--json")
    assert status.code == 1
    assert list(json.loads(status.out)["broken"]) == ["users-0"]


def test_a_file_that_is_damaged_and_then_deleted_as_advised_ends_nothing(
    scene: Scene, segment: Path, posts: HttpInbox
) -> None:
    path = scene.home / "notify" / "checks.json"
    path.write_text('{"users-0"')
    assert "it is damaged; delete it" in scene.notify().err
    path.unlink()
    for _ in range(3):
        scene.notify()
    assert told(posts) == [BEGAN]


def test_it_is_over_once_the_log_passes(scene: Scene, segment: Path, posts: HttpInbox) -> None:
    (scene.home / "notify" / "checks.json").unlink()
    mend(scene, segment)
    assert scene.keptlog("verify").code == 0
    scene.notify()
    scene.notify()
    assert told(posts) == [BEGAN, ("cleared", "broken check", "users-0")]


def test_a_verification_of_another_topic_does_not_end_it(scene: Scene, segment: Path, posts: HttpInbox) -> None:
    scene.topic("orders")
    (scene.home / "notify" / "checks.json").unlink()
    assert scene.keptlog("verify", "orders").code == 0
    for _ in range(3):
        scene.notify()
    assert told(posts) == [BEGAN]


def test_with_a_topic_that_is_deleted_it_goes(scene: Scene, segment: Path, posts: HttpInbox) -> None:
    (scene.home / "notify" / "checks.json").unlink()
    scene.store.delete_topic("users", scene.now_ms)
    for _ in range(3):
        scene.notify()
    assert told(posts) == [BEGAN, ("cleared", "broken check", "users-0")]


def test_where_what_was_told_is_damaged_too_nobody_knows(scene: Scene, segment: Path, posts: HttpInbox) -> None:
    (scene.home / "notify" / "checks.json").unlink()
    (scene.home / "notify" / "state.json").write_text("{")
    assert scene.keptlog("status").code == 0
    assert scene.keptlog("verify").code == 1
    assert scene.keptlog("status").code == 1
