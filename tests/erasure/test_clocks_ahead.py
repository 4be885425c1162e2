"""A clock that was ahead, or a given time, dates no state for good: a time that is still to come gives way."""

from __future__ import annotations

from keptlog.log.erasures.erasure import ErasureState
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.metadata.state import read_open_erasures
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE, World

AHEAD_MS = 400 * DAY_MS


def asked(world: World) -> None:
    world.create(settings={"delete.retention.ms": "0"})
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask(deadline_ms=world.now_ms + 30 * DAY_MS)


def with_clock(world: World) -> Eraser:
    """An eraser of a machine whose clock shows the world's time, whatever time is given."""
    eraser = world.eraser
    eraser.store.clock_guard.clock_ms = lambda: world.now_ms
    return eraser


def stored_next_ms(world: World) -> int | None:
    return read_open_erasures("users", world.store.load_table("users").properties).next_ms


def test_the_receipt_tells_the_time_of_the_clock_though_a_look_was_made_with_one_ahead(world: World) -> None:
    asked(world)
    world.later(2 * HOUR_MS)
    world.clean()
    [ahead] = world.eraser.list(now_ms=world.now_ms + AHEAD_MS).rows
    assert ahead.erasure.state is ErasureState.COMPACTED
    world.clean()
    assert world.to_deleted().erasure.state is ErasureState.DELETED
    ended = world.verified().erasure
    [receipt] = world.receipts
    assert (receipt.at_ms, receipt.content["is_in_time"], ended.ended_ms) == (world.now_ms, True, world.now_ms)
    times_ms = [each["at_ms"] for each in receipt.content["states"]]
    assert times_ms == sorted(times_ms)


def test_the_next_look_dates_anew_what_one_ahead_has_dated_and_no_later_one_does(world: World) -> None:
    asked(world)
    world.bring_on()
    assert world.eraser.advance(now_ms=world.now_ms + AHEAD_MS).rows[0].erasure.state is ErasureState.DELETED
    assert (stored_next_ms(world) or 0) > world.now_ms
    seen_ms = world.now_ms
    row = world.row()
    assert row.erasure.reached[-1].at_ms == row.next_ms == stored_next_ms(world) == seen_ms
    commits = world.commits()
    world.later(HOUR_MS)
    assert (world.erasure().reached[-1].at_ms, world.commits()) == (seen_ms, commits)


def test_a_look_as_of_a_given_time_dates_states_by_the_clock(world: World) -> None:
    asked(world)
    world.bring_on()
    [row] = with_clock(world).list(now_ms=world.now_ms + AHEAD_MS).rows
    assert row.erasure.state is ErasureState.DELETED
    assert row.erasure.reached[-1].at_ms == world.now_ms


def test_a_look_as_of_a_given_time_forgets_no_request(world: World) -> None:
    asked(world)
    world.to_deleted()
    assert world.verified().erasure.state is ErasureState.VERIFIED
    world.ask(OTHER, id="r2")
    world.later(2 * HOUR_MS)
    world.clean()
    commits = world.commits()
    as_of_ms = world.now_ms + 40 * DAY_MS
    with_clock(world).list(now_ms=as_of_ms)
    assert world.commits() > commits
    eraser = with_clock(world)
    request = eraser.propose(_request("r3"), now_ms=as_of_ms)
    assert eraser.request(request, now_ms=as_of_ms).failed == {}
    assert [row.id for row in world.eraser.list(now_ms=world.now_ms).rows] == ["r1", "r2", "r3"]


def _request(request_id: str) -> ErasureRequest:
    return ErasureRequest(request_id, ("users",), (b"another",))
