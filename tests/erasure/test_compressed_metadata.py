"""Another program has compressed a topic's metadata (``write.metadata.compression-codec``): it is looked through."""

from __future__ import annotations

import gzip
import json
import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import pytest

from keptlog.table.catalogs.embedded import DATABASE
from tests.erasure.world import KEY, OTHER, VALUE, World
from tests.table.foreign import table_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    return world


def compress(world: World, partition: str | None = None) -> Path:
    """Write the metadata anew, compressed; with a partition that a commit is said to have changed."""
    table = table_of(world.home, "users")
    stored = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(stored.read_bytes())
    if partition:
        metadata["snapshots"][0]["summary"][f"partitions.partition=0/key={partition}"] = "added-data-files=1"
    packed = stored.with_name(stored.name.replace(".metadata.json", ".gz.metadata.json"))
    packed.write_bytes(gzip.compress(json.dumps(metadata).encode()))
    stored.unlink()
    with closing(sqlite3.connect(world.home / DATABASE)) as database:
        database.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{packed}",))
        database.commit()
    return packed


def test_a_request_is_verified_beside_it(world: World) -> None:
    packed = compress(world)
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    assert packed.exists()
    row = world.verified()
    assert (row.blocked, row.erasure.state) == ((), "verified")


def test_a_key_that_it_names_keeps_a_request_open(world: World) -> None:
    packed = compress(world, b64encode(KEY).decode())
    world.ask()
    world.to_deleted()
    assert packed.exists()
    row = world.verified()
    assert row.erasure.is_open
    assert any(packed.name in text for text in row.blocked)


def test_one_that_is_cut_off_is_told(world: World) -> None:
    packed = compress(world)
    world.ask()
    world.to_deleted()
    packed.write_bytes(packed.read_bytes()[:-20])
    row = world.verified()
    assert row.erasure.is_open
    assert any(f"{packed.name} was not looked through: it can't be read: it is damaged" in text for text in row.blocked)
