"""A table that counts erasures, and no longer says in which file they are, is not one without erasures."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import KeptlogError, LogCorrupt
from keptlog.table.metadata.state import ERASURES
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.world import KEY, OTHER, VALUE, World
from tests.table.foreign import set_properties

TOLD = "property log.erasures is gone, though log.erasures.open counts erasures; set it back"

__all__ = ["home", "keptlog"]


@pytest.fixture
def world(home: Path) -> World:
    return World(home)


@pytest.fixture
def taken(world: World) -> World:
    """Two topics with the same request, of which one has lost the name."""
    for topic in ("orders", "users"):
        world.create(topic)
        world.append((KEY, VALUE), topic=topic)
    world.ask(topics=("orders", "users"))
    set_properties(world.home, {ERASURES: None}, "users")
    return world


def told(failed: dict[str, KeptlogError]) -> dict[str, bool]:
    return {topic: isinstance(error, LogCorrupt) and TOLD in str(error) for topic, error in failed.items()}


def test_a_request_is_not_told_or_proved_without_it(taken: World) -> None:
    listed = taken.eraser.list(now_ms=taken.now_ms)
    assert ([row.topic for row in listed.rows], told(dict(listed.failed))) == (["orders"], {"users": True})
    taken.to_deleted("orders")
    proved = taken.eraser.verify(["r1"], now_ms=taken.now_ms)
    assert ([row.topic for row in proved.rows], told(dict(proved.failed))) == (["orders"], {"users": True})


def test_a_new_request_does_not_take_its_place(taken: World) -> None:
    files = taken.register_files
    asked = taken.ask(OTHER, id="r2")
    assert told(dict(asked.failed)) == {"users": True}
    assert taken.register_files == files


def test_one_of_which_all_have_ended_is_missed_too(taken: World, keptlog: Run) -> None:
    taken.to_deleted("orders")
    taken.verified("orders")
    set_properties(taken.home, {ERASURES: None}, "orders")
    done = keptlog("erasure", "list")
    assert (done.code, done.err.count(TOLD)) == (1, 2)


def test_the_doctor_names_the_topic(taken: World, keptlog: Run) -> None:
    checks = {each["name"]: each["problems"] for each in keptlog("doctor", "--json").json["checks"]}
    assert [(each["subject"], TOLD in each["what"]) for each in checks["erasure records"]] == [("users", True)]
