"""A request of several topics, of which another program has dropped one, is not told as verified by the others."""

from __future__ import annotations

import os
import shutil

import pytest

from keptlog.errors import InvalidConfig
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from keptlog.table.namespaces import NAMESPACE
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.test_planted import local, location_of
from tests.erasure.world import KEY, OTHER, VALUE, World
from tests.table.foreign import expire, set_location, table_of

__all__ = ["home", "keptlog"]


def asked_of(world: World, *topics: str, erasure_id: str = "r1") -> None:
    for topic in topics:
        world.create(topic)
        world.append((KEY, VALUE), (OTHER, b"1"), topic=topic)
    world.ask(topics=topics, id=erasure_id)


def drop_table(world: World, topic: str) -> str:
    """What SQL's ``DROP TABLE`` does; gives the folder that is left."""
    open_catalog(world.home).drop_table((NAMESPACE, topic))
    return f"file://{world.home}/warehouse/{NAMESPACE}/{topic}"


@pytest.mark.parametrize("ids", [["r1"], []])
def test_a_verification_names_the_folder_and_what_puts_the_topic_back(world: World, ids: list[str]) -> None:
    asked_of(world, "users", "carts")
    world.to_deleted()
    folder = drop_table(world, "carts")
    found = world.eraser.verify(ids, now_ms=world.now_ms)
    assert [(row.topic, row.erasure.state) for row in found.rows] == [("users", "verified")]
    told = str(found.failed[folder])
    assert "no verification looks there for the keys of r1; " in told
    assert "keptlog topic register carts" in told


def test_where_no_topic_is_left_that_knows_it_it_is_not_told_that_there_is_no_such_request(world: World) -> None:
    asked_of(world, "users")
    folder = drop_table(world, "users")
    found = world.eraser.verify(["r1"], now_ms=world.now_ms)
    assert (found.rows, list(found.failed)) == ((), [folder])


def test_a_request_that_nobody_has_open_there_is_not_named_with_it(world: World) -> None:
    asked_of(world, "users", "carts")
    drop_table(world, "carts")
    with pytest.raises(InvalidConfig, match="there is no erasure 'r2'"):
        world.eraser.verify(["r2"], now_ms=world.now_ms)
    assert world.eraser.verify(["r1"], ["users"], now_ms=world.now_ms).failed == {}


def test_the_command_ends_with_1(world: World, keptlog: Run) -> None:
    asked_of(world, "users", "carts")
    folder = drop_table(world, "carts")
    told = keptlog("erasure", "verify", "r1")
    assert told.code == 1
    assert f"keptlog: {folder}: no topic lies in this folder any more" in told.err


@pytest.mark.parametrize("asked", [("list",), ("list", "--open"), ("show", "r1")])
@pytest.mark.parametrize("others", [(), ("users",)])
def test_list_and_show_name_it_too(world: World, keptlog: Run, asked: tuple[str, ...], others: tuple[str, ...]) -> None:
    """A list said that there are no erasures, and whoever asked for one that there is none of its id."""
    asked_of(world, "carts", *others)
    folder = drop_table(world, "carts")
    told = keptlog("erasure", *asked)
    assert told.code == 1
    assert f"keptlog: {folder}: no topic lies in this folder any more" in told.err
    assert "for the keys of r1; " in told.err
    assert "there is no erasure" not in told.err
    assert "topics can be read" not in told.out  # all there are can


def test_an_erasure_of_other_topics_is_shown_without_it(world: World, keptlog: Run) -> None:
    asked_of(world, "carts")
    drop_table(world, "carts")
    asked_of(world, "users")
    assert keptlog("erasure", "list", "users").code == 0
    assert "there is no erasure 'r2'" in keptlog("erasure", "show", "r2").err


def test_who_asks_for_another_request_or_for_other_topics_is_told_nothing_of_it(world: World, keptlog: Run) -> None:
    asked_of(world, "users")
    asked_of(world, "carts", erasure_id="r2")
    drop_table(world, "carts")
    assert [keptlog("erasure", *each).code for each in (("show", "r1"), ("list", "users"))] == [0, 0]


def test_where_all_others_have_ended_it_is_listed_too(world: World, keptlog: Run) -> None:
    asked_of(world, "users", "carts")
    world.to_deleted()
    folder = drop_table(world, "carts")
    world.eraser.verify(["r1"], ["users"], now_ms=world.now_ms)
    told = keptlog("erasure", "list")
    assert (told.code, folder in told.err) == (1, True)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), TimeoutError(110, "no answer")])
def test_erasures_of_a_lost_topic_that_can_t_be_read_keep_no_other_topic_from_its_proof(
    world: World, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    asked_of(world, "users", "carts")
    world.to_deleted()
    folder, really = drop_table(world, "carts"), TableFiles.read_bytes

    def read(files: TableFiles, path: str) -> bytes:
        if "/carts/metadata/receipts/erasures/" in path:
            raise error
        return really(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", read)
    found = world.eraser.verify(now_ms=world.now_ms)
    assert [(row.topic, row.erasure.state) for row in found.rows] == [("users", "verified")]
    assert str(found.failed[folder]).startswith(f"the erasures in {folder} can't be read")


def test_of_a_damaged_register_of_a_lost_topic_the_next_step_is_told_and_its_topic_can_be_put_back(
    world: World, keptlog: Run
) -> None:
    """An older one, say, that no table names."""
    asked_of(world, "users", "carts")
    world.to_deleted()
    folder = drop_table(world, "carts")
    damaged = world.home / "warehouse" / NAMESPACE / "carts/metadata/receipts/erasures" / "older.json"
    damaged.write_bytes(b"")
    told = str(world.eraser.verify(now_ms=world.now_ms).failed[folder])
    assert told.startswith(f"{damaged.as_uri()} is no list of erasures (it is not JSON); put it back from a copy of ")
    assert "; where there is none, put the topic back, with keptlog topic register carts, or " in told
    assert keptlog("topic", "register", "carts", "--yes").code == 0
    assert world.eraser.verify(now_ms=world.now_ms).failed == {}


def test_one_that_was_verified_before_the_table_went_is_not_named_where_a_copy_has_other_times(world: World) -> None:
    asked_of(world, "users", "carts")
    world.to_deleted("carts")
    assert world.verified("carts").is_verified_now
    folder = drop_table(world, "carts")
    lie_in = world.home / "warehouse" / NAMESPACE / "carts/metadata/receipts/erasures"
    registers = sorted(lie_in.iterdir(), key=lambda each: each.stat().st_mtime_ns)
    assert len(registers) > 1
    for age, register in enumerate(registers):
        os.utime(register, (1000 - age, 1000 - age))
    assert folder not in world.eraser.verify(now_ms=world.now_ms).failed


def test_a_folder_in_which_a_topic_has_live_files_is_not_to_be_deleted_for_a_request_that_was_left_there(
    world: World,
) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    own = local(location_of(world))
    meanwhile = own.parent / "users-x"
    set_location(world.home, meanwhile, "users")
    world.append((KEY, VALUE))
    set_location(world.home, own, "users")
    for number in range(25):
        world.append((OTHER, b"%d" % number))
    world.ask()
    shutil.copytree(
        own / "metadata/receipts/erasures", meanwhile / "metadata/receipts/erasures"
    )  # as who asked there has left it
    snapshots = table_of(world.home, "users").metadata.snapshots
    expire(world.home, *[each.snapshot_id for each in snapshots[:-1]], topic="users")  # as another program does
    told = str(world.eraser.list(now_ms=world.now_ms).failed[f"file://{meanwhile}"])
    assert "; leave it as long as live files of users lie there; then" in told
