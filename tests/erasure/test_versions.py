"""Where records have versions, a request's tombstone wins against all that is there, or it is said why it can't."""

from __future__ import annotations

import struct

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.record import NewRecord
from keptlog.passes.erasures.key_places import KeyPlaces
from tests.erasure.world import HOUR_MS, KEY, OTHER, VALUE, World

BY_HEADER = {"compaction.strategy": "header", "compaction.strategy.header": "v"}
BY_TIMESTAMP = {"compaction.strategy": "timestamp"}


def versioned(version: int, key: bytes = KEY, value: bytes | None = VALUE) -> NewRecord:
    return NewRecord(key, value, 1_700_000_000_000, 0, (("v", struct.pack(">q", version)),))


@pytest.mark.parametrize("version", [-5, 7, 2**63 - 1])
def test_by_header_the_tombstone_has_the_highest_version_and_wins(world: World, version: int) -> None:
    world.create(settings=BY_HEADER)
    world.append_records([versioned(version), versioned(version - 1), versioned(3, OTHER)])
    world.ask()
    world.later(2 * HOUR_MS)
    world.clean()
    assert [(key, value) for _, key, value in world.records()] == [(OTHER, VALUE), (KEY, None)]


def test_by_timestamp_the_tombstone_is_as_late_as_the_latest_record(world: World) -> None:
    world.create(settings=BY_TIMESTAMP)
    world.append_records([NewRecord(KEY, VALUE, world.now_ms + HOUR_MS // 2, 0)])
    world.ask()
    world.later(3 * HOUR_MS)
    world.clean()
    assert [(key, value) for _, key, value in world.records()] == [(KEY, None)]


def test_a_record_after_the_clock_that_no_tombstone_can_beat_is_told(world: World) -> None:
    world.create(settings=BY_TIMESTAMP | {"message.timestamp.after.max.ms": str(10 * HOUR_MS)})
    world.append_records([NewRecord(KEY, VALUE, world.now_ms + 2 * HOUR_MS, 0)])
    world.store.alter_topic("users", {"message.timestamp.after.max.ms": str(HOUR_MS)})
    error = world.ask().failed["users"]
    assert isinstance(error, InvalidConfig)
    assert "message.timestamp.after.max.ms=3600000" in str(error)
    world.store.alter_topic("users", {"message.timestamp.type": "LogAppendTime"})
    assert "LogAppendTime" in str(world.ask().failed["users"])
    assert world.records() == [(0, KEY, VALUE)]


def test_a_higher_version_that_comes_while_the_log_is_read_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create(settings=BY_HEADER)
    world.append_records([versioned(1)])
    real, reads = KeyPlaces.find, []

    def find(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        reads.append(1)
        if len(reads) == 1:
            world.append_records([versioned(9)])
        return found

    monkeypatch.setattr(KeyPlaces, "find", find)
    world.ask()
    assert len(reads) == 2
    world.later(2 * HOUR_MS)
    world.clean()
    assert [(key, value) for _, key, value in world.records()] == [(KEY, None)]


def test_the_watermark_of_the_key_keeps_a_request_open_and_is_named(world: World) -> None:
    world.create(settings=BY_HEADER | {"keptlog.watermark.retention.ms": str(48 * HOUR_MS)})
    world.append_records([versioned(1), versioned(1, OTHER)])
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    row = world.verified()
    assert row.erasure.state == "deleted"
    assert "(arrow) has 1 record of 1 key" in row.blocked[0]
    world.later(50 * HOUR_MS)
    world.append_records([versioned(2, OTHER)])
    world.later(2 * HOUR_MS)
    world.clean()
    world.purge()
    world.later(1000)
    world.purge()
    assert world.verified().erasure.state == "verified"


def test_of_a_log_that_gets_no_more_records_the_purge_takes_the_watermark(world: World) -> None:
    world.create(settings=BY_HEADER | {"keptlog.watermark.retention.ms": str(48 * HOUR_MS)})
    world.append_records([versioned(1), versioned(1, OTHER)])
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    records = world.records()
    world.later(50 * HOUR_MS)
    world.purge()
    world.later(1000)
    world.purge()
    assert world.verified().erasure.state == "verified"
    assert world.records() == records
