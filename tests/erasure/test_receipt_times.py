"""A receipt is dated by the clock once what it tells is done: not by when a command began, nor by a given time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from keptlog.passes.purge import Purger
from keptlog.receipts.receipt import Receipt
from keptlog.table.store import LogStore
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, VALUE, World
from tests.table.receipt_chains import chain_at


def with_clock(store: LogStore, clock_ms: Callable[[], int]) -> LogStore:
    store.clock_guard.clock_ms = clock_ms
    return store


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def verify(world: World, as_of_ms: int, clock_ms: Callable[[], int]) -> Receipt:
    eraser = world.eraser
    with_clock(eraser.store, clock_ms)
    [row] = eraser.verify(now_ms=as_of_ms).rows
    [receipt] = world.receipts
    assert row.erasure.ended_ms == receipt.at_ms
    assert receipt.content["states"][-1] == {"state": "verified", "at_ms": receipt.at_ms}
    return receipt


@pytest.fixture
def deadline_ms(world: World) -> int:
    """That of a request which waits for nothing but its verification."""
    world.create()
    world.append((KEY, VALUE))
    world.ask(deadline_ms=world.now_ms + 30 * DAY_MS)
    deadline_ms = world.to_deleted().erasure.deadline_ms
    assert deadline_ms
    return deadline_ms


def test_a_search_that_ends_after_the_deadline_is_not_in_time_whenever_it_began(world: World, deadline_ms: int) -> None:
    receipt = verify(world, deadline_ms - HOUR_MS, lambda: deadline_ms + HOUR_MS)
    assert (receipt.at_ms, receipt.content["is_in_time"]) == (deadline_ms + HOUR_MS, False)
    assert receipt.content["as_of_ms"] == deadline_ms - HOUR_MS


def test_what_ends_before_the_deadline_is_in_time(world: World, deadline_ms: int) -> None:
    receipt = verify(world, deadline_ms - 2 * HOUR_MS, lambda: deadline_ms - HOUR_MS)
    assert (receipt.at_ms, receipt.content["is_in_time"]) == (deadline_ms - HOUR_MS, True)


def test_the_clock_is_asked_after_the_last_look(world: World, deadline_ms: int) -> None:
    eraser = world.eraser
    calls: list[str] = []

    def clock_ms() -> int:
        calls.append("clock")
        return world.now_ms

    listing = LogStore.load_table

    def load_table(store: LogStore, topic: str) -> object:
        calls.append("look")
        return listing(store, topic)

    with pytest.MonkeyPatch.context() as watching:
        watching.setattr(LogStore, "load_table", load_table)
        with_clock(eraser.store, clock_ms)
        seal = eraser.store.seal
        assert seal

        def sealing(drafts: object) -> object:
            calls.append("seal")
            return seal(drafts)  # type: ignore[arg-type]

        eraser.store.seal = sealing
        eraser.verify(now_ms=world.now_ms)
    asked = calls[: calls.index("seal")]
    # Each look asks too; the last answer is the receipt's.
    assert "look" not in asked[len(asked) - asked[::-1].index("clock") :]


def test_a_clock_that_was_set_back_dates_nothing_before_what_was_reached(world: World, deadline_ms: int) -> None:
    newest_ms = world.erasure().reached[-1].at_ms
    receipt = verify(world, newest_ms - DAY_MS, lambda: newest_ms - DAY_MS)
    assert receipt.at_ms == newest_ms - DAY_MS
    times_ms = [state["at_ms"] for state in receipt.content["states"]]
    assert times_ms == sorted(times_ms)


def test_a_purge_as_of_another_time_is_dated_by_the_clock_and_tells_both(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.append((KEY, b"2"))
    world.later(2 * HOUR_MS)
    world.clean()
    as_of_ms = wall_ms() + 60 * DAY_MS
    began_ms = wall_ms()
    result = Purger(with_clock(world.store, wall_ms)).purge(["users"], now_ms=as_of_ms)
    assert result.failed == {}
    [receipt] = chain_at(world.home).receipts()
    assert began_ms <= receipt.at_ms <= wall_ms()
    assert receipt.content["as_of_ms"] == as_of_ms


def test_a_deletion_of_a_topic_is_dated_once_it_is_done(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    as_of_ms = wall_ms() - DAY_MS
    began_ms = wall_ms()
    with_clock(world.store, wall_ms).delete_topic("users", as_of_ms)
    [receipt] = chain_at(world.home).receipts()
    assert began_ms <= receipt.at_ms <= wall_ms()
    assert (receipt.kind, receipt.content["as_of_ms"]) == ("topic-delete", as_of_ms)


def test_a_deletion_that_a_purge_finishes_is_dated_by_the_clock_too(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    catalog = world.store.committer.catalog
    catalog.create_namespace_if_not_exists("keptlog_deleting")
    catalog.rename_table(("keptlog", "users"), ("keptlog_deleting", "users"))
    Purger(with_clock(world.store, wall_ms)).purge([], now_ms=wall_ms() + 60 * DAY_MS)
    [receipt] = chain_at(world.home).receipts()
    assert receipt.at_ms <= wall_ms()
