"""Which segments are rewritten together."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.groups import groups_to_rewrite
from keptlog.log.segment import Segment, total_bytes
from tests.building import segment


def sized(sizes: list[int]) -> list[Segment]:
    return [segment(index, index, size=size) for index, size in enumerate(sizes)]


def groups(sizes: list[int], changed: str, dirty: str = "") -> list[list[int]]:
    """Groups as lists of indexes; ``x`` marks a segment as changed, or as dirty."""
    flags = [mark == "x" for mark in changed]
    dirty_flags = [mark == "x" for mark in dirty.ljust(len(sizes))]
    return [list(group) for group in groups_to_rewrite(sized(sizes), flags, dirty_flags, 100)]


def test_where_nothing_changes_nothing_is_rewritten() -> None:
    assert groups([10, 10, 10], "---") == []


def test_changed_neighbours_are_rewritten_together() -> None:
    assert groups([90, 90, 90, 90], "xx-x") == [[0, 1], [3]]


def test_neighbours_that_are_rewritten_together_have_room_for_what_is_as_small_as_all_of_them() -> None:
    assert groups([90, 90, 10, 10, 20], "x-xx-") == [[0], [2, 3, 4]]


def test_a_large_unchanged_segment_is_kept_between_changed_ones() -> None:
    assert groups([90, 51, 90], "x-x") == [[0], [2]]


def test_a_small_unchanged_segment_joins_its_neighbours() -> None:
    assert groups([90, 80, 5, 60, 70], "-x-x-") == [[1, 2, 3]]


def test_a_small_unchanged_segment_does_not_join_one_that_is_smaller_still() -> None:
    assert groups([10, 20], "x-") == [[0]]
    assert groups([20, 10], "-x") == [[1]]
    assert groups([20, 20], "x-") == [[0, 1]]
    assert groups([20, 20], "-x") == [[0, 1]]


def test_half_of_a_full_segment_is_still_small() -> None:
    assert groups([90, 50, 90], "x-x") == [[0, 1, 2]]


def test_groups_that_come_to_touch_become_one() -> None:
    assert groups([10, 8, 8, 10], "x--x") == [[0, 1, 2, 3]]


def test_a_group_that_comes_to_lie_in_the_one_before_it_takes_nothing_from_it() -> None:
    assert groups([90, 90, 50, 5, 5, 5, 5], "x-x-x--") == [[0], [2, 3, 4, 5, 6]]


def test_small_unchanged_segments_join_only_as_far_as_the_changed_bytes_reach() -> None:
    assert groups([10, 10, 10, 10, 25, 10], "----x-") == [[2, 3, 4]]


def test_a_run_of_small_dirty_segments_is_merged_though_nothing_in_it_changes() -> None:
    assert groups([90, 10, 10, 10], "----", "-xxx") == [[1, 2, 3]]
    assert groups([90, 10, 90, 10], "----", "-xxx") == []
    assert groups([90, 10, 20], "---", "-xx") == [[1, 2]]


def test_small_clean_segments_are_not_merged_for_their_own_sake() -> None:
    assert groups([10, 10, 10], "---", "---") == []
    assert groups([10, 10], "--", "-x") == []


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Segment], list[bool], list[bool]]:
    """Clean segments, then dirty ones, of any size; any of them changed."""
    sizes = draw(st.lists(st.integers(1, 150), max_size=12))
    changed = [draw(st.booleans()) for _ in sizes]
    clean = draw(st.integers(0, len(sizes)))
    return sized(sizes), changed, [index >= clean for index in range(len(sizes))]


@given(runs(), st.integers(1, 200))
def test_groups_are_disjoint_in_order_and_hold_every_changed_segment(
    run: tuple[list[Segment], list[bool], list[bool]], segment_bytes: int
) -> None:
    segments, changed, dirty = run
    found = groups_to_rewrite(segments, changed, dirty, segment_bytes)
    indexes = [index for group in found for index in group]
    assert indexes == sorted(set(indexes))
    assert set(indexes) <= set(range(len(segments)))
    assert {index for index, is_changed in enumerate(changed) if is_changed} <= set(indexes)
    assert all(earlier.stop < later.start for earlier, later in pairwise(found)), "neighbours join"


@given(runs(), st.integers(1, 200))
def test_bytes_copied_for_tidiness_are_never_more_than_those_that_had_to_be(
    run: tuple[list[Segment], list[bool], list[bool]], segment_bytes: int
) -> None:
    segments, changed, dirty = run
    for group in groups_to_rewrite(segments, changed, dirty, segment_bytes):
        due = [segments[index] for index in group if changed[index] or dirty[index]]
        tidied = [segments[index] for index in group if not changed[index] and not dirty[index]]
        assert total_bytes(tidied) <= total_bytes(due)
        assert all(each.size_bytes * 2 <= segment_bytes for each in tidied)


@given(runs(), st.integers(1, 200))
def test_a_large_segment_in_which_nothing_changes_is_never_copied(
    run: tuple[list[Segment], list[bool], list[bool]], segment_bytes: int
) -> None:
    segments, changed, dirty = run
    copied = {index for group in groups_to_rewrite(segments, changed, dirty, segment_bytes) for index in group}
    for index, each in enumerate(segments):
        if not changed[index] and each.size_bytes * 2 > segment_bytes:
            assert index not in copied
