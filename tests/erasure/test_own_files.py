"""What keptlog or Iceberg has written keeps no request open if it is whole, and is told as damaged if it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.home import new_id
from keptlog.passes.readers import Readers
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import NAMESPACE
from tests.erasure.world import KEY, OTHER, SECOND_MS, VALUE, World
from tests.table.foreign import set_properties


def test_registers_histories_landed_changes_and_positions_of_readers_keep_no_request_open(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    readers = Readers(world.store, new_id)
    readers.add("users", "app", now_ms=world.now_ms)
    world.append((KEY, b"here"), (OTHER, b"1"))
    world.ask()
    for _ in readers.read("users", "app"):
        pass
    assert world.to_deleted().erasure.state == "deleted"
    folders = {path.relative_to(tmp_path).parts[5] for path in tmp_path.rglob("metadata/receipts/*/**/*.json")}
    assert folders == {"erasures", "history", "readers", "runs"}
    world.later(SECOND_MS)
    assert world.verified().erasure.state == "verified"


def test_metadata_files_of_the_table_outside_of_its_folder_keep_no_request_open(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.home.mkdir()
    world.create()
    set_properties(world.home, {"write.metadata.path": f"file://{tmp_path}/beside"}, "users")
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask(KEY)
    assert world.to_deleted().erasure.state == "deleted"
    row = world.verified()
    assert (row.erasure.state, row.blocked) == ("verified", ())


@pytest.mark.parametrize(
    ("outside", "todo"),
    [(True, "delete it if nobody else needs it"), (False, "move it out of the topic's folder")],
    ids=["outside of its folder", "in its folder"],
)
def test_a_damaged_metadata_file_of_the_table_is_told_as_damaged_until_it_is_whole_or_gone(
    tmp_path: Path, todo: str, *, outside: bool
) -> None:
    world = World(tmp_path / "home")
    world.home.mkdir()
    world.create()
    if outside:
        set_properties(world.home, {"write.metadata.path": f"file://{tmp_path}/beside"}, "users")
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask(KEY)
    assert world.to_deleted().erasure.state == "deleted"
    folder = tmp_path / "beside" if outside else world.home / "warehouse/keptlog/users/metadata"
    damaged = min(folder.glob("*.metadata.json"))
    whole = damaged.read_bytes()
    damaged.write_bytes(b"rot")
    (told,) = world.verified().blocked
    assert str(damaged) in told
    assert f"it is damaged, or is not what its name says: put back one that is whole, or look at it, and {todo}" in told
    damaged.write_bytes(whole)
    world.later(SECOND_MS)
    assert world.verified().erasure.state == "verified"


def plainly_committed(home: Path) -> Path:
    """A metadata file without a checksum in its name, which alone can be copied under another one."""
    own = open_catalog(home)
    plain = SqlCatalog(own.name, uri=own.properties["uri"], warehouse=own.properties["warehouse"])
    table = plain.load_table((NAMESPACE, "users"))
    table.transaction().set_properties({"comment": "of another program"}).commit_transaction()
    return Path(plain.load_table((NAMESPACE, "users")).metadata_location.removeprefix("file://"))


@pytest.mark.parametrize("name", ["users.metadata.json", "00001-0d7b6f7e-7b0f-4f0b-9b5c-0a4c52f5b0a1.metadata.json"])
def test_a_copy_of_the_metadata_that_somebody_has_registered_keeps_no_request_open(tmp_path: Path, name: str) -> None:
    """Where no other home has the topic: the file that was copied is moved away."""
    world = World(tmp_path / "home")
    world.home.mkdir()
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    copy = tmp_path / "safe" / name
    copy.parent.mkdir()
    plainly_committed(world.home).rename(copy)
    other = World(tmp_path / "other")
    other.home.mkdir()
    catalog = open_catalog(other.home)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    catalog.register_table((NAMESPACE, "users"), f"file://{copy}")
    other.append((OTHER, b"3"))
    other.ask(KEY)
    other.to_deleted()
    row = other.verified()
    assert (row.erasure.state, row.blocked) == ("verified", ())
