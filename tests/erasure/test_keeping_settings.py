"""An erasure that waits for time names the setting that keeps it: it goes sooner only if that one is lower."""

from __future__ import annotations

import pytest

from tests.erasure.world import DAY_MS, HOUR_MS, KEY, VALUE, World

WEEK_MS = 7 * DAY_MS


@pytest.mark.parametrize(
    ("settings", "keeps", "lasts_ms"),
    [
        ({"segment.ms": DAY_MS, "max.compaction.lag.ms": WEEK_MS}, "segment.ms", DAY_MS + 1),
        ({"segment.ms": WEEK_MS, "max.compaction.lag.ms": DAY_MS}, "max.compaction.lag.ms", DAY_MS + 1),
        ({"segment.ms": HOUR_MS, "max.compaction.lag.ms": DAY_MS}, "segment.ms", HOUR_MS + 1),
        (
            {"segment.ms": HOUR_MS, "min.compaction.lag.ms": DAY_MS, "max.compaction.lag.ms": WEEK_MS},
            "min.compaction.lag.ms",
            DAY_MS,
        ),
        ({"cleanup.policy": "delete", "retention.ms": DAY_MS}, "retention.ms", DAY_MS + 1),
    ],
)
def test_before_its_clean_or_its_retention_it_is_the_setting_that_ends_last(
    world: World, settings: dict[str, object], keeps: str, lasts_ms: int
) -> None:
    """It named segment.ms and min.compaction.lag.ms where the maximum lag closes the segment, for nothing."""
    world.create(settings={name: str(value) for name, value in settings.items()})
    world.append((KEY, VALUE))
    world.ask()

    row = world.row()

    assert (row.next_ms, row.kept_by(world.now_ms)) == (world.now_ms + lasts_ms, keeps)
    assert row.kept_by(world.now_ms + lasts_ms) is None, "it waits for a pass"


def test_after_its_clean_it_is_the_tombstone_that_stays_and_then_its_files(world: World) -> None:
    settings = {"segment.ms": "1", "delete.retention.ms": str(HOUR_MS), "file.delete.delay.ms": str(DAY_MS)}
    world.create(settings=settings)
    world.append((KEY, VALUE))
    world.ask()
    told = []
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
        told.append(world.row().kept_by(world.now_ms))
    assert told == ["delete.retention.ms", "file.delete.delay.ms"]
