"""What a log remembers of deleted keys counts as it was written, however its topic is set by now."""

from __future__ import annotations

import pytest

from keptlog.passes.erasures.erasure_request import ErasureRequest
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, VALUE, World

GRACE_MS = DAY_MS
REMEMBERED_MS = 7 * DAY_MS
SETTINGS = {
    "compaction.strategy": "timestamp",
    "keptlog.watermark.retention.ms": str(REMEMBERED_MS),
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0",
}


def deleted_before(world: World) -> int:
    """A log without records, whose file of watermarks has the key; gives about when that was written."""
    world.create(settings=SETTINGS)
    world.append((KEY, VALUE), (KEY, None))
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        world.purge(grace_ms=GRACE_MS)
    (log,) = world.store.logs("users")
    assert (log.segments, log.watermarks_path is None) == ((), False)
    return world.now_ms


@pytest.mark.parametrize(
    "altered",
    [
        {"compaction.strategy": "offset"},
        {"keptlog.watermark.retention.ms": str(HOUR_MS)},
        {"compaction.strategy": "offset", "keptlog.watermark.retention.ms": str(HOUR_MS)},
    ],
)
def test_a_deadline_counts_with_what_is_remembered_though_a_key_of_now_is_not(
    world: World, altered: dict[str, str]
) -> None:
    """It said that nothing was in the way, and the verification found the key among the watermarks for a week."""
    deleted_ms = deleted_before(world)
    world.store.alter_topic("users", altered)
    hashes = (world.eraser.hash_of(KEY),)
    request = ErasureRequest("r1", ("users",), key_hashes=hashes, deadline_ms=world.now_ms + 2 * DAY_MS)
    found = world.eraser.propose(request, now_ms=world.now_ms)
    world.eraser.request(found, now_ms=world.now_ms)
    proposed = found.topics["users"]
    (told,) = proposed.hindrances
    assert told.what.startswith("watermarks of users-0 have the key if it was deleted lately; ")
    assert told.until_ms == proposed.latest_ms
    assert deleted_ms - DAY_MS < proposed.latest_ms - REMEMBERED_MS - GRACE_MS <= deleted_ms
    world.later(2 * DAY_MS)
    world.purge(grace_ms=GRACE_MS)
    assert (world.row().erasure.state, world.verified().erasure.state) == ("deleted", "deleted")
    world.now_ms = proposed.latest_ms
    for _ in range(2):
        world.purge(grace_ms=GRACE_MS)
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
