"""A link below a topic's folder that leads nowhere keeps a request open: its disk may be mounted again."""

from __future__ import annotations

from tests.cli.conftest import Run, home, keptlog
from tests.erasure.test_planted import almost_erased, live_path, require_verified, told, world
from tests.erasure.world import World

__all__ = ["home", "keptlog", "world"]


def test_what_was_moved_to_a_disk_that_is_not_mounted_was_not_looked_through(world: World, keptlog: Run) -> None:
    segment = almost_erased(world)
    disk, unmounted = world.home.parent / "disk", world.home.parent / "unmounted"
    disk.mkdir()
    (disk / "0-moved.parquet").write_bytes(segment)
    link = live_path(world).with_name("0-moved.parquet")
    link.symlink_to(disk / link.name)
    disk.rename(unmounted)
    (text,) = told(world, keptlog)
    assert f"{link.name} was not looked through: it is listed, and can't be read" in text
    unmounted.rename(disk)
    (text,) = told(world, keptlog)
    assert f"{link.name} (segment) has 1 record of 1 key" in text
    link.unlink()
    require_verified(world)
