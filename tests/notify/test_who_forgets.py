"""What is remembered for people ends with its topic, only in the eyes of who tells them, and not for a lost catalog."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import open_home
from keptlog.notify.checks import leave_checks
from keptlog.table.namespaces import DELETING, NAMESPACE
from tests.notify.conftest import Scene, told
from tests.notify.servers import HttpInbox

BEGUN = [("began", "broken check", "users-0"), ("began", "uncleanable", "users-0")]
FOUND = {"users-0": {"G1": "a file is damaged"}}
LOOKS = [("notify", "--dry-run"), ("metrics", "write", "-"), ("doctor", "--no-probes")]
"""Commands that look, and tell nobody."""


def checks(scene: Scene) -> Any:
    return json.loads((scene.home / "notify" / "checks.json").read_text())


def dropped_by_another_program(scene: Scene) -> None:
    scene.store.committer.catalog.drop_table((NAMESPACE, "users"))


def begun_and_killed(scene: Scene) -> None:
    """A deletion that came as far as its first step."""
    catalog = scene.store.committer.catalog
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, "users"), (DELETING, "users"))


def applied(scene: Scene) -> None:
    nothing = scene.home.parent / "topics.yaml"
    nothing.write_text("topics: {}\n")
    open_home(scene.home).apply(nothing, delete=["users"])


def purged(scene: Scene) -> None:
    begun_and_killed(scene)
    open_home(scene.home).purger.purge(now_ms=scene.now_ms)


@pytest.fixture
def broken(scene: Scene, posts: HttpInbox) -> Scene:
    """A home of which people have been told what is wrong."""
    scene.topic()
    scene.break_log()
    leave_checks(scene.home, FOUND)
    assert scene.notify().code == 0
    assert sorted(told(posts)) == BEGUN
    return scene


def test_nothing_is_over_while_nobody_says_where_the_catalog_is(
    broken: Scene, posts: HttpInbox, tmp_path: Path
) -> None:
    """As under a cron without the ``PYICEBERG_`` variables: the home has what is remembered, and nothing else."""
    kept = [path for path in broken.home.iterdir() if path.name != "notify"]
    (tmp_path / "elsewhere").mkdir()
    for path in kept:
        path.rename(tmp_path / "elsewhere" / path.name)
    for command in LOOKS:
        broken.keptlog(*command)
        assert checks(broken) == FOUND
    assert [broken.notify().code for _ in range(3)] == [0] * 3
    assert (checks(broken), sorted(told(posts))) == (FOUND, BEGUN)
    for path in kept:
        (tmp_path / "elsewhere" / path.name).rename(path)
    dropped_by_another_program(broken)
    assert [broken.notify().code for _ in range(3)] == [0] * 3
    assert [event for event, *_ in told(posts)[2:]] == ["cleared"] * 2


def test_who_only_looks_forgets_nothing_of_a_topic_that_is_gone(broken: Scene) -> None:
    dropped_by_another_program(broken)
    for command in LOOKS:
        broken.keptlog(*command)
        assert checks(broken) == FOUND
    broken.notify()
    broken.notify()
    assert checks(broken) == {}


def test_a_topic_that_is_registered_again_is_as_broken_as_it_was(broken: Scene, posts: HttpInbox) -> None:
    """As keptlog advises where a catalog's entry is damaged; a look comes in between."""
    location = broken.store.metadata_locations()["users"]
    dropped_by_another_program(broken)
    broken.notify()
    broken.store.committer.catalog.register_table((NAMESPACE, "users"), location)
    assert [broken.notify().code for _ in range(3)] == [0] * 3
    assert checks(broken) == FOUND
    assert sorted(told(posts)) == BEGUN


@pytest.mark.parametrize(
    "delete",
    [
        pytest.param(lambda scene: scene.keptlog("topic", "delete", "users", "--yes"), id="the command"),
        pytest.param(lambda scene: open_home(scene.home).delete_topic("users"), id="the library"),
        pytest.param(applied, id="a file that is applied"),
        pytest.param(purged, id="a purge that ends what was killed"),
    ],
)
def test_whoever_ends_a_deletion_forgets_what_was_found_of_the_topic(
    broken: Scene, delete: Callable[[Scene], object]
) -> None:
    leave_checks(broken.home, {"orders-0": {"G1": "a file is damaged"}})

    delete(broken)

    assert checks(broken) == {"orders-0": {"G1": "a file is damaged"}}


def test_what_was_found_of_a_log_ends_with_its_topic_although_another_topic_has_the_name_of_the_log(
    broken: Scene, posts: HttpInbox
) -> None:
    broken.store.create_topic("users-0", 1, {"cleanup.policy": "compact"})
    broken.keptlog("topic", "delete", "users", "--yes")
    assert checks(broken) == {}
    assert [broken.notify().code for _ in range(3)] == [0] * 3
    assert [event for event, *_ in told(posts)[2:]] == ["cleared"] * 2
