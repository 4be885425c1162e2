"""Where another program has moved a table, no request is proved beside its folder of before: nobody looks there."""

from __future__ import annotations

from tests.cli.conftest import Run, home, keptlog
from tests.erasure.test_planted import live_path, local, location_of
from tests.erasure.world import HOUR_MS, KEY, OTHER, SECOND_MS, VALUE, World
from tests.table.foreign import expire, set_location

__all__ = ["home", "keptlog"]


def test_a_register_that_lies_where_the_table_lay_is_not_told_as_lost(world: World) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    before = local(location_of(world))
    set_location(world.home, before.parent / "moved", "users")
    (told,) = world.eraser.list(["users"], now_ms=world.now_ms).failed.values()
    assert "set the location of its table back" in str(told)
    assert str(before) in str(told)
    assert "copy of the storage" not in str(told)
    set_location(world.home, before, "users")
    assert world.row().erasure.is_open


def test_doctor_says_so_too_and_sends_nobody_to_a_copy_of_the_storage(world: World, keptlog: Run) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    before = local(location_of(world))
    set_location(world.home, before.parent / "moved", "users")
    checks = keptlog("doctor", "--no-probes", "--json").json["checks"]
    [told] = (found for each in checks for found in each["problems"] if "its erasures" in found["what"])
    assert "set the location of its table back" in told["what"]
    assert told["cause"] == "another program has changed what its table says of its folder"
    assert told["todo"] == "do what it says"


def test_what_a_run_left_there_keeps_a_request_open(world: World) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    before = local(location_of(world))
    left = before / "data" / "partition=0" / "0-left.parquet"
    left.write_bytes(live_path(world).read_bytes())
    set_location(world.home, before.parent / "moved", "users")
    world.ask()
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
    table = world.store.load_table("users")
    current = table.metadata.current_snapshot_id
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id != current]
    expire(world.home, *old, topic="users")
    world.later(SECOND_MS)
    row = world.verified()
    assert left.exists()
    assert row.erasure.state == "unreferenced"
    assert any("is not where the topic lay before" in each for each in row.blocked)
