"""A file that somebody has put there under a name of ours is not taken for ours: it keeps an erasure open."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.conftest import Run, home, keptlog
from tests.erasure.test_planted import almost_erased, local, location_of, require_verified, told, world
from tests.erasure.world import KEY, SECOND_MS, VALUE, World

__all__ = ["home", "keptlog", "world"]


@pytest.mark.parametrize(
    "name",
    [
        "receipts/readers/app/an-id/0-5.json",
        "receipts/runs/0000000000001-n1-n2-an-id.json",
        "receipts/history/2026-11-23-an-id.json",
        "00009-an-id.metadata.json",
    ],
)
def test_what_is_called_as_a_file_of_ours_and_is_none_is_told_until_it_is_moved_away(
    world: World,
    keptlog: Run,
    name: str,
) -> None:
    almost_erased(world)
    path = local(location_of(world)) / "metadata" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"value": VALUE.decode(), "key": KEY.decode()}), encoding="utf-8")
    (text,) = [each for each in told(world, keptlog) if str(path) in each]
    assert "look at it, and move it out of the topic's folder" in text
    path.rename(world.home.parent / "moved.json")
    require_verified(world)


@pytest.mark.parametrize(
    "name",
    [
        "receipts/x.json",
        "receipts/erasures/x.json",
        "receipts/readers/app/an-id/0-5.json",
        "gc/x.json",
        "9.metadata.json",
    ],
)
def test_json_that_is_nested_too_deeply_to_be_read_ends_neither_a_search_nor_a_purge(world: World, name: str) -> None:
    almost_erased(world)
    path = local(location_of(world)) / "metadata" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'{"a":' * 100_000)
    [text] = [each for each in world.verified().blocked if str(path) in each]
    assert "was not looked through" in text
    world.later(SECOND_MS)
    world.purge()


@pytest.mark.parametrize("name", ["receipts/x.json", "receipts/erasures/x.json", "receipts/taken-back/x.json"])
def test_what_can_t_be_read_among_receipts_is_named_and_does_not_end_the_search(
    world: World, keptlog: Run, name: str
) -> None:
    almost_erased(world)
    path = local(location_of(world)) / "metadata" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    [text] = told(world, keptlog)
    assert (str(path) in text, "it is a named pipe" in text) == (True, True)
    path.unlink()
    require_verified(world)
