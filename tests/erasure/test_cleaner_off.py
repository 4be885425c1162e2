"""Where the broker settings stop the cleaner, a request is told so: when it is asked for, and while it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.broker import CLEANER_DISABLED
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.erasure.world import HOUR_MS, KEY, VALUE, World, new_id

TOLD = (
    f"{CLEANER_DISABLED}: take log.cleaner.enable=false out of the broker settings, unless another machine cleans "
    "the topic"
)


class SwitchedOff(World):
    """A home whose broker settings stop the cleaner."""

    @property
    def store(self) -> LogStore:
        return LogStore(open_catalog(self.home), {"log.cleaner.enable": "false"}, lambda _: None, new_id)


def hindrances(world: World, **how: object) -> list[str]:
    request = ErasureRequest("r1", ("users",), (KEY,), **how)  # type: ignore[arg-type]
    return [str(each) for each in world.eraser.propose(request, now_ms=world.now_ms).topics["users"].hindrances]


def test_a_request_that_waits_for_a_clean_is_told_that_none_comes(tmp_path: Path) -> None:
    world = SwitchedOff(tmp_path)
    world.create(partitions=2)
    world.append((KEY, VALUE))
    assert hindrances(world) == [TOLD]
    world.ask()
    assert world.row().blocked == (TOLD,)
    assert "this machine cleans and retains no compacted log" in TOLD, "another one may, over the same catalog"
    on = World(tmp_path, world.now_ms)
    on.later(2 * HOUR_MS)
    on.clean()
    assert on.row().erasure.state == "compacted"
    assert on.row().blocked == ()
    assert world.row().blocked == (TOLD,), "the tombstone expires by a clean"


@pytest.mark.parametrize(("settings", "how"), [({}, {"is_here": True}), ({"cleanup.policy": "delete"}, {})])
def test_what_waits_for_no_clean_is_told_nothing(
    tmp_path: Path, settings: dict[str, str], how: dict[str, object]
) -> None:
    world = SwitchedOff(tmp_path)
    world.create(settings=settings)
    world.ingest({0: (KEY, VALUE)}, 1)
    assert hindrances(world, **how) == []
