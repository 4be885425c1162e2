"""A record and its deletion, both below the log start in one segment: no clean takes them, and what does is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.topic_partition import TopicPartition
from tests.erasure.world import KEY, OTHER, SECOND_MS, VALUE, World, new_id

LOG = TopicPartition("users", 0)


@pytest.fixture
def hidden(world: World) -> World:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (KEY, None), 2: (OTHER, b"1"), 3: (OTHER, b"2")}, 4)
    world.ask()
    world.store.delete_records(LOG, 2, new_id())
    assert world.to_deleted().erasure.state == "deleted"
    return world


def told(world: World) -> str:
    row = world.verified()
    assert row.erasure.state == "deleted"
    (text,) = row.blocked
    return text


def require_verified(world: World) -> None:
    world.later(SECOND_MS)
    world.purge()
    world.later(SECOND_MS)
    world.row()
    found = world.eraser.verify(now_ms=world.now_ms)
    assert {row.erasure.state for row in found.rows} == {"verified"}
    assert not world.files_with(VALUE)


def test_a_request_to_drop_it_here_does(hidden: World) -> None:
    assert (
        "newer record of their key comes: erase --here with another id, or delete all records of that segment"
        in told(hidden)
    )
    hidden.ask(id="r2", is_here=True)
    assert [offset for offset, _, _ in hidden.records()] == [3]
    require_verified(hidden)


def test_of_a_segment_that_is_missing_only_that_is_told(hidden: World) -> None:
    path = Path(hidden.store.logs("users")[0].segments[0].path.removeprefix("file://"))
    away = path.rename(path.with_suffix(".away"))
    text = next(each for each in hidden.verified().blocked if "missing from the storage" in each)
    assert "delete all records" not in text
    away.rename(path)


def test_a_deletion_of_all_records_of_its_segment_does(hidden: World) -> None:
    assert "lie in the live segment at [0,4)" in told(hidden)
    assert "delete all records of that segment (keptlog delete-records)" in told(hidden)
    hidden.store.delete_records(LOG, 4, new_id())
    require_verified(hidden)
