"""What was planned before a truncation is of another log, also where that has grown again to the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import StalePlan
from keptlog.log.record import Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.names import NamedLogs
from keptlog.passes.retain import Retainer
from keptlog.table.changes.truncate import Truncation
from tests.erasure.world import HOUR_MS, KEY, OTHER, VALUE, World, new_id
from tests.table.stores import staged

USERS = TopicPartition("users", 0)
OLD = {"cleanup.policy": "delete", "retention.ms": str(HOUR_MS), "segment.ms": str(HOUR_MS)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Records 0 to 2 of a log that ends at 6: what lies between were markers of transactions."""
    world = World(tmp_path / "home")
    world.create("users", OLD)
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1"), 2: (OTHER, b"2")}, 6)
    return world


def truncate(world: World, offset: int) -> None:
    store = world.store
    Truncation(USERS, offset, new_id(), new_id).commit(store.committer, store.files)


@pytest.mark.parametrize("is_read_again", [False, True])
def test_retention_does_not_move_the_log_start_over_what_was_truncated(world: World, *, is_read_again: bool) -> None:
    world.later(2 * HOUR_MS)
    store = world.store
    (step,) = Retainer(store).plan(store.logs("users"), world.now_ms).steps
    truncate(world, 4)
    if is_read_again:
        world.ingest({3: (KEY, b"fresh"), 4: (OTHER, b"fresh")}, 6)
    before = world.records()
    with pytest.raises(StalePlan, match="it was to begin at offset 6, now at 3 at the latest"):
        store.retain("users", [step], new_id())
    assert world.records() == before
    assert Retainer(store).retain(NamedLogs(tuple(store.logs("users")), {}), new_id(), now_ms=world.now_ms).failed == {}
    assert [offset for offset, _, _ in world.records()] == ([3, 4] if is_read_again else [])


def test_retention_goes_on_where_only_markers_were_read_again(world: World) -> None:
    world.later(2 * HOUR_MS)
    store = world.store
    (step,) = Retainer(store).plan(store.logs("users"), world.now_ms).steps
    truncate(world, 4)
    world.ingest({}, 6)
    store.retain("users", [step], new_id())
    assert (store.logs("users")[0].log_start_offset, world.records()) == (6, [])


def test_an_ingest_does_not_land_at_a_position_that_was_reached_again(world: World) -> None:
    store = world.store
    lost = staged(store, "users", 0, [Record(6, KEY, b"lost there", world.now_ms)])
    slow = Arrival(OffsetRange(0, 6, 6, 8), tuple(lost))
    truncate(world, 2)
    world.ingest({2: (OTHER, b"2"), 5: (OTHER, b"new")}, 6)
    with pytest.raises(StalePlan, match="partition 0 was truncated"):
        store.ingest("users", [slow], SourceIdentity("there"), 1, new_id())
    assert store.source_of("users").positions == (6,)
    assert [offset for offset, _, _ in world.records()] == [0, 1, 2, 5]
