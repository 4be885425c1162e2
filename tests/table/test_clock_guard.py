"""A clock that is far ahead of every commit deletes nothing, and says what to do (ADR 31)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.log.uncleanable import Backoff
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.mark import Failure
from keptlog.table.purge_preview import preview_purge
from keptlog.table.store import LogStore
from tests.table.stores import (
    COMPACTED,
    NOW_MS,
    TOPIC,
    append_each,
    expiry_for,
    files_below,
    new_id,
    rewritten,
    values,
)

DAY_MS = 24 * 3_600_000
YEAR_MS = 365 * DAY_MS
FAR_AHEAD_MS = NOW_MS + 70 * YEAR_MS


def store_of(home: Path, broker: dict[str, str] | None = None, clock_ms: int = FAR_AHEAD_MS) -> LogStore:
    """A store on a machine whose clock shows something, with commits of ``NOW_MS``."""
    catalog = open_catalog(home, lambda: NOW_MS)
    store = LogStore(catalog, broker or {}, lambda _: None, new_id)
    store.clock_guard.clock_ms = lambda: clock_ms
    return store


def made(home: Path, topic: str = TOPIC) -> LogStore:
    store = store_of(home)
    store.create_topic(topic, 1, {"cleanup.policy": "compact,delete", "retention.ms": "1000"})
    if topic == TOPIC:
        append_each(store, [("a", "1")], [("a", None), ("b", "1")])
    return store


def expire(store: LogStore, now_ms: int) -> None:
    """A swap that was planned at this time."""
    log = store.logs(TOPIC)[0]
    step = expiry_for(log, log.segments)
    object.__setattr__(step, "now_ms", now_ms)
    store.swap(TOPIC, [rewritten(store, step)], new_id())


def retain(store: LogStore, now_ms: int) -> None:
    for error in Retainer(store).retain(named_logs(store), new_id(), now_ms=now_ms).failed.values():
        raise error


def mark(store: LogStore, now_ms: int) -> None:
    failure = Failure(store.logs(TOPIC)[0].topic_partition, "why", store.logs(TOPIC)[0].checkpoint)
    store.mark_uncleanable(TOPIC, [failure], now_ms, Backoff(1, 2))


FOR_EVER: dict[str, Callable[[LogStore, int], object]] = {
    "swap": expire,
    "retain": retain,
    "purge": lambda store, now_ms: store.purge(TOPIC, now_ms),
    "mark": mark,
}


@pytest.mark.parametrize("act", FOR_EVER.values(), ids=FOR_EVER.keys())
def test_nothing_is_deleted_by_a_clock_that_is_far_ahead(
    tmp_path: Path, act: Callable[[LogStore, int], object]
) -> None:
    store = made(tmp_path)
    before, locations = values(store), store.metadata_locations()

    with pytest.raises(InvalidConfig, match=r"the clock shows 2093-\d\d-\d\d.*, but the newest commit") as refused:
        act(store, FAR_AHEAD_MS)

    assert "keptlog.clock.max.jump.ms=31536000000" in str(refused.value)
    assert (values(store), store.metadata_locations()) == (before, locations)
    assert {Path(segment.path.removeprefix("file://")) for segment in store.logs(TOPIC)[0].segments} <= files_below(
        tmp_path
    )


@pytest.mark.parametrize("act", FOR_EVER.values(), ids=FOR_EVER.keys())
def test_who_knows_that_the_clock_is_right_raises_the_limit(
    tmp_path: Path, act: Callable[[LogStore, int], object]
) -> None:
    made(tmp_path)
    act(store_of(tmp_path, {"keptlog.clock.max.jump.ms": str(100 * YEAR_MS)}), FAR_AHEAD_MS)


def test_a_week_later_all_goes_on(tmp_path: Path) -> None:
    store = made(tmp_path)
    retain(store, NOW_MS + 7 * DAY_MS)
    store.purge(TOPIC, NOW_MS + 7 * DAY_MS)
    assert values(store) == []


def test_a_topic_that_lay_idle_for_years_is_cleaned_by_a_clock_that_another_topic_confirms(tmp_path: Path) -> None:
    store = made(tmp_path)
    with pytest.raises(InvalidConfig):
        retain(store, FAR_AHEAD_MS)
    busy = LogStore(open_catalog(tmp_path, lambda: FAR_AHEAD_MS - DAY_MS), {}, lambda _: None, new_id)
    busy.create_topic("busy", 1, COMPACTED)
    retain(store, FAR_AHEAD_MS)
    assert values(store) == []


@pytest.mark.parametrize("act", FOR_EVER.values(), ids=FOR_EVER.keys())
def test_a_time_that_somebody_gives_is_not_the_clocks(tmp_path: Path, act: Callable[[LogStore, int], object]) -> None:
    made(tmp_path)
    act(store_of(tmp_path, clock_ms=NOW_MS), FAR_AHEAD_MS)


@pytest.mark.parametrize("act", ["swap", "retain"])
def test_a_clock_is_not_believed_by_a_commit_that_waits_for_its_storage(tmp_path: Path, act: str) -> None:
    """A machine that boots without a network has neither its storage nor the time."""
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    before = values(made(home))
    store = LogStore(open_catalog(home, lambda: NOW_MS), {}, lambda _: come_back(home, away), new_id)
    store.clock_guard.clock_ms = lambda: FAR_AHEAD_MS
    commit_without_storage = {"swap": swapped_while_away, "retain": retained_while_away}[act]

    with pytest.raises(InvalidConfig, match="the clock shows 2093-"):
        commit_without_storage(store, home, away)

    assert not away.exists()
    assert values(store) == before


def come_back(home: Path, away: Path) -> None:
    if away.exists():
        away.rename(home / "warehouse")


def retained_while_away(store: LogStore, home: Path, away: Path) -> None:
    logs = named_logs(store)
    (home / "warehouse").rename(away)
    for error in Retainer(store).retain(logs, new_id(), now_ms=FAR_AHEAD_MS).failed.values():
        raise error


def swapped_while_away(store: LogStore, home: Path, away: Path) -> None:
    log = store.logs(TOPIC)[0]
    step = expiry_for(log, log.segments)
    object.__setattr__(step, "now_ms", FAR_AHEAD_MS)
    outcome = rewritten(store, step)
    (home / "warehouse").rename(away)
    store.swap(TOPIC, [outcome], new_id())


def with_another_topic(home: Path, away: type[KeptlogError] | None = None) -> LogStore:
    """A store of an idle topic, and of another one whose last commit is of yesterday, and that may be out of reach."""
    made(home)
    busy = LogStore(open_catalog(home, lambda: FAR_AHEAD_MS - DAY_MS), {}, lambda _: None, new_id)
    busy.create_topic("busy", 1, COMPACTED)
    store = store_of(home)
    if away:
        really = store.clock_guard.load

        def load(topic: str) -> Table:
            if topic == "busy":
                raise away("no answer")
            return really(topic)

        store.clock_guard.load = load
    return store


@pytest.mark.parametrize("act", FOR_EVER.values(), ids=FOR_EVER.keys())
def test_a_time_that_a_topic_out_of_reach_might_confirm_is_refused_as_an_outage(
    tmp_path: Path, act: Callable[[LogStore, int], object]
) -> None:
    store = with_another_topic(tmp_path, StorageUnavailable)
    before = values(store)
    with pytest.raises(StorageUnavailable, match=r"topics that can be read is of .*; topic busy may have a newer one"):
        act(store, FAR_AHEAD_MS)
    with pytest.raises(StorageUnavailable, match="nothing was deleted"):
        preview_purge(store, TOPIC, FAR_AHEAD_MS, DAY_MS)
    assert "no purge deletes anything" in store.clock_guard.purge_refusal(FAR_AHEAD_MS, store.load_table(TOPIC))
    assert values(store) == before


def test_a_time_that_a_damaged_topic_might_confirm_waits_for_whoever_knows(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="topic busy may have a newer one"):
        retain(with_another_topic(tmp_path, LogCorrupt), FAR_AHEAD_MS)


def test_a_topic_that_is_in_reach_again_confirms_the_clock(tmp_path: Path) -> None:
    store = with_another_topic(tmp_path, StorageUnavailable)
    with pytest.raises(StorageUnavailable):
        retain(store, FAR_AHEAD_MS)
    store.clock_guard.load = store.load_table
    retain(store, FAR_AHEAD_MS)
    assert values(store) == []


def test_a_clock_is_not_believed_after_an_outage_in_which_nobody_could_tell(tmp_path: Path) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    store = made(home)
    before, table = values(store), store.load_table(TOPIC)
    (home / "warehouse").rename(away)
    with pytest.raises(KeptlogError, match="nothing was deleted"):
        store.clock_guard.require_plausible(FAR_AHEAD_MS, table)
    come_back(home, away)
    for act in (retain, FOR_EVER["purge"]):
        with pytest.raises(InvalidConfig, match="the newest commit of all topics is of"):
            act(store, FAR_AHEAD_MS)
    assert values(store) == before
