"""A purge of a home of an older format finishes what an older one began, and deletes what it would have deleted."""

from __future__ import annotations

from tests.frozen_homes import telling
from tests.frozen_homes.conftest import Frozen


def test_a_purge_deletes_what_it_deleted_then_and_nothing_that_is_read_and_a_second_one_nothing(frozen: Frozen) -> None:
    assert telling.purged(frozen.home, frozen.later_ms) == frozen.expected["purge"]

    assert frozen.segments_on_disk == telling.live_segments(frozen.home)
    assert telling.stored(frozen.home) == frozen.topics

    again = telling.purged(frozen.home, frozen.later_ms)
    assert {number for row in again.values() for number in row.values()} == {0}
