"""An erasure that waits for a purge which refuses says why, and is not ``deleted`` beside what nobody could look at."""

from __future__ import annotations

import os
import time

from keptlog.passes.erasures.erase_look import TopicLook
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.test_planted import live_path, local, location_of, world
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, SECOND_MS, VALUE, World

__all__ = ["home", "keptlog", "world"]


def asked(world: World) -> None:
    """A request for a key that has a record."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()


def clean_twice(world: World) -> None:
    """What takes the records of a request, two hours later each time."""
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()


def test_the_live_file_that_is_missing_is_named_where_no_snapshot_keeps_a_record(world: World, keptlog: Run) -> None:
    """The key was never there, so all that a purge has to take is older snapshots of the same files."""
    world.create()
    world.ingest({0: (OTHER, b"1")}, 1)
    world.ask()
    lost = live_path(world)
    content = lost.read_bytes()
    lost.unlink()
    world.later(SECOND_MS)
    row = world.verified()
    assert row.erasure.state == "compacted"
    [why] = row.blocked
    assert why.startswith("waits for a purge: live file ")
    assert f"{lost.name} is not there, and no purge deletes anything: put it back" in why
    assert keptlog("erasure", "verify").code == 1

    lost.write_bytes(content)
    assert world.row().blocked == ()


def test_the_folder_that_is_not_the_topics_own_is_named_and_nothing_in_it_is_deleted(world: World) -> None:
    asked(world)
    segment = live_path(world).read_bytes()
    clean_twice(world)
    world.later(SECOND_MS)
    left = local(location_of(world)) / "data" / "partition=0" / "0-left.parquet"
    left.write_bytes(segment)
    os.utime(left, (time.time() - 60, time.time() - 60))
    world.purge(grace_ms=30 * DAY_MS)
    assert world.erasure().state == "unreferenced"

    theirs = local(location_of(world)) / "theirs" / "metadata" / "00000-a.metadata.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("{}")
    world.later(2 * DAY_MS)
    row = world.verified()
    assert row.erasure.state == "unreferenced"
    assert any("holds another table" in each for each in row.blocked)

    theirs.unlink()
    world.purge()
    world.later(SECOND_MS)
    assert (left.exists(), world.verified().erasure.state) == (False, "verified")


def test_nobody_is_sent_to_a_purge_of_a_folder_that_is_not_the_topics_own(world: World) -> None:
    asked(world)
    clean_twice(world)
    theirs = local(location_of(world)) / "theirs" / "metadata" / "00000-a.metadata.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("{}")
    world.later(SECOND_MS)
    row = world.row()
    assert row.erasure.state == "compacted"
    assert all("holds another table" in each and "no purge deletes anything" in each for each in row.blocked)
    assert row.blocked


def test_the_storage_that_knows_more_than_the_catalog_is_named(world: World, keptlog: Run) -> None:
    """A catalog that was put back from a backup."""
    world.create()
    world.ingest({0: (OTHER, b"1")}, 1)
    world.ask()
    world.later(SECOND_MS)
    assert not any("purge" in each for each in world.verified().blocked)
    backup = (world.home / "catalog.db").read_bytes()
    for offset in (1, 2):
        world.ingest({offset: (OTHER, b"2")}, offset + 1)
    (world.home / "catalog.db").write_bytes(backup)
    world.later(SECOND_MS)
    row = world.verified()
    assert row.erasure.state == "compacted"
    [why] = row.blocked
    assert why.startswith("waits for a purge: the storage knows more than this catalog (")
    assert "and no purge deletes anything: if another home goes on" in why
    assert keptlog("erasure", "verify").code == 1
    assert "the storage knows more than this catalog" in keptlog("explain", "users").out


def test_the_clock_that_no_purge_believes_is_named(world: World) -> None:
    asked(world)
    clean_twice(world)
    world.later(40_000 * DAY_MS)
    store = world.store
    store.clock_guard.clock_ms = lambda: world.now_ms
    found = TopicLook(store, "users", world.now_ms).look([world.erasure()])
    assert found[0].erasure.state == "compacted"
    assert found[0].blocked
    assert all("no purge deletes anything: set the clock right" in each for each in found[0].blocked)
