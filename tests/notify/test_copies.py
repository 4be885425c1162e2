"""What a copy of a home knows is of the time at which it was made: it tells people that it is one, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from keptlog.notify.ticks import leave_tick
from tests.notify.conftest import DAY_MS, NOW_MS, Scene, told
from tests.notify.servers import HttpInbox, web_server

OVERDUE = ("began", "erasure deadline", "users")
COPIED = ("began", "catalog", "all topics")


@pytest.fixture
def copy(scene: Scene, tmp_path: Path) -> Path:
    """One of a home of which an overdue erasure was told, by a way that is not used in the copy; sensors ticked."""
    scene.topic()
    scene.environment.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    assert scene.keptlog("erase", "users", "--key", "key-of-a-person", "--by", "1h", "--yes").code == 0
    leave_tick(scene.home, "", NOW_MS, 30_000)
    scene.environment.setenv("KEPTLOG_NOTIFY_LOG", "true")
    assert OVERDUE[1] in scene.notify(after_ms=DAY_MS).out
    scene.environment.delenv("KEPTLOG_NOTIFY_LOG")
    shutil.copytree(scene.home, tmp_path / "copy")
    return tmp_path / "copy"


def use(scene: Scene, home: Path) -> None:
    scene.environment.setenv("KEPTLOG_HOME", str(home))


def test_who_notifies_from_a_copy_is_told_once_that_it_is_one_and_of_nothing_in_it(scene: Scene, copy: Path) -> None:
    with web_server() as inbox:
        scene.webhook(inbox)
        use(scene, copy)
        looks = [scene.notify() for _ in range(4)]
        assert [(each.code, each.err) for each in looks] == [(0, "")] * 4
        assert told(inbox) == [COPIED]
        assert f"home {copy} is a copy of the home at {scene.home}" in inbox.taken[0]["text"]
        shown = scene.notify("--dry-run")
        assert (shown.code, shown.out.count("\n")) == (1, 1)
        assert "erasure" not in shown.out


def test_a_copy_does_not_say_that_something_is_over(scene: Scene, copy: Path, posts: HttpInbox) -> None:
    """Also where the original did, and where one of the time of the copy was still to be told."""
    assert scene.notify().code == 0
    assert OVERDUE in told(posts)
    shutil.rmtree(copy)
    shutil.copytree(scene.home, copy)
    before = len(told(posts))
    use(scene, copy)
    for _ in range(4):
        scene.notify()
    assert told(posts)[before:] == [COPIED]


def test_the_original_goes_on_telling(scene: Scene, copy: Path, posts: HttpInbox) -> None:
    assert copy.exists()
    scene.notify()
    assert OVERDUE in told(posts)
    assert COPIED not in told(posts)


def test_a_copy_is_down_in_metrics_and_has_no_number_of_a_log(scene: Scene, copy: Path) -> None:
    scene.environment.setenv("KEPTLOG_NOW_MS", str(scene.now_ms))
    use(scene, copy)
    outcome = scene.keptlog("metrics", "write", "-")
    assert outcome.code == 1
    [line] = outcome.err.splitlines()
    assert line.startswith(f"keptlog: home {copy} is a copy of the home at {scene.home}")
    names = {each.partition("{")[0].split()[0] for each in outcome.out.splitlines() if not each.startswith("#")}
    assert names == {
        "keptlog_up",
        "keptlog_look_timestamp_seconds",
        "keptlog_look_duration_seconds",
        "keptlog_conditions",
        "keptlog_condition",
    }
    assert "keptlog_up 0.0" in outcome.out
    assert 'condition="catalog"' in outcome.out
    assert "erasure" not in outcome.out


def test_a_home_that_was_moved_is_no_copy(scene: Scene, copy: Path, posts: HttpInbox) -> None:
    shutil.rmtree(copy)
    moved = scene.home.rename(copy)
    use(scene, moved)
    for _ in range(4):
        scene.notify()
    assert not [each for body in posts.taken for each in body["events"] if "is a copy" in each["text"]]
