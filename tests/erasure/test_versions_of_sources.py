"""Ingested records with versions: a deletion counts if it was the latest of its key when it came, by its version."""

from __future__ import annotations

import pytest

from keptlog.log.erasures.erasure import Erasure
from tests.erasure.world import HOUR_MS, KEY, OTHER, SECOND_MS, VALUE, World

BY_TIMESTAMP = {"compaction.strategy": "timestamp", "keptlog.watermark.retention.ms": "0"}
Arrived = tuple[int, bytes | None]
"""Its version, and its value."""


def arrive(world: World, at: int, *records: Arrived) -> None:
    """Records of the key, from an offset on; versions are seconds before or after now."""
    world.ingest(
        {at + number: (KEY, value) for number, (_, value) in enumerate(records)},
        at + len(records),
        timestamps_ms={at + number: world.now_ms + s * SECOND_MS for number, (s, _) in enumerate(records)},
    )


def end_of(erasure: Erasure) -> int | None:
    return erasure.end_offset_of(0, erasure.key_hashes[0])


def test_a_late_deletion_that_loses_is_none(world: World) -> None:
    world.create(settings=BY_TIMESTAMP)
    arrive(world, 0, (0, VALUE), (-5, None))
    world.ask()
    row = world.row()
    assert (row.erasure.state, len(row.blocked)) == ("requested", 1)
    assert world.to_deleted().erasure.state == "requested"
    assert [value for _, _, value in world.records()] == [VALUE]
    arrive(world, 2, (5, None))
    assert (world.erasure().state, end_of(world.erasure())) == ("tombstoned", 3)
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_one_that_arrives_after_the_request_and_loses_is_waited_on(world: World) -> None:
    world.create(settings=BY_TIMESTAMP)
    arrive(world, 0, (0, VALUE))
    world.ask()
    arrive(world, 1, (-5, None))
    assert world.erasure().state == "requested"
    arrive(world, 2, (5, None), (-1, b"late"))
    assert (world.erasure().state, end_of(world.erasure())) == ("tombstoned", 3)


def test_a_deletion_of_before_the_request_that_lost_later_is_none_afterwards_either(world: World) -> None:
    world.create(settings=BY_TIMESTAMP)
    arrive(world, 0, (0, VALUE), (5, None), (9, b"again"))
    world.ask()
    assert world.erasure().state == "requested"
    world.ingest({3: (OTHER, b"1")}, 4)
    assert world.erasure().state == "requested"


def test_a_record_that_comes_back_behind_its_deletion_is_new_whatever_its_version(world: World) -> None:
    world.create(settings=BY_TIMESTAMP)
    arrive(world, 0, (0, VALUE))
    world.ask()
    arrive(world, 1, (5, None), (9, b"came back"))
    assert (world.erasure().state, end_of(world.erasure())) == ("tombstoned", 2)
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert [value for _, _, value in world.records()] == [b"came back"]


def test_a_late_record_of_before_the_request_goes_with_the_deletion_that_beats_it(world: World) -> None:
    world.create(settings=BY_TIMESTAMP)
    arrive(world, 0, (0, VALUE), (5, None))
    world.later(2 * HOUR_MS)
    world.clean()
    world.ingest({2: (KEY, b"late")}, 3, timestamps_ms={2: world.now_ms - 3 * HOUR_MS})
    world.ask()
    assert (world.erasure().state, end_of(world.erasure())) == ("tombstoned", 3)
    assert b"late" in [value for _, _, value in world.records()]
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert world.records() == []


@pytest.mark.parametrize(("version", "state"), [(-1, "requested"), (0, "tombstoned"), (1, "tombstoned")])
def test_of_two_equal_versions_the_later_record_counts(world: World, version: int, state: str) -> None:
    world.create(settings=BY_TIMESTAMP)
    arrive(world, 0, (0, VALUE), (version, None))
    world.ask()
    assert world.erasure().state == state
