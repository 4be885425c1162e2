"""The erasures of a topic are a file that each change writes anew. The one before stays until a purge, as all files do.

So a backup that takes the catalog first, and the files afterwards, has the file that its catalog names.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keptlog.table.metadata.state import ERASURES, OPEN_ERASURES
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import set_properties, table_of

LATE_DELETES = {"file.delete.delay.ms": str(12 * HOUR_MS)}


def copied(catalog: Path, to: Path) -> Path:
    """A catalog as a backup takes it."""
    with closing(sqlite3.connect(catalog)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
    return to


def written_before(path: Path, ms: int) -> None:
    old_s = path.stat().st_mtime - ms / 1000
    os.utime(path, (old_s, old_s))


@pytest.mark.parametrize("age_ms", [0, 10 * DAY_MS])
def test_a_catalog_of_a_moment_ago_finds_its_erasures(world: World, tmp_path: Path, age_ms: int) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask(id="r1")
    (register,) = world.register_files
    written_before(register, age_ms)
    catalog = world.home / "catalog.db"
    backup = copied(catalog, tmp_path / "catalog.db")
    world.ask(OTHER, id="r2")
    copied(backup, catalog)
    found = world.eraser.list(["users"], now_ms=world.now_ms)
    assert (dict(found.failed), [row.id for row in found.rows]) == ({}, ["r1"])
    assert dict(world.ask(OTHER, id="r3").failed) == {}


def test_a_purge_deletes_what_was_replaced_also_where_nothing_else_is_to_be_deleted(world: World) -> None:
    world.create(settings=LATE_DELETES)
    for each in ("r1", "r2", "r3"):
        world.ask(id=each)
    assert len(world.register_files) == 3
    world.purge(grace_ms=DAY_MS)
    assert len(world.register_files) == 1
    assert [row.id for row in world.eraser.list(["users"], now_ms=world.now_ms).rows] == ["r1", "r2", "r3"]


def test_of_an_erasure_that_was_forgotten_the_next_purge_leaves_no_hash(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    world.to_deleted()
    world.verified()
    hashed = world.hasher.hash(KEY).hex()
    world.later(31 * DAY_MS)
    world.ask(OTHER, id="r2")
    world.purge()
    assert [path for path in world.register_files if hashed in path.read_text()] == []


def test_what_a_killed_change_has_left_goes_once_no_commit_could_bring_it_in(world: World) -> None:
    """It was about to be named, for all that a purge knows, until another commit has come."""
    world.create()
    world.ask()
    (register,) = world.register_files
    left = register.with_name("left.json")
    left.write_text("{}")
    written_before(left, -1)
    world.purge()
    assert left.exists()
    world.ask(OTHER, id="r2")
    world.purge()
    assert not left.exists()
    assert len(world.register_files) == 1


def test_where_nobody_can_tell_which_file_is_named_a_purge_deletes_none_of_them(world: World) -> None:
    world.create()
    world.ask()
    world.ask(OTHER, id="r2")
    files = world.register_files
    table_of(world.home, "users").transaction().set_properties({"log.erasures": "who knows"}).commit_transaction()
    world.purge()
    assert world.register_files == files


@pytest.mark.parametrize("counted", [None, "nonsense"])
def test_where_another_program_has_taken_the_name_away_a_purge_deletes_no_register(
    world: World, counted: str | None
) -> None:
    world.create()
    world.ask()
    files = world.register_files
    set_properties(world.home, {ERASURES: None} | ({OPEN_ERASURES: counted} if counted else {}), "users")
    world.later(10 * DAY_MS)
    world.purge()
    assert world.register_files == files
