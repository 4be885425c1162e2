"""Where a log is clean, cleanable, uncleanable and active."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.errors import LogCorrupt
from keptlog.log.sections import GIVEN_UP, cleaned_to, sections_of
from keptlog.log.segment import Log, Segment
from tests.building import HOUR_MS, NOW_MS, config, log, segment

OLD_MS = NOW_MS - 24 * HOUR_MS
CLOSED = config(segment_ms=HOUR_MS)
"""With it all segments of OLD_MS are closed, by the clock."""


def divided(judged: Log, now_ms: int = NOW_MS) -> tuple[list[int], list[int], list[int], list[int]]:
    """Base offsets of the four sections."""
    sections = sections_of(judged, now_ms)
    clean, cleanable, uncleanable, active = (
        [segment.base_offset for segment in section]
        for section in (sections.clean, sections.cleanable, sections.uncleanable, sections.active)
    )
    return clean, cleanable, uncleanable, active


def three(time_ms: int = OLD_MS) -> list[Segment]:
    return [segment(0, 9, time_ms=time_ms), segment(10, 19, time_ms=time_ms), segment(20, 29, time_ms=time_ms)]


def test_a_log_that_was_never_cleaned_is_dirty_from_its_start() -> None:
    assert divided(log(three(), CLOSED)) == ([], [0, 10, 20], [], [])


def test_the_checkpoint_separates_clean_from_dirty() -> None:
    assert divided(log(three(), CLOSED, checkpoint=20)) == ([0, 10], [20], [], [])


def test_a_checkpoint_at_the_log_end_leaves_nothing_dirty() -> None:
    assert divided(log(three(), CLOSED, checkpoint=30)) == ([0, 10, 20], [], [], [])


def test_an_empty_log_has_empty_sections() -> None:
    sections = sections_of(log([], CLOSED, start=7), NOW_MS)
    assert sections.dirty == sections.clean == ()
    assert (sections.first_dirty_offset, sections.first_uncleanable_offset) == (7, 7)
    assert sections.cleanable_ratio == 0.0


def test_the_active_segment_bounds_what_is_cleanable() -> None:
    segments = [segment(0, 9, time_ms=OLD_MS), segment(10, 19), segment(20, 29)]
    judged = log(segments, CLOSED)
    assert divided(judged) == ([], [0], [], [10, 20])
    assert sections_of(judged, NOW_MS).first_uncleanable_offset == 10


def test_without_an_active_segment_all_up_to_the_log_end_is_cleanable() -> None:
    assert sections_of(log(three(), CLOSED), NOW_MS).first_uncleanable_offset == 30


@pytest.mark.parametrize(
    ("start", "checkpoint", "first_dirty", "is_reset"),
    [
        (10, None, 10, False),
        (10, 10, 10, False),
        (10, 15, 15, False),
        (10, 30, 30, False),
        (10, 9, 10, True),
        (10, 31, 10, True),
    ],
)
def test_a_checkpoint_outside_of_the_log_is_replaced_by_the_log_start(
    start: int, checkpoint: int | None, first_dirty: int, *, is_reset: bool
) -> None:
    sections = sections_of(log(three(), CLOSED, start=start, checkpoint=checkpoint), NOW_MS)
    assert sections.first_dirty_offset == first_dirty
    assert (sections.checkpoint_reset is not None) is is_reset
    if is_reset:
        assert f"the checkpoint {checkpoint} lies outside of the log [10, 30]" in str(sections.checkpoint_reset)


def test_a_checkpoint_that_was_given_up_lies_outside_of_every_log_and_says_why() -> None:
    sections = sections_of(log(three(), CLOSED, start=10, checkpoint=GIVEN_UP), NOW_MS)
    assert (sections.first_dirty_offset, [each.base_offset for each in sections.clean]) == (10, [0])
    assert sections.checkpoint_reset == "a repair gave up the checkpoint; judged from 10 again"


@pytest.mark.parametrize(
    ("policy", "checkpoint", "cleaning_to", "expected"),
    [
        ("compact", None, None, 0),
        ("compact", 10, None, 10),
        ("compact", 10, 20, 20),
        ("compact", 20, 10, 20),
        ("compact", GIVEN_UP, 20, 20),
        ("compact", GIVEN_UP, 0, 0),
        ("compact", GIVEN_UP, None, 30),
        ("delete", GIVEN_UP, None, 0),
        ("delete", GIVEN_UP, 20, 20),
    ],
)
def test_cleans_may_have_been_beyond_the_checkpoint_and_how_far_is_known_after_a_repair(
    policy: str, checkpoint: int | None, cleaning_to: int | None, expected: int
) -> None:
    judged = log(three(), config(cleanup_policy=policy), checkpoint=checkpoint)
    assert cleaned_to(replace(judged, cleaning_to=cleaning_to)) == expected


def test_a_log_that_is_not_compacted_any_more_may_be_clean_to_its_end_where_a_repair_kept_no_note() -> None:
    judged = replace(log(three(), config(cleanup_policy="delete"), checkpoint=GIVEN_UP), was_cleaned=True)
    assert cleaned_to(judged) == 30
    assert cleaned_to(replace(judged, cleaning_to=10)) == 10


def test_a_segment_with_the_checkpoint_inside_counts_as_clean_and_as_dirty() -> None:
    """As in Kafka, which asks both times for the segment that contains the offset: 9/30 of select_dirtiest_ratio."""
    judged = log(three(), CLOSED, checkpoint=15)
    assert divided(judged) == ([0, 10], [10, 20], [], [])
    assert sections_of(judged, NOW_MS).cleanable_ratio == 0.5


def test_the_ratio_leaves_out_what_is_not_cleanable() -> None:
    segments = [
        segment(0, 9, size=600, time_ms=OLD_MS),
        segment(10, 19, size=200, time_ms=OLD_MS),
        segment(20, 29, size=9999),
    ]
    assert sections_of(log(segments, CLOSED, checkpoint=10), NOW_MS).cleanable_ratio == 0.25


def test_a_segment_with_a_record_younger_than_the_minimum_lag_waits() -> None:
    settings = config(segment_ms=1, min_compaction_lag_ms=1000)
    young = segment(10, 19, time_ms=OLD_MS, until_ms=NOW_MS - 999)
    judged = log([segment(0, 9, time_ms=OLD_MS), young, segment(20, 29, time_ms=OLD_MS)], settings)
    assert divided(judged) == ([], [0], [10, 20], [])


def test_a_record_exactly_as_old_as_the_minimum_lag_may_be_cleaned() -> None:
    settings = config(segment_ms=1, min_compaction_lag_ms=1000)
    judged = log([segment(0, 9, time_ms=NOW_MS - 1000)], settings)
    assert divided(judged) == ([], [0], [], [])
    assert divided(judged, NOW_MS - 1) == ([], [], [0], [])


def test_a_minimum_lag_of_a_millisecond_is_one() -> None:
    settings = config(segment_ms=1, min_compaction_lag_ms=1)
    assert divided(log([segment(0, 9, time_ms=OLD_MS, until_ms=NOW_MS)], settings)) == ([], [], [0], [])


def test_a_timestamp_in_the_future_holds_back_all_that_follows() -> None:
    settings = config(segment_bytes=1, min_compaction_lag_ms=1000, segment_ms=HOUR_MS)
    future = segment(10, 19, time_ms=OLD_MS, until_ms=NOW_MS + HOUR_MS)
    rest = [segment(20, 29, time_ms=OLD_MS), segment(30, 39, time_ms=OLD_MS)]
    judged = log([segment(0, 9, time_ms=OLD_MS), future, *rest], settings)
    assert divided(judged) == ([], [0], [10, 20, 30], [])
    assert sections_of(judged, NOW_MS).first_uncleanable_offset == 10


def test_without_a_minimum_lag_a_timestamp_in_the_future_holds_back_nothing() -> None:
    future = segment(10, 19, time_ms=OLD_MS, until_ms=NOW_MS + HOUR_MS)
    assert divided(log([segment(0, 9, time_ms=OLD_MS), future], config(segment_bytes=1, segment_ms=1))) == (
        [],
        [0, 10],
        [],
        [],
    )


def test_segments_that_overlap_are_refused_with_their_names() -> None:
    with pytest.raises(LogCorrupt, match=r"t-0: segment 5-14.parquet begins at offset 5, inside of 0-9.parquet"):
        log([segment(0, 9), segment(5, 14)])
    with pytest.raises(LogCorrupt, match=r"begins at offset 9, inside of 0-9.parquet which ends at 9"):
        log([segment(0, 9), segment(9, 14)])


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Logs of up to eight segments with any sizes, times and checkpoint around NOW_MS."""
    times = st.integers(NOW_MS - 5000, NOW_MS + 2000)
    segments, offset = [], draw(st.integers(0, 3))
    for _ in range(draw(st.integers(0, 8))):
        first, largest = sorted((draw(times), draw(times)))
        last = offset + draw(st.integers(0, 5))
        segments.append(segment(offset, last, size=draw(st.integers(1, 500)), time_ms=first, until_ms=largest))
        offset = last + draw(st.integers(1, 3))
    settings = config(
        min_compaction_lag_ms=draw(st.integers(0, 1000)),
        max_compaction_lag_ms=draw(st.integers(1000, 5000)),
        segment_ms=draw(st.integers(1, 3000)),
        segment_bytes=draw(st.integers(1, 1000)),
    )
    checkpoint = draw(st.none() | st.sampled_from([0, offset, *(each.base_offset for each in segments)]))
    return log(segments, settings, checkpoint=checkpoint)


@given(logs(), st.integers(NOW_MS - 1000, NOW_MS + 9000))
def test_the_sections_are_the_whole_log_in_order(judged: Log, now_ms: int) -> None:
    sections = sections_of(judged, now_ms)
    in_order = sections.clean + sections.dirty
    assert in_order == judged.segments
    assert all(each.last_offset < sections.first_dirty_offset for each in sections.clean)
    assert all(each.last_offset < sections.first_uncleanable_offset for each in sections.clean + sections.cleanable)
    assert all(each.base_offset >= sections.first_uncleanable_offset for each in sections.uncleanable + sections.active)


@given(logs(), st.integers(NOW_MS - 1000, NOW_MS + 9000), st.integers(0, 9000))
def test_what_is_cleanable_stays_so_as_time_goes_by(judged: Log, now_ms: int, later_ms: int) -> None:
    assert set(sections_of(judged, now_ms).cleanable) <= set(sections_of(judged, now_ms + later_ms).cleanable)


@given(logs(), st.integers(NOW_MS - 1000, NOW_MS + 9000))
def test_no_cleanable_record_is_younger_than_the_minimum_lag(judged: Log, now_ms: int) -> None:
    lag_ms = judged.config.min_compaction_lag_ms
    assert all(
        lag_ms == 0 or now_ms - each.largest_timestamp_ms >= lag_ms for each in sections_of(judged, now_ms).cleanable
    )


@pytest.mark.parametrize(
    ("stable", "cleanable", "bound"), [(30, 3, 30), (29, 2, 29), (20, 2, 20), (19, 1, 19), (0, 0, 0)]
)
def test_nothing_is_cleaned_beyond_the_last_stable_offset(stable: int, cleanable: int, bound: int) -> None:
    judged = replace(log(three(), CLOSED), last_stable_offset=stable)
    sections = sections_of(judged, NOW_MS)
    assert [segment.base_offset for segment in sections.cleanable] == [0, 10, 20][:cleanable]
    assert sections.first_uncleanable_offset == [0, 10, 20, 30][cleanable]
    assert sections.first_uncleanable_dirty_offset == bound


def test_the_bound_of_the_next_clean_is_the_smallest_of_all() -> None:
    settings = config(segment_ms=HOUR_MS, min_compaction_lag_ms=1000)
    segments = [segment(0, 9, time_ms=OLD_MS), segment(10, 19, time_ms=OLD_MS, until_ms=NOW_MS), segment(20, 29)]
    judged = log(segments, settings)
    assert sections_of(judged, NOW_MS).first_uncleanable_dirty_offset == 10
    assert sections_of(replace(judged, last_stable_offset=5), NOW_MS).first_uncleanable_dirty_offset == 5
    assert sections_of(replace(judged, checkpoint=15), NOW_MS).first_uncleanable_dirty_offset == 15


def test_a_caller_may_know_which_segments_are_active() -> None:
    judged = log(three(), CLOSED)
    assert sections_of(judged, NOW_MS, judged.segments[-1:]).first_uncleanable_offset == 20
    assert sections_of(judged, NOW_MS, ()).first_uncleanable_offset == 30


def test_a_segment_that_was_cleaned_in_part_is_closed_however_small_it_is() -> None:
    young = [segment(0, 9), segment(10, 19)]
    assert divided(log(young, CLOSED, checkpoint=5)) == ([0], [0], [], [10])
    assert divided(log(young, CLOSED)) == ([], [], [], [0, 10])
    assert divided(log(young, CLOSED, checkpoint=10)) == ([0], [], [], [10])


def test_a_log_start_inside_of_the_active_segment_leaves_it_active() -> None:
    assert divided(log([segment(0, 9)], CLOSED, start=5)) == ([0], [], [], [0])
    assert divided(log([segment(0, 9)], CLOSED, start=5, checkpoint=2)) == ([0], [], [], [0])


def test_a_checkpoint_that_a_deletion_has_moved_into_the_active_segment_leaves_it_active() -> None:
    """No pass has cleaned it in part: the log begins there."""
    assert divided(log([segment(0, 9)], CLOSED, start=5, checkpoint=5)) == ([0], [], [], [0])
    assert divided(log([segment(0, 9)], CLOSED, start=4, checkpoint=5)) == ([0], [0], [], [])
