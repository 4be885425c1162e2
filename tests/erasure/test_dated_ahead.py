"""Records that are dated behind the deadline stay until then, however the topic is set: no setting is to be lowered."""

from __future__ import annotations

import pytest

from keptlog.log.record import NewRecord
from keptlog.passes.erasures.erasure_request import ErasureRequest
from tests.erasure.world import DAY_MS, KEY, VALUE, World

_ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
_COMPACTED = {"delete.retention.ms": "1", "segment.ms": "1000"}
_BY_AGE = {"cleanup.policy": "delete", "retention.ms": "1000"}


@pytest.mark.parametrize("settings", [_COMPACTED, _BY_AGE], ids=["compact", "delete"])
def test_the_times_of_the_records_are_told_and_no_advice_that_cannot_help(
    world: World, settings: dict[str, str]
) -> None:
    world.create(settings=settings | _ANY_TIME)
    world.append_records([NewRecord(KEY, VALUE, world.now_ms + 30 * DAY_MS, 0)])
    request = ErasureRequest("r1", ("users",), (KEY,), deadline_ms=world.now_ms + 10 * DAY_MS)
    dated, done = world.eraser.propose(request, now_ms=world.now_ms).topics["users"].hindrances
    assert str(dated).startswith("records of users-0 are dated ahead, and stay until their time comes, at 20")
    assert dated.until_ms == world.now_ms + 30 * DAY_MS
    assert "lower" not in f"{dated} {done}"
    assert str(done).endswith(": give a later --by")


def test_a_setting_that_can_help_is_still_to_be_lowered(world: World) -> None:
    world.create(settings={"delete.retention.ms": str(20 * DAY_MS)} | _ANY_TIME)
    world.append_records([NewRecord(KEY, VALUE, world.now_ms + 5 * DAY_MS, 0)])
    request = ErasureRequest("r1", ("users",), (KEY,), deadline_ms=world.now_ms + 10 * DAY_MS)
    found = world.eraser.propose(request, now_ms=world.now_ms).topics["users"].hindrances
    assert any(f"delete.retention.ms={20 * DAY_MS}: lower it" in str(each) for each in found)
