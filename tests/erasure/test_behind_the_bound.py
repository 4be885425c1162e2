"""What lies behind a request's bound is new in the log, and may be old in a file that the table does not refer to."""

from __future__ import annotations

import pyarrow.parquet as pq

from keptlog.log.record import Record
from keptlog.storage.schema import to_arrow
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.test_planted import almost_erased, live_path, require_verified, told, world
from tests.erasure.world import KEY, SECOND_MS, VALUE, World

__all__ = ["home", "keptlog", "world"]


def test_in_a_copy_of_what_a_dead_append_had_staged_behind_the_bound(world: World, keptlog: Run) -> None:
    """It lies behind the bound, and came before the request; a copy has no time that tells so."""
    almost_erased(world)
    path = live_path(world).with_name("0-copy.parquet")
    pq.write_table(to_arrow(0, [Record(5000, KEY, VALUE, 1)]), path)
    (text,) = [each for each in told(world, keptlog) if str(path) in each]
    assert "keptlog purge users" in text
    world.later(SECOND_MS)
    world.purge()
    require_verified(world)


def test_a_record_that_came_behind_the_request_keeps_nothing_open(world: World) -> None:
    almost_erased(world)
    world.append((KEY, b"came back"))
    require_verified(world)
