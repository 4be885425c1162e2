"""How work is cut: contiguous, balanced, few."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.engine.attempt import Attempt
from keptlog.engine.bundles import bundled, contiguous_runs, shared_out
from keptlog.engine.latest import NoMap, StoredMap
from keptlog.engine.map_tasks import MapTask
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import (
    RewriteTask,
    Sizes,
    cut_into_runs,
    is_cut,
    map_tasks,
    rewrite_tasks,
)
from keptlog.kernels.offset_map import OffsetMap
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from keptlog.storage.files import Files
from tests.building import Clean
from tests.local_log import LocalFiles


def segments_of(sizes_bytes: Sequence[int], records_each: int = 10) -> list[Segment]:
    return [
        Segment(f"{index}", index * 100, index * 100 + 99, 0, 0, records_each, size_bytes)
        for index, size_bytes in enumerate(sizes_bytes)
    ]


def run_of(sizes_bytes: Sequence[int], index: int = 0, records_each: int = 10) -> SegmentRun:
    segments = segments_of(sizes_bytes, records_each)
    step = Clean(100, len(segments) * 100).step(segments)
    return SegmentRun(index, step, step.segments, "folder")


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30), st.integers(1, 400))
def test_runs_are_contiguous_whole_and_near_their_size(sizes_bytes: list[int], target_bytes: int) -> None:
    segments = segments_of(sizes_bytes)
    runs = contiguous_runs(segments, target_bytes)
    assert [segment for run in runs for segment in run] == segments
    assert all(runs)
    assert max(sum(s.size_bytes for s in run) for run in runs) <= target_bytes + max(sizes_bytes)
    assert len(runs) <= -(-sum(sizes_bytes) // target_bytes)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=40), st.integers(1, 8))
def test_bundles_hold_every_run_once_and_differ_by_no_more_than_one(sizes_bytes: list[int], bundles: int) -> None:
    runs = [run_of([size_bytes], index) for index, size_bytes in enumerate(sizes_bytes)]
    filled = bundled(runs, bundles, lambda run: run.segments[0].size_bytes)
    assert sorted(run.step_index for bundle in filled for run in bundle) == list(range(len(runs)))
    totals = [sum(run.segments[0].size_bytes for run in bundle) for bundle in filled]
    assert max(totals) - min(totals) <= max(sizes_bytes)


def test_a_large_log_is_cut_for_as_many_tasks_as_there_are_cores_beside_bundles_of_small_ones() -> None:
    large, small = run_of([10] * 40), [run_of([1], index) for index in range(1, 20)]
    tasks = rewrite_tasks(cut_into_runs([large], 2, Sizes()), small, cores=2, sizes=Sizes())
    assert [sum(len(run.segments) for run in task.runs) for task in tasks[:2]] == [20, 20]
    assert len(tasks) == 2 + 2


@pytest.mark.parametrize(
    ("share", "bundles_per_core"), [(0.001, 1), (0.9, 1), (1.0, 1), (2.1, 2), (3.5, 3), (4.1, 4), (100.0, 4)]
)
def test_a_core_gets_another_bundle_of_small_logs_only_if_it_is_worth_a_task(
    share: float, bundles_per_core: int
) -> None:
    """A task costs what Spark takes to begin it, and on a far store what its first and last request take."""
    each_bytes = round(share * 2 * Sizes().bundle_bytes / 20)
    tasks = rewrite_tasks([], [run_of([each_bytes], index) for index in range(20)], cores=2, sizes=Sizes())
    assert len(tasks) == 2 * bundles_per_core


def test_each_task_has_a_run_of_the_newest_segments_beside_one_of_the_others() -> None:
    run = run_of([10] * 80)
    tasks = rewrite_tasks(cut_into_runs([run], 2, Sizes()), [], cores=2, sizes=Sizes())
    assert [[part.segments for part in task.runs] for task in tasks] == [
        [run.segments[:35], run.segments[70:75]],
        [run.segments[35:70], run.segments[75:]],
    ]


def test_the_task_that_got_less_of_the_older_segments_gets_more_of_the_newest() -> None:
    runs = cut_into_runs([run_of([10] * 20)], 2, Sizes())
    assert [(part.task, len(part.segments)) for part in runs] == [(0, 8), (1, 9), (0, 2), (1, 1)]


def test_no_task_gets_less_of_the_newest_than_half_of_an_even_share() -> None:
    """They may be all that changes, however large one of the older segments is."""
    runs = cut_into_runs([run_of([300, 10, *[10] * 8])], 2, Sizes(newest_share=5))
    assert [(part.task, len(part.segments)) for part in runs] == [(0, 1), (1, 1), (0, 2), (1, 6)]


@given(st.lists(st.integers(1, 100), max_size=40), st.lists(st.integers(1, 100), min_size=1, max_size=5))
def test_what_is_shared_out_is_shared_out_once_and_near_to_what_is_wanted(items: list[int], wanted: list[int]) -> None:
    runs = shared_out(items, wanted, lambda item: item)
    assert [item for run in runs for item in run] == items
    for run, want in zip(runs, wanted, strict=True):
        assert abs(sum(run) - want * sum(items) / sum(wanted)) <= max(items, default=0) + 1


@given(st.lists(st.integers(1, 100), min_size=1, max_size=40), st.integers(1, 5))
def test_the_runs_of_a_log_hold_every_segment_once_in_order_for_no_more_tasks_than_cores(
    sizes_bytes: list[int], cores: int
) -> None:
    run = run_of(sizes_bytes)
    runs = cut_into_runs([run], cores, Sizes())
    assert tuple(segment for part in runs for segment in part.segments) == run.segments
    assert all(part.segments for part in runs)
    assert len({part.task for part in runs}) <= cores


def test_what_a_task_has_to_know_is_read_once_for_all_its_runs_of_a_log(tmp_path: Path) -> None:
    reads = []

    @dataclass(frozen=True)
    class Told(NoMap):
        def read(self, files: Files) -> OffsetMap:
            reads.append(self)
            return super().read(files)

    segments = segments_of([1] * 8)
    step = Clean(800, 800).expiry(segments)
    run = SegmentRun(0, step, step.segments, str(tmp_path), Told(step.strategy))
    task = RewriteTask((replace(run, segments=run.segments[:2]), replace(run, segments=run.segments[6:])))
    results = task.run(Attempt(LocalFiles(), "run", 0, "attempt"))["runs"]
    assert len(results) == 2
    assert len(reads) == 1


def test_where_few_dirty_records_are_the_latest_the_run_that_writes_them_has_fewer_segments_to_read() -> None:
    run = run_of([10] * 20, records_each=100)
    step = Clean(0, run.step.end_offset).step(run.segments)
    mapped = SegmentRun(0, step, step.segments, "folder", StoredMap(("map",), 200, step.end_offset, 0))
    assert [len(part.segments) for part in cut_into_runs([mapped], 2, Sizes(newest_share=10**9))] == [11, 9]


def test_where_all_dirty_records_may_be_the_latest_runs_have_equal_bytes() -> None:
    run = run_of([10] * 20, records_each=100)
    step = Clean(0, run.step.end_offset).step(run.segments)
    mapped = SegmentRun(0, step, step.segments, "folder", StoredMap(("map",), 2000, step.end_offset, 0))
    assert [len(part.segments) for part in cut_into_runs([mapped], 2, Sizes(newest_share=10**9))] == [10, 10]


def test_a_log_is_cut_for_its_records_or_for_its_bytes() -> None:
    sizes = Sizes(whole_log_records=100, whole_log_bytes=100)
    assert not is_cut(run_of([10] * 10).step, sizes)
    assert is_cut(run_of([10] * 10, records_each=11).step, sizes)
    assert is_cut(run_of([11] * 10).step, sizes)


def test_a_run_is_never_larger_than_a_task_may_have_to_repeat() -> None:
    runs = cut_into_runs([run_of([10] * 40)], 2, Sizes(run_bytes=50))
    assert [len(run.segments) for run in runs] == [5] * 8


def mapped(run: SegmentRun, sizes: Sizes) -> list[MapTask]:
    assert isinstance(run.step, Compact)
    return map_tasks(run, run.step, 4, sizes)


def test_only_a_large_dirty_section_is_mapped_in_parts() -> None:
    sizes = Sizes(map_part_records=100)
    assert len(mapped(run_of([10] * 5, records_each=40), sizes)) == 1
    parts = mapped(run_of([10] * 13, records_each=25), sizes)
    assert [len(part.segments) for part in parts] == [4, 4, 4]


def test_a_clean_without_a_dirty_record_maps_nothing() -> None:
    step = Clean(400, 400).step(segments_of([10] * 4))
    assert map_tasks(SegmentRun(0, step, step.segments, "folder"), step, 4, Sizes()) == []


def test_descriptions_and_files_travel_by_pickle() -> None:
    run = run_of([1, 2])
    things = (
        MapTask(0, Clean(0, 200).step(run.segments), run.segments, "folder"),
        rewrite_tasks([run], [], 1, Sizes()),
        LocalFiles(),
    )
    assert pickle.loads(pickle.dumps(things)) == things  # noqa: S301  # just pickled
