"""A key that was deleted, and that a log still remembers, for tests of what a request to erase it promises."""

from __future__ import annotations

from keptlog.passes.erasures.erasure_request import ErasureRequest, TopicProposal
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, VALUE, World

GRACE_MS = DAY_MS
REMEMBERED_MS = 7 * DAY_MS
_SETTINGS = {
    "compaction.strategy": "timestamp",
    "keptlog.watermark.retention.ms": str(REMEMBERED_MS),
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0",
}


def deleted_before(world: World) -> int:
    """A log without records, whose file of watermarks has the key; gives about when that was written."""
    world.create(settings=_SETTINGS)
    world.append((KEY, VALUE), (KEY, None))
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        world.purge(grace_ms=GRACE_MS)
    (log,) = world.store.logs("users")
    assert (log.segments, log.watermarks_path is None) == ((), False)
    return world.now_ms


def proposed_and_asked(world: World, by_ms: int) -> TopicProposal:
    """What is proposed of a request to erase the key so long from now, which is made then."""
    hashes = (world.eraser.hash_of(KEY),)
    request = ErasureRequest("r1", ("users",), key_hashes=hashes, deadline_ms=world.now_ms + by_ms)
    found = world.eraser.propose(request, now_ms=world.now_ms)
    assert not found.failed
    assert "r1" in world.eraser.request(found, now_ms=world.now_ms).erasures["users"].id
    return found.topics["users"]


def require_verified_at(world: World, at_ms: int, by_ms: int) -> None:
    """At its deadline no verification succeeds, and at that time one does."""
    world.later(by_ms)
    world.purge(grace_ms=GRACE_MS)
    assert (world.row().erasure.state, world.verified().erasure.state) == ("deleted", "deleted")
    world.now_ms = at_ms
    for _ in range(2):
        world.purge(grace_ms=GRACE_MS)
    assert world.row().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
