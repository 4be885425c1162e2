"""One clean on records in memory: bounded maps, versions and watermarks; and that it is what the specification says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.clean import CleanedLog, clean
from keptlog.log.offset_map import UNBOUNDED, MapCapacity, MapOverflow
from keptlog.log.record import Record
from keptlog.log.reference import ReferenceConfig, ReferenceLog, latest_values
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.watermark import Watermark
from tests.building import Clean
from tests.strategies import ALL_STRATEGIES

BY_TIMESTAMP = Strategy(StrategyKind.TIMESTAMP)
NOW_MS, RETENTION_MS, REMEMBERED_MS = 1000, 50, 500


def value(offset: int, key: str, time_ms: int = 0) -> Record:
    return Record(offset, key.encode(), b"v", time_ms)


def tombstone(offset: int, key: str, time_ms: int = 0, horizon_ms: int | None = None) -> Record:
    return Record(offset, key.encode(), None, time_ms, delete_horizon_ms=horizon_ms)


def run(
    segments: Sequence[Sequence[Record]],
    *,
    dirty: int = 0,
    capacity: MapCapacity = UNBOUNDED,
    strategy: Strategy | None = None,
    marks: Sequence[Watermark] = (),
    is_expiry: bool = False,
    start: int = 0,
) -> CleanedLog:
    """Clean these segments, up to their end, from ``dirty`` on."""
    described = tuple(
        Segment(f"{each[0].offset}", each[0].offset, each[-1].offset, 0, 0, len(each), 1) for each in segments
    )
    asked = Clean(
        dirty,
        segments[-1][-1].offset + 1,
        now_ms=NOW_MS,
        delete_retention_ms=RETENTION_MS,
        strategy=strategy or Strategy(),
        map_capacity=capacity,
        log_start_offset=start,
        watermark_retention_ms=REMEMBERED_MS,
    )
    step = asked.expiry(described) if is_expiry else asked.step(described)
    return clean(step, segments, marks)


def offsets(cleaned: CleanedLog) -> list[int]:
    return [record.offset for record in cleaned.records]


def test_a_full_map_ends_the_pass_in_the_middle_of_a_segment_whose_rest_is_kept_as_it_is() -> None:
    segment = [value(0, "a"), value(1, "a"), value(2, "b"), value(3, "a"), tombstone(4, "b")]
    cleaned = run([segment], capacity=MapCapacity(2))
    assert cleaned.step.end_offset == 3
    assert isinstance(cleaned.step, Compact)
    assert cleaned.step.ends_early
    assert cleaned.records == tuple(segment[1:])


def test_passes_with_a_small_map_leave_what_one_with_a_large_map_leaves() -> None:
    segments = [[value(0, "a"), value(1, "b"), value(2, "a")], [value(5, "c"), value(6, "b"), tombstone(7, "a")]]
    first = run(segments, capacity=MapCapacity(2))
    assert (first.step.end_offset, offsets(first)) == (2, [0, 1, 2])
    second = run([list(first.records), segments[1]], dirty=2, capacity=MapCapacity(2))
    assert (second.step.end_offset, offsets(second)) == (6, [1, 2, 5, 6, 7])
    third = run([list(second.records)], dirty=6, capacity=MapCapacity(2))
    assert third.records == run(segments).records
    assert isinstance(third.step, Compact)
    assert not third.step.ends_early


def test_a_map_that_ends_in_an_earlier_segment_takes_the_later_ones_out_of_the_step() -> None:
    cleaned = run([[value(0, "a")], [value(3, "b")]], capacity=MapCapacity(1))
    assert cleaned.step.end_offset == 3
    assert [segment.base_offset for segment in cleaned.step.segments] == [0]
    assert offsets(cleaned) == [0]


def test_a_map_that_may_go_beyond_memory_ends_nothing_early() -> None:
    segments = [[value(0, "a"), value(1, "b"), value(2, "a")]]
    assert run(segments, capacity=MapCapacity(1, MapOverflow.SHUFFLE)).records == run(segments).records


def test_by_version_a_late_record_loses_against_the_clean_section() -> None:
    clean_section, dirty = [value(0, "a", 9), value(1, "b", 1)], [value(2, "a", 5), value(3, "b", 2)]
    cleaned = run([clean_section, dirty], dirty=2, strategy=BY_TIMESTAMP)
    assert offsets(cleaned) == [0, 3]
    assert offsets(run([clean_section, dirty], dirty=2)) == [2, 3]


def test_by_version_a_record_below_the_log_start_wins_against_nothing() -> None:
    segments = [[value(0, "a", 9), value(1, "a", 5)]]
    assert offsets(run(segments, dirty=1, start=1, strategy=BY_TIMESTAMP)) == [1]


def test_by_version_a_record_beyond_the_end_of_the_pass_wins_against_nothing_yet() -> None:
    segment = [value(0, "a", 1), value(1, "b", 1), value(2, "c", 1), value(3, "a", 9)]
    cleaned = run([segment], capacity=MapCapacity(2), strategy=BY_TIMESTAMP)
    assert (cleaned.step.end_offset, offsets(cleaned)) == (2, [0, 1, 2, 3])


def test_a_late_tombstone_deletes_nothing() -> None:
    assert offsets(run([[value(0, "a", 9), tombstone(1, "a", 8)]], strategy=BY_TIMESTAMP)) == [0]


def test_an_expired_tombstone_leaves_a_watermark_that_a_late_record_loses_against() -> None:
    first = run([[tombstone(0, "a", 9, NOW_MS), value(1, "b", 1)]], dirty=2, strategy=BY_TIMESTAMP)
    assert offsets(first) == [1]
    assert first.watermarks == (Watermark(b"a", 9, NOW_MS + REMEMBERED_MS),)
    late = run([list(first.records), [value(2, "a", 8)]], dirty=2, strategy=BY_TIMESTAMP, marks=first.watermarks)
    assert offsets(late) == [1]
    assert late.watermarks == first.watermarks
    newer = run([[value(1, "b", 1)], [value(2, "a", 10)]], dirty=2, strategy=BY_TIMESTAMP, marks=late.watermarks)
    assert offsets(newer) == [1, 2]
    assert newer.watermarks == ()


@pytest.mark.parametrize("offset", [0, 1])
def test_a_late_record_loses_against_a_watermark_at_the_very_beginning_of_a_log_too(offset: int) -> None:
    marks = [Watermark(b"a", 9, NOW_MS + 1)]
    assert offsets(run([[value(offset, "a", 8)]], strategy=BY_TIMESTAMP, marks=marks)) == []


def test_by_offset_nothing_is_remembered() -> None:
    assert run([[tombstone(0, "a", 9, NOW_MS)]], dirty=1).watermarks == ()


def test_an_expiry_removes_tombstones_and_nothing_else() -> None:
    segment = [value(0, "a", 1), value(1, "a", 2), tombstone(2, "b", 7, NOW_MS), tombstone(3, "c", 1)]
    cleaned = run([segment], dirty=4, is_expiry=True, strategy=BY_TIMESTAMP)
    assert cleaned.records == (segment[0], segment[1], segment[3])
    assert cleaned.watermarks == (Watermark(b"b", 7, NOW_MS + REMEMBERED_MS),)


def test_counts_add_up_and_malformed_versions_are_counted() -> None:
    by_header = Strategy(StrategyKind.HEADER, "v")
    wrong = replace(value(2, "a"), headers=(("v", b"1"),))
    cleaned = run([[value(0, "a"), tombstone(1, "b"), wrong]], strategy=by_header)
    assert (cleaned.malformed, cleaned.map_keys) == (1, 2)
    assert (cleaned.counts.kept, cleaned.counts.stamped, cleaned.counts.superseded) == (1, 1, 1)


VERSIONS = st.sampled_from([(), (("v", b"\0\0\0\0\0\0\0\1"),), (("v", b"\0\0\0\0\0\0\0\2"),), (("v", b"?"),)])
NEW_RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(-1),
        key=st.sampled_from([b"a", b"b", b"c"]),
        value=st.sampled_from([None, b"", b"1"]),
        timestamp_ms=st.integers(-1, 3),
        headers=VERSIONS,
    ),
    min_size=1,
    max_size=5,
)
HISTORIES = st.lists(st.tuples(NEW_RECORDS, st.integers(1, 60)), min_size=1, max_size=6)


@given(HISTORIES, st.sampled_from(ALL_STRATEGIES))
def test_any_history_ends_as_the_specification_says(
    history: list[tuple[list[Record], int]], strategy: Strategy
) -> None:
    specification = ReferenceLog(
        ReferenceConfig(
            segment_ms=1,
            delete_retention_ms=20,
            strategy=strategy.kind,
            header=strategy.header,
            watermark_retention_ms=40,
        )
    )
    records: list[Record] = []
    marks: tuple[Watermark, ...] = ()
    now_ms = 10
    for batch, pause_ms in history:
        dirty = specification.log_end_offset
        specification.append(batch)
        records += specification.batches[-1]
        now_ms += pause_ms
        assert specification.clean(now_ms)
        segments = [[record] for record in records]
        asked = run(segments, dirty=dirty, strategy=strategy).step
        assert isinstance(asked, Compact)
        step = replace(
            asked,
            now_ms=now_ms,
            delete_retention_ms=20,
            watermark_retention_ms=40,
        )
        cleaned = clean(step, segments, marks)
        records, marks = list(cleaned.records), cleaned.watermarks
        assert records == specification.records
        remembered = {record.key: specification.config.rank(record)[1] for record in specification.remembered}
        assert {mark.key: mark.version for mark in marks} == remembered


@given(HISTORIES, st.integers(1, 3), st.sampled_from(ALL_STRATEGIES))
def test_a_small_map_needs_more_passes_and_leaves_the_same_values(
    history: list[tuple[list[Record], int]], max_keys: int, strategy: Strategy
) -> None:
    written = [replace(each, offset=at) for at, each in enumerate(each for batch, _ in history for each in batch)]
    segments, end_offset = [list(written)], 0
    while end_offset < len(written):
        cleaned = run(segments, dirty=end_offset, capacity=MapCapacity(max_keys), strategy=strategy)
        assert cleaned.step.end_offset > end_offset
        segments, end_offset = [list(cleaned.records)], cleaned.step.end_offset
    specified = ReferenceConfig(strategy=strategy.kind, header=strategy.header)
    left = segments[0]
    assert latest_values(left, specified) == latest_values(written, specified)
    assert [each.offset for each in left] == [each.offset for each in run([written], strategy=strategy).records]
