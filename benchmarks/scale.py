"""What the driver pays a segment and a topic-partition: the unit costs from which docs/scale.md reckons.

    python -m benchmarks.scale                      # about five minutes
    python -m benchmarks.scale --segments 1000 --partitions 100 --topics 20

| case      | what is measured                                                                                     |
|-----------|------------------------------------------------------------------------------------------------------|
| segment   | of a log of so many segments: to read its manifests, to plan its clean, what its tasks are told, a leg's commit |
| partition | of a topic of so many partitions of 5 segments: to observe it, to assess it, its table's own JSON    |
| topic     | of so many topics of 10 partitions of 5 segments: a sensor's first look at all, and one at nothing new |

CPU seconds are of this process, memory is what Python holds for it, bytes are of files and of pickles. The last line is one
JSON object.
"""  # noqa: E501  # a table

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from benchmarks.many_topics import Shape, make_topics, topic_name
from keptlog.engine.latest import StoredMap
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import Sizes, cut_into_runs, map_tasks
from keptlog.home import new_id
from keptlog.log.assessment import assess
from keptlog.log.plan import plan_step
from keptlog.log.result import Counts, RewriteResult
from keptlog.log.steps import Compact
from keptlog.passes.observer import Observer
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.logs import open_store

GIB = 2**30
CORES = 100
Given = TypeVar("Given")


def costs(work: Callable[[], Given]) -> tuple[Given, float, int]:
    """What work gives, its CPU seconds, and the bytes that Python holds for what it gave."""
    work()  # what is loaded once counts for nobody
    begun = time.process_time()
    work()
    cpu_s = time.process_time() - begun
    tracemalloc.start()
    given = work()
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return given, cpu_s, held_bytes


def of_segments(home: Path, segments: int, now_ms: int) -> dict[str, float]:
    """Of one log of so many segments, each told as 1 GiB."""
    make_topics(home, 1, Shape(1, segments, appends=10), now_ms, processes=1)
    store, topic = open_store(home), topic_name(0)

    def read() -> Compact:
        [log] = LogStore(open_catalog(home), {}, time.sleep, new_id).logs(topic)
        step = plan_step(assess(log, now_ms), requested=True)
        assert isinstance(step, Compact)
        return step

    step, read_s, held_bytes = costs(read)
    large = replace(step, segments=tuple(replace(each, size_bytes=GIB) for each in step.segments))
    large = replace(large, commit_max_bytes=100 * GIB)
    known = StoredMap(("a" * 150,), 5_000_000, large.end_offset, 0)
    leg = SegmentRun(0, large, large.legs[0], "b" * 80, known)
    runs = cut_into_runs([leg], CORES, Sizes())
    maps = map_tasks(SegmentRun(0, large, large.segments, "b" * 80), large, CORES, Sizes())
    outcome = _rewritten(step, min(100, segments // 2))
    begun = time.process_time()
    store.swap(topic, [outcome], new_id())
    return {
        "segments": segments,
        "cpu_ms_to_read_and_plan_a_1000_segments": 1e6 * read_s / segments,
        "held_bytes_a_segment": held_bytes / segments,
        "legs": len(large.legs),
        "told_bytes_a_leg": sum(len(pickle.dumps(run)) for run in runs),
        "told_bytes_a_segment_run_if_it_had_all_segments": len(pickle.dumps(replace(runs[0], step=large))),
        "told_bytes_to_the_tasks_that_map": sum(len(pickle.dumps(task)) for task in maps),
        "cpu_s_to_commit_a_leg": time.process_time() - begun,
    }


def _rewritten(step: Compact, inputs: int) -> RewriteResult:
    """The outcome of a leg that makes one segment of each of its inputs; of the files there is but the name."""
    removed = step.segments[:inputs]
    added = tuple(replace(each, path=each.path.replace("-made-", f"-{new_id()}-")) for each in removed)
    for segment in added:
        path = Path(segment.path.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return RewriteResult(step, removed, added, Counts(kept=sum(each.record_count for each in removed)), 0, 0)


def of_partitions(home: Path, partitions: int, now_ms: int) -> dict[str, float]:
    """Of one topic of so many partitions, of five segments each."""
    make_topics(home, 1, Shape(partitions, 5), now_ms, processes=1)
    topic = topic_name(0)
    store = open_store(home)
    metadata = Path(store.load_table(topic).metadata_location.removeprefix("file://"))

    def observe() -> list[object]:
        observed = LogStore(open_catalog(home), {}, time.sleep, new_id).logs(topic)
        return [assess(log, now_ms) for log in observed]

    _, observe_s, held_bytes = costs(observe)
    return {
        "partitions": partitions,
        "cpu_ms_to_observe_and_assess_a_1000_logs": 1e6 * observe_s / partitions,
        "held_bytes_a_log": held_bytes / partitions,
        "metadata_bytes_a_partition": metadata.stat().st_size / partitions,
    }


def of_topics(home: Path, topics: int, now_ms: int) -> dict[str, float]:
    """Of so many topics of ten partitions, five segments each: what a sensor looks at in each tick."""
    make_topics(home, topics, Shape(), now_ms)
    observer = Observer(open_store(home), lambda: 0)
    tracemalloc.start()
    observer.look(now_ms)
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    observer = Observer(open_store(home), lambda: 0)
    seconds = []
    for _ in range(2):
        begun = time.process_time()
        observer.look(now_ms)
        seconds.append(time.process_time() - begun)
    return {
        "topics": topics,
        "cpu_ms_of_the_first_look_a_topic": 1e3 * seconds[0] / topics,
        "cpu_ms_of_a_look_at_nothing_new_a_topic": 1e3 * seconds[1] / topics,
        "held_bytes_a_topic": held_bytes / topics,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Measure what the driver pays.")
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--topics", type=int, default=200)
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="keptlog-scale-"))
    now_ms = int(time.time() * 1000)
    try:
        found = {
            "segment": of_segments(folder / "segments", wanted.segments, now_ms),
            "partition": of_partitions(folder / "partitions", wanted.partitions, now_ms),
            "topic": of_topics(folder / "topics", wanted.topics, now_ms),
        }
    finally:
        shutil.rmtree(folder)
    for case, numbers in found.items():
        for name, number in numbers.items():
            sys.stdout.write(f"{case:10} {name:50} {number:14,.3f}\n")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
