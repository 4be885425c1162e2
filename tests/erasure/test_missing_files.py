"""What the topic needs and is not there was looked through by nobody: no request is ``verified`` beside it.

Somebody may put the file back, and then readers would have what is in it, beside a receipt that says that every file
was looked through.
"""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.engine.engine import Engine
from keptlog.log.search import FileFindings
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.test_planted import almost_erased, live_path, local, require_verified, told, world
from tests.erasure.world import KEY, OTHER, VALUE, World

__all__ = ["home", "keptlog", "world"]
MISSING = "was not looked through: the topic needs it, and it is missing from the storage; put the file back"


def test_a_live_segment_that_is_missing_keeps_a_request_open_and_is_named(world: World, keptlog: Run) -> None:
    segment = almost_erased(world)
    path = live_path(world)
    own = path.read_bytes()
    path.unlink()
    (text,) = told(world, keptlog)
    assert f"{path.name} {MISSING}" in text
    path.write_bytes(segment)
    (text,) = told(world, keptlog)
    assert f"{path.name} (segment) has 1 record of 1 key" in text
    path.write_bytes(own)
    require_verified(world)


def test_so_does_one_that_was_cut_off_to_nothing(world: World, keptlog: Run) -> None:
    almost_erased(world)
    path = live_path(world)
    own = path.read_bytes()
    path.write_bytes(b"")
    (text,) = told(world, keptlog)
    assert f"{path.name} was not looked through: it is empty, and the topic needs it; put the file back" in text
    path.write_bytes(own)
    require_verified(world)


def test_so_does_a_file_of_watermarks(world: World, keptlog: Run) -> None:
    world.create(settings={"compaction.strategy": "timestamp"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    named = world.store.logs("users")[0].watermarks_path
    assert named
    content = local(named).read_bytes()
    local(named).unlink()
    (text,) = told(world, keptlog)
    assert f"{named} {MISSING}" in text
    local(named).write_bytes(content)
    (text,) = told(world, keptlog)
    assert f"{named} (arrow) has 1 record of 1 key" in text


def test_so_does_what_was_away_when_it_was_opened_and_is_listed_again(
    world: World, keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has looked at it: that it was deleted, the last listing denies."""
    segment = almost_erased(world)
    path = live_path(world).with_name("0-copy.parquet")
    path.write_bytes(segment)
    look_through = Engine.search

    def while_it_is_away(self: Engine, *args: Any) -> list[FileFindings]:
        away = path.rename(world.home / "away")
        try:
            return look_through(self, *args)
        finally:
            away.rename(path)

    with monkeypatch.context() as away:
        away.setattr(Engine, "search", while_it_is_away)
        (text,) = world.verified().blocked
    assert f"{path.name} was not looked through: it is listed, and can't be read: verify again" in text
    (text,) = told(world, keptlog)
    assert f"{path.name} (segment) has 1 record of 1 key" in text
    path.unlink()
    require_verified(world)
