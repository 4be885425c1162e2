"""Very many requests in one topic: what is the same for all is found once a look, and what is told is the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.broker import BrokerConfig
from keptlog.log.erasures import erasure as erasures
from keptlog.log.erasures import next_time
from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureLook, ErasureState, GoneSince, ReachedState
from keptlog.log.erasures.next_time import CleanTimes, NextTimes, Until, covering
from keptlog.log.retention import retention_of
from keptlog.log.roll import closing_ms
from keptlog.log.sections import first_dirty_of, sections_of
from keptlog.log.segment import Log
from keptlog.table.removal import held_versions
from tests.building import HOUR_MS, NOW_MS, config, log, segment
from tests.erasure.test_quiet_looks import with_open_erasures
from tests.erasure.world import DAY_MS, World


def test_a_look_divides_each_log_and_reads_the_settings_as_often_for_few_requests_as_for_many(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_open_erasures(world, "few", 3)
    with_open_erasures(world, "many", 60)
    for topic in ("few", "many"):
        world.append((b"a", b"1"), topic=topic)
    calls: Counter[str] = Counter()

    def divided(log: Log, now_ms: int) -> Any:
        calls[log.topic_partition.topic] += 1
        return sections_of(log, now_ms)

    def first_dirty(log: Log) -> Any:
        calls[log.topic_partition.topic] += 1
        return first_dirty_of(log)

    def resolved(cls: Any, settings: Any) -> Any:
        calls["settings"] += 1
        return real.__func__(cls, settings)  # type: ignore[attr-defined]

    real = BrokerConfig.of
    monkeypatch.setattr(next_time, "sections_of", divided)
    monkeypatch.setattr(erasures, "first_dirty_of", first_dirty)
    monkeypatch.setattr(BrokerConfig, "of", classmethod(resolved))
    of_settings = []
    for topic in ("few", "many"):
        calls["settings"] = 0
        rows = world.eraser.advance([topic], now_ms=world.now_ms).rows
        assert {row.erasure.state for row in rows} == {ErasureState.TOMBSTONED}
        of_settings.append(calls["settings"])
    assert 0 < calls["few"] == calls["many"]
    assert of_settings[0] == of_settings[1]


def test_who_keeps_files_is_told_once_of_requests_whose_records_are_gone_since_the_same_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time the store may be asked of the locks of all these files."""
    world.create()
    world.append((b"a", b"1"))
    stray = Path(world.store.load_table("users").location().removeprefix("file://"), "data", "stray.parquet")
    stray.write_bytes(b"PAR1 of a run that died")
    for number in range(4):
        world.ask(b"key of %d" % number, id=f"r{number}")
    asked: Counter[str] = Counter()

    def with_locks(*given: Any) -> Any:
        asked["locks"] += 1
        return held_versions.with_locks(*given)

    monkeypatch.setattr("keptlog.passes.erasures.kept_records.with_locks", with_locks)
    states: list[ErasureState] = []
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        for _ in range(2):
            asked.clear()
            rows = world.eraser.advance(now_ms=world.now_ms).rows
            states += {row.erasure.state for row in rows if row.erasure.gone}
            assert asked["locks"] == (1 if rows[0].erasure.gone else 0)
            assert len({row.blocked for row in rows}) == 1
            world.later(1000)
            world.purge(grace_ms=30 * DAY_MS)
    assert set(states) == {ErasureState.COMPACTED, ErasureState.UNREFERENCED}
    assert str(stray) in str(rows[0].blocked)


TIMES = st.integers(0, 4).map(lambda hours: NOW_MS - 4 * HOUR_MS + hours * HOUR_MS)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """One with segments of any age, with and without delete horizons."""
    segments, base = [], 0
    for gap, length, time_ms, horizon_ms in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), TIMES, st.one_of(st.none(), TIMES)), max_size=6)
    ):
        segments.append(segment(base + gap, base + gap + length, time_ms=time_ms, horizon_ms=horizon_ms))
        base += gap + length + 1
    lag_ms = draw(st.sampled_from([0, HOUR_MS, 5 * HOUR_MS]))
    settings = config(min_compaction_lag_ms=lag_ms, segment_ms=2 * HOUR_MS, retention_ms=3 * HOUR_MS)
    return log(segments, settings, checkpoint=draw(st.one_of(st.none(), st.integers(0, base))))


BOUNDS = st.builds(lambda base, length: ErasureBound(0, base, base + length), st.integers(0, 14), st.integers(0, 4))


def in_state(state: ErasureState, bound: ErasureBound, way: str = "tombstone") -> Erasure:
    reached = (ReachedState(state.value, NOW_MS - 9 * HOUR_MS),)
    return Erasure("r", way, 0, None, "", "f", ("aa",), (bound,), reached=reached)


def at(until: Until | None) -> int | None:
    return until and until.at_ms


@given(logs(), st.lists(BOUNDS, min_size=1, max_size=6))
def test_when_each_of_them_can_be_further_is_what_its_own_segments_say(drawn: Log, bounds: list[ErasureBound]) -> None:
    times, sections = NextTimes({0: drawn}, NOW_MS), sections_of(drawn, NOW_MS)
    lag_ms, at_ms = drawn.config.min_compaction_lag_ms, NOW_MS - 9 * HOUR_MS
    for bound in bounds:
        cleaned: list[Until] = [Until(0)]
        if sections.active and sections.active[0].base_offset < bound.end_offset:
            cleaned.append(Until(closing_ms(sections.active, drawn.config), "segment.ms"))
        young = [each for each in sections.dirty if each.base_offset < bound.end_offset and lag_ms]
        cleaned += [Until(each.largest_timestamp_ms + lag_ms, "min.compaction.lag.ms") for each in young]
        passes = CleanTimes.of(drawn, NOW_MS).passes(bound.end_offset)
        assert passes in cleaned
        assert passes.at_ms == max(each.at_ms for each in cleaned)
        expected = max(at_ms, passes.at_ms) if bound.has_tombstones else at_ms
        assert at(times.of(in_state(ErasureState.TOMBSTONED, bound))) == expected

        below = [each.largest_timestamp_ms for each in drawn.segments if each.base_offset < bound.end_offset]
        by_age = NextTimes({0: replace(drawn, config=replace(drawn.config, cleanup_policy=("delete",)))}, NOW_MS)
        of_age = at(by_age.of(in_state(ErasureState.TOMBSTONED, bound, "retention")))
        assert of_age is not None
        assert max(of_age, NOW_MS) == max([NOW_MS, *(each + 3 * HOUR_MS + 1 for each in below)])
        assert (times.of(in_state(ErasureState.TOMBSTONED, bound, "retention")) is None) == bool(below)

        near = [each for each in drawn.segments if each.tombstone_count]
        near = [each for each in near if each.base_offset < bound.end_offset and each.last_offset >= bound.base_offset]
        assert list(covering(drawn, bound)) == near
        told = [each.earliest_delete_horizon_ms for each in near if each.earliest_delete_horizon_ms]
        horizon_ms = max(told, default=at_ms + drawn.config.delete_retention_ms)
        expired = at(times.of(in_state(ErasureState.COMPACTED, bound)))
        assert expired == (max(at_ms, horizon_ms) if bound.has_tombstones else at_ms)


@given(logs(), BOUNDS)
def test_what_also_goes_by_its_age_can_be_further_when_retention_takes_it_and_not_before(
    drawn: Log, bound: ErasureBound
) -> None:
    mixed = replace(drawn, config=replace(drawn.config, cleanup_policy=("compact", "delete")))
    times, asked = NextTimes({0: mixed}, NOW_MS), in_state(ErasureState.TOMBSTONED, bound)
    below = [each for each in mixed.segments if each.base_offset < bound.end_offset]
    cleaned_ms = max(NOW_MS - 9 * HOUR_MS, CleanTimes.of(mixed, NOW_MS).passes_ms(bound.end_offset))
    if not below or not bound.has_tombstones:
        nothing = times.of(asked)
        assert nothing is not None
        assert not nothing.is_by_age
        return

    def is_taken(at_ms: int) -> bool:
        return len(retention_of(mixed, at_ms).old) >= len(below)

    until = times.of(asked)
    assert until is not None
    next_ms = until.at_ms
    assert until.is_by_age == (next_ms < cleaned_ms)
    assert next_ms <= cleaned_ms
    if next_ms > NOW_MS:
        assert not is_taken(next_ms - 1)
        assert next_ms == cleaned_ms or is_taken(next_ms)
        assert (until.setting == "retention.ms") == until.is_by_age
    else:
        assert cleaned_ms <= NOW_MS or is_taken(NOW_MS)


@given(logs(), BOUNDS)
def test_what_goes_by_its_age_alone_can_be_further_when_retention_takes_it_and_not_before(
    drawn: Log, bound: ErasureBound
) -> None:
    """People were sent to retain a topic a millisecond before anything of it was too old."""
    by_age = replace(drawn, config=replace(drawn.config, cleanup_policy=("delete",)))
    below = [each for each in by_age.segments if each.base_offset < bound.end_offset]
    until = NextTimes({0: by_age}, NOW_MS).of(in_state(ErasureState.TOMBSTONED, bound, "retention"))
    assert until is not None

    def is_taken(at_ms: int) -> bool:
        return len(retention_of(by_age, at_ms).old) >= len(below)

    if until.at_ms > NOW_MS:
        assert not is_taken(until.at_ms - 1)
        assert is_taken(until.at_ms)
        assert until.setting == "retention.ms"
    else:
        assert is_taken(NOW_MS)


@given(st.frozensets(st.integers(0, 14)), st.lists(BOUNDS, max_size=6))
def test_a_tombstone_of_each_of_them_is_live_if_one_of_its_own_offsets_is(
    live: frozenset[int], bounds: list[ErasureBound]
) -> None:
    look = ErasureLook(NOW_MS, {}, {0: live}, GoneSince(1, NOW_MS), 1)
    for each in bounds:
        assert look.may_have_live(each) == any(each.base_offset <= offset < each.end_offset for offset in live)
    assert look.may_have_live(ErasureBound(1, 0, 1)), "of a partition that was not looked at nobody knows"


@given(logs(), BOUNDS, st.sampled_from([ErasureState.TOMBSTONED, ErasureState.COMPACTED]))
def test_where_nothing_is_compacted_any_more_no_clean_is_waited_for(
    drawn: Log, bound: ErasureBound, state: ErasureState
) -> None:
    """It said to wait for segment.ms, and then for a clean, of which nothing ever came."""
    by_age = replace(drawn, config=replace(drawn.config, cleanup_policy=("delete",)))
    below = [each for each in drawn.segments if each.base_offset < bound.end_offset]
    until = NextTimes({0: by_age}, NOW_MS).of(in_state(state, bound))
    assert until is not None
    if not below or not bound.has_tombstones:
        return
    by_retention = NextTimes({0: by_age}, NOW_MS).of(in_state(ErasureState.TOMBSTONED, bound, "retention"))
    assert by_retention is not None
    assert until == by_retention._replace(is_by_age=True)
    kept = replace(drawn, config=replace(drawn.config, cleanup_policy=()))
    assert NextTimes({0: kept}, NOW_MS).of(in_state(state, bound)) is None
