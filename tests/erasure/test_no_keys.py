"""No key is anywhere but in segments: not in the register, in file names, in logs, in errors or in what is printed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.table.waiting.reaching import reaching
from tests.erasure.world import HOUR_MS, KEY, OTHER, VALUE, World


def outside_of_segments(world: World, *needles: bytes) -> list[str]:
    return [str(path) for path in world.files_with(*needles) if path.suffix != ".parquet"]


def test_home_and_warehouse_hold_keys_in_segments_alone_at_every_step(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world.create(partitions=2)
    world.append((KEY, VALUE), (OTHER, b"1"))
    needles = (KEY, OTHER, KEY.hex().encode(), OTHER.hex().encode(), VALUE)
    assert world.files_with(KEY) != []  # the search finds what is there
    world.ask(KEY, OTHER, reason="request 4711")
    assert outside_of_segments(world, *needles) == []
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        world.row()
        world.purge()
        assert outside_of_segments(world, *needles) == []
    world.later(1000)
    world.purge()
    row = world.verified()
    assert row.erasure.state == "verified"
    assert world.files_with(*needles) == []
    told = caplog.text + repr(row) + repr(world.receipts)
    assert [needle for needle in needles if needle.decode() in told] == []


def test_by_source_and_here_no_key_is_stored_either(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE), 1: (OTHER, b"1")}, 2)
    world.ask(KEY)
    world.row()
    world.ask(OTHER, id="r2", is_here=True)
    assert outside_of_segments(world, KEY, OTHER) == []


@pytest.mark.parametrize("fail", [ValueError, KeyError, OSError])
def test_an_error_that_nobody_has_thought_of_names_no_key(
    world: World, monkeypatch: pytest.MonkeyPatch, fail: Callable[[str], Exception]
) -> None:
    world.create()

    def broken(*_: Any, **__: Any) -> Any:
        raise fail(f"can't digest {KEY!r}")

    monkeypatch.setattr("keptlog.table.changes.erasures.Append.append", broken)
    (error,) = world.ask().failed.values()
    assert KEY.decode() not in str(error)
    assert "users" in str(error)


@pytest.mark.parametrize("quoted", [KEY.decode(), KEY.hex(), repr(KEY)])
def test_an_outage_whose_text_quotes_the_key_is_told_without_it(
    world: World, monkeypatch: pytest.MonkeyPatch, quoted: str
) -> None:
    world.create()

    def broken(*_: Any, **__: Any) -> Any:
        with reaching("topic users can't be committed"):
            raise OSError(f"refused: {quoted}")

    monkeypatch.setattr("keptlog.table.changes.erasures.Append.append", broken)
    (error,) = world.ask().failed.values()
    assert isinstance(error, StorageUnavailable)
    assert quoted not in str(error)
    assert "users" in str(error)


def test_an_outage_without_a_key_in_its_text_is_told_as_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create()

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("s3.internal does not answer")

    monkeypatch.setattr("keptlog.table.changes.erasures.Append.append", broken)
    (error,) = world.ask().failed.values()
    assert "s3.internal does not answer" in str(error)


def test_what_a_request_and_its_answers_show_holds_no_key(world: World) -> None:
    from keptlog.passes.erasures.erasure_request import ErasureRequest  # noqa: PLC0415

    world.create()
    request = ErasureRequest("r1", ("users",), (KEY,))
    proposal = world.eraser.propose(request, now_ms=world.now_ms)
    result = world.eraser.request(proposal, now_ms=world.now_ms)
    assert KEY.decode() not in repr(request) + repr(proposal) + repr(result) + repr(world.eraser)
