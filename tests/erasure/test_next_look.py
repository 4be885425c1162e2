"""When erasures can next be further is told of all that are open: a look knows nothing of those that come meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.log.erasures.erasure import ErasureState, reached
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer
from keptlog.table.changes.erasures import RegisterChange
from keptlog.table.metadata.state import read_open_erasures
from keptlog.table.removal.erasure_look import read_register
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE, World, new_id

SLOW = {
    "segment.ms": str(40 * DAY_MS),
    "max.compaction.lag.ms": str(30 * DAY_MS),
    "delete.retention.ms": str(30 * DAY_MS),
}
FAST = {"segment.ms": str(HOUR_MS), "max.compaction.lag.ms": str(HOUR_MS), "delete.retention.ms": "0"}


def told(world: World) -> OpenErasures:
    return read_open_erasures("users", world.store.load_table("users").properties)


BY_AGE = SLOW | {"cleanup.policy": "compact,delete", "retention.ms": str(HOUR_MS)}


def seen(world: World) -> tuple[int | None, str | None, str | None]:
    row = world.row()
    return row.next_ms, row.kept_by(world.now_ms), row.next_told(world.now_ms)


def test_what_retention_takes_first_waits_for_no_clean(world: World) -> None:
    """It was told to wait for the active segment, 30 days, where retention takes all of it in an hour."""
    world.create(settings=BY_AGE)
    world.append((KEY, VALUE))
    world.ask()
    asked_ms = world.now_ms
    assert seen(world)[:2] == (asked_ms + HOUR_MS + 1, "retention.ms")
    world.now_ms = asked_ms + HOUR_MS
    assert not retain(world), "retention.ms has not passed"
    world.now_ms += 1
    assert seen(world)[2] == "retention (keptlog retain users)"
    assert retain(world)
    assert world.erasure().state is not ErasureState.TOMBSTONED


def test_who_looks_first_is_told_the_pass_that_brings_it_on_though_the_look_took_a_second(world: World) -> None:
    """It was told to wait for the second at which the look had ended, and the look after it told the pass."""
    world.create(settings=FAST)
    world.append((KEY, VALUE))
    world.ask()
    world.later(2 * HOUR_MS)
    world.clean()
    eraser = world.eraser
    eraser.store.clock_guard.clock_ms = lambda: world.now_ms + 1_500
    told = []
    for _ in range(2):
        [row] = eraser.list(now_ms=world.now_ms).rows
        told.append((row.erasure.state, row.next_told(world.now_ms), row.kept_by(world.now_ms)))
    assert row.erasure.reached[-1].at_ms > world.now_ms
    assert told == [(ErasureState.COMPACTED, "a clean, then a purge", None)] * 2


def test_what_retention_takes_for_its_size_waits_for_no_clean(world: World) -> None:
    world.create(settings=BY_AGE | {"retention.ms": "-1", "retention.bytes": "1"})
    world.append((KEY, VALUE))
    world.ask()
    assert seen(world)[1] == "max.compaction.lag.ms", "the last segment holds retention.bytes"
    world.append((OTHER, VALUE))
    assert seen(world)[1:] == (None, "retention (keptlog retain users)")
    assert retain(world)
    assert world.erasure().state is not ErasureState.TOMBSTONED


def test_tombstones_that_retention_takes_before_their_horizon_wait_for_their_age(world: World) -> None:
    world.create(settings=BY_AGE | FAST | {"delete.retention.ms": str(30 * DAY_MS), "retention.ms": str(2 * DAY_MS)})
    world.append((KEY, VALUE))
    world.ask()
    asked_ms = world.now_ms
    world.later(2 * HOUR_MS)
    world.clean()
    assert world.erasure().state is ErasureState.COMPACTED
    assert seen(world)[:2] == (asked_ms + 2 * DAY_MS + 1, "retention.ms")
    world.now_ms = asked_ms + 2 * DAY_MS + 1
    assert seen(world)[2] == "retention (keptlog retain users)"
    assert retain(world)
    assert world.erasure().gone is not None


def retain(world: World) -> bool:
    store = world.store
    retained = Retainer(store).retain(named_logs(store, ["users"]), new_id(), now_ms=world.now_ms)
    return bool(retained.committed)


@pytest.fixture
def waiting(world: World) -> World:
    """A request that a clean has just passed: its tombstone goes in 30 days, and nobody has looked since."""
    world.create(partitions=2, settings=SLOW)
    world.append((KEY, VALUE), partition=0)
    world.append((OTHER, b"1"), partition=1)
    world.ask(KEY, id="slow")
    world.later(31 * DAY_MS)
    world.clean()
    return world


def test_a_request_that_comes_during_a_look_is_looked_at_in_its_own_time(
    waiting: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked at when the one before it could go on, which was behind its deadline."""
    waiting.store.alter_topic("users", FAST)
    update = RegisterChange.update

    def and_before(change: RegisterChange, *given: Any, **how: Any) -> None:
        monkeypatch.undo()
        assert dict(waiting.ask(OTHER, id="fast", deadline_ms=waiting.now_ms + 10 * DAY_MS).failed) == {}
        update(change, *given, **how)

    monkeypatch.setattr(RegisterChange, "update", and_before)
    waiting.eraser.advance(now_ms=waiting.now_ms)
    summary = told(waiting)
    assert (summary.count, [each.need for each in summary.needs]) == (2, ["clean", "expiry"])
    assert summary.next_ms is not None
    assert summary.next_ms <= waiting.now_ms + 2 * HOUR_MS


def test_a_request_that_another_look_has_brought_further_is_looked_at_when_that_one_says(waiting: World) -> None:
    """The slower look knows only when it could have gone on from where it was before."""
    waiting.ask(OTHER, id="other")
    described, now_ms = waiting.store.describe_topic("users"), waiting.now_ms
    change = RegisterChange(described, waiting.store.committer, waiting.store.files, new_id, now_ms)
    compacted = {
        each.id: reached(each, ErasureState.COMPACTED, now_ms)
        for each in read_register(waiting.store.files, lambda: waiting.store.load_table("users"))
    }
    further = compacted | {"slow": reached(compacted["slow"], ErasureState.UNREFERENCED, now_ms)}
    change.update({"slow": further["slow"]}, now_ms - HOUR_MS)
    change.update(compacted, now_ms + 30 * DAY_MS)
    assert {each.need for each in told(waiting).needs} == {"expiry", "purge"}
    next_ms = told(waiting).next_ms
    assert next_ms is not None
    assert next_ms <= now_ms - HOUR_MS


def test_a_look_at_all_that_are_open_says_when_they_go_on_however_soon_it_was_told_before(waiting: World) -> None:
    assert waiting.eraser.advance(now_ms=waiting.now_ms).failed == {}
    next_ms = told(waiting).next_ms
    assert next_ms is not None
    assert next_ms > waiting.now_ms + 25 * DAY_MS
