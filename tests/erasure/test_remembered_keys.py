"""What a log remembers of deleted keys counts as it was written, however its topic is set by now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.passes.erasures.erasure_request import ErasureRequest
from tests.erasure.remembered import (
    GRACE_MS,
    REMEMBERED_MS,
    deleted_before,
    proposed_and_asked,
    require_verified_at,
)
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, World


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
    proposed = proposed_and_asked(world, by_ms=2 * DAY_MS)
    (told,) = proposed.hindrances
    assert told.what.startswith("watermarks of users-0 have the key if it was deleted lately; ")
    assert told.until_ms == proposed.latest_ms
    assert deleted_ms - DAY_MS < proposed.latest_ms - REMEMBERED_MS - GRACE_MS <= deleted_ms
    require_verified_at(world, proposed.latest_ms, by_ms=2 * DAY_MS)


def asked_with(world: World) -> str:
    """What is told of a request to erase the key, which is made."""
    return "\n".join(map(str, proposed_and_asked(world, by_ms=DAY_MS).hindrances))


def watermarks_of(world: World) -> Path:
    (log,) = world.store.logs("users")
    assert log.watermarks_path
    return Path(log.watermarks_path.removeprefix("file://"))


def stopping(error: Exception) -> Callable[..., int]:
    def read(*_: object) -> int:
        raise error

    return read


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied"), "the watermarks of users-0 can't be read: PermissionError: "),
        (StorageUnavailable("archived").for_good(), "archived"),
        (OverflowError("too large"), "topic users: the look at it stopped at OverflowError: too large; report it"),
        (None, "it is damaged; put the file back from a copy of the storage, or give up"),
    ],
    ids=["denied", "refused", "strange", "damaged"],
)
def test_a_request_is_made_though_what_is_remembered_cant_be_read_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception | None, told: str
) -> None:
    """It was refused for a file that tells of its deadline alone, or fell back in silence to the settings of now."""
    deleted_before(world)
    if error is None:
        watermarks_of(world).write_bytes(b"damaged")
    else:
        monkeypatch.setattr("keptlog.passes.erasures.erase_topic.last_end_ms", stopping(error))
    said = asked_with(world)
    assert "how long users-0 remembers deleted keys is not known: mend what the look at its watermarks failed" in said
    assert told in said


def test_a_file_that_is_gone_remembers_no_key(world: World) -> None:
    deleted_before(world)
    watermarks_of(world).unlink()
    assert "is not known" not in asked_with(world)


def test_a_request_waits_for_a_store_that_does_not_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted_before(world)
    away = StorageUnavailable("no answer")
    monkeypatch.setattr("keptlog.passes.erasures.erase_topic.last_end_ms", stopping(away))
    request = ErasureRequest("r1", ("users",), key_hashes=(world.eraser.hash_of(KEY),))
    assert world.eraser.propose(request, now_ms=world.now_ms).failed == {"users": away}
