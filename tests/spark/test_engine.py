"""Steps carried out on a real Spark session: what is left of a log, which files were written, and what went wrong."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from keptlog.engine.tasks import Sizes
from keptlog.errors import StalePlan, StorageUnavailable
from keptlog.log.clean import clean
from keptlog.log.offset_map import MapCapacity, MapOverflow
from keptlog.log.record import Record
from keptlog.log.reference import clean_records
from keptlog.log.result import Counts, RewriteResult, verify
from keptlog.log.steps import CleanStep, Compact
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.watermark import Watermark
from keptlog.spark.jobs import spark_engine
from keptlog.storage.files import Files
from keptlog.storage.segment_writer import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from keptlog.storage.watermark_file import read_any_watermarks
from tests.building import Clean
from tests.local_log import FailingFiles, LocalFiles, live_records, live_segments, read, write_segments

TOPIC = Clean.topic
CUT = Sizes(whole_log_records=0, mapped_in_runs_records=0, map_part_records=100, merged_in_runs_keys=0, run_bytes=3000)
"""Small enough that every log of these tests is mapped in parts, merged, and rewritten in several runs."""
MERGED_IN_RUNS = replace(CUT, merged_in_runs_keys=1000)
MAPPED_IN_RUNS = replace(CUT, mapped_in_runs_records=10_000)
MEBIBYTE = 2**20


@dataclass
class Engine:
    """An engine on the shared session; topics lie in folders under ``root``."""

    spark: SparkSession
    root: Path
    sizes: Sizes = field(default_factory=Sizes)
    files: Files = field(default_factory=LocalFiles)
    said: list[str] = field(default_factory=list)

    def rewrite(self, steps: Sequence[CleanStep], run_id: str = "run") -> list[RewriteResult]:
        locations = {step.topic_partition.topic: str(self.root / step.topic_partition.topic) for step in steps}
        engine = spark_engine(lambda: self.spark, self.files, self.sizes)
        outcomes = engine.rewrite(steps, locations, run_id, self.said.append)
        for outcome in outcomes:
            verify(outcome)
        return outcomes

    def paths(self, suffix: str = ".parquet") -> set[str]:
        return {str(path) for path in self.root.rglob(f"*{suffix}")}


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    return Engine(spark, tmp_path)


def some_records(count: int, keys: int, *, first_offset: int = 0, seed: int = 1) -> list[Record]:
    dice = random.Random(seed)
    return [
        Record(
            offset=first_offset + number,
            key=b"key-%d" % dice.randrange(keys),
            value=None if dice.random() < 0.1 else dice.randbytes(10),
            timestamp_ms=dice.randrange(1000),
            headers=(("source", b"1"), ("source", None)) if dice.random() < 0.1 else (),
        )
        for number in range(count)
    ]


@dataclass
class History:
    """A log that was cleaned once and then appended to."""

    clean: list[Record]
    dirty: list[Record]
    step: Compact

    @property
    def records(self) -> int:
        return len(self.clean) + len(self.dirty)

    @property
    def expected(self) -> list[Record]:
        return clean_records(self.clean, self.dirty, self.step.now_ms, self.step.delete_retention_ms)


def a_history(root: Path, seed: int = 1, partition: int = 0) -> History:
    clean = clean_records([], some_records(600, 200, seed=seed), 5000, 1000)
    dirty = some_records(400, 200, first_offset=600, seed=seed + 1)
    settings = Clean(600, 1000, partition=partition)
    folder = root / TOPIC / f"partition={partition}"
    segments = write_segments(folder, clean, 50) + write_segments(folder, dirty, 50)
    return History(clean, dirty, settings.step(segments))


@pytest.mark.parametrize(
    ("sizes", "jobs_before"),
    [
        pytest.param(Sizes(), [], id="in one task"),
        pytest.param(CUT, ["mapping the keys of 1 log", "merging the maps of 1 log"], id="cut"),
        pytest.param(MERGED_IN_RUNS, ["mapping the keys of 1 log"], id="cut, parts of the map merged in each run"),
        pytest.param(MAPPED_IN_RUNS, [], id="cut, mapped in each run"),
    ],
)
def test_a_clean_leaves_what_the_specification_leaves(engine: Engine, sizes: Sizes, jobs_before: Sequence[str]) -> None:
    history = a_history(engine.root)
    engine.sizes = sizes
    [outcome] = engine.rewrite([history.step])
    assert live_records(outcome) == history.expected
    tasks_said = [line.split(" in ")[0] for line in engine.said]
    assert tasks_said == [*jobs_before, "rewriting 1 log"]


def test_many_logs_of_both_kinds_are_rewritten_in_few_tasks_and_come_back_in_order(engine: Engine) -> None:
    histories = [a_history(engine.root, seed=number, partition=number) for number in range(12)]
    old = [Record(0, b"a", None, 1, delete_horizon_ms=5), Record(1, b"b", b"1", 1)]
    expiry = Clean(2, 2, topic="other").expiry(write_segments(engine.root / "other", old, 2))
    outcomes = engine.rewrite([histories[0].step, expiry, *(history.step for history in histories[1:])])
    assert live_records(outcomes.pop(1)) == old[1:]
    assert [live_records(outcome) for outcome in outcomes] == [history.expected for history in histories]
    assert engine.said == ["rewriting 13 logs in 2 tasks"]


def test_segments_in_which_nothing_changes_stay_as_they_are(engine: Engine) -> None:
    folder = engine.root / TOPIC / "partition=0"
    clean = [Record(offset, b"key-%d" % offset, b"v", 1) for offset in range(1000)]
    dirty = [Record(1000 + number, b"key-%d" % (990 + number), b"w", 1) for number in range(10)]
    clean_segments, dirty_segments = write_segments(folder, clean, 100), write_segments(folder, dirty, 10)
    step = Clean(1000, 1010, segment_bytes=clean_segments[0].size_bytes).step(clean_segments + dirty_segments)
    before = engine.paths()
    [outcome] = engine.rewrite([step])
    assert outcome.removed == (clean_segments[-1], *dirty_segments)
    assert engine.paths() - before == {segment.path for segment in outcome.added}
    assert live_segments(outcome)[:9] == clean_segments[:9]
    assert outcome.counts == Counts(kept=1000, superseded=10)


def test_outputs_roll_at_the_size_of_a_segment(engine: Engine) -> None:
    count = ROW_GROUP_ROWS * 3 // 2
    superseded = [offset for offset in range(count) if offset % 50 == 0]  # some of every segment
    keys = [offset + 1 if offset % 50 == 0 else offset for offset in range(count)]
    records = [Record(offset, b"%d" % key, b"", 1) for offset, key in enumerate(keys)]
    step = Clean(0, count, segment_bytes=1).step(write_segments(engine.root / TOPIC, records, 50_000))
    [outcome] = engine.rewrite([step])
    kept = count - len(superseded)
    assert outcome.counts == Counts(kept=kept, superseded=len(superseded))
    assert [segment.record_count for segment in outcome.added] == [ROW_GROUP_ROWS, kept - ROW_GROUP_ROWS]


def test_large_values_make_small_row_groups(engine: Engine) -> None:
    dice = random.Random(5)
    records = [Record(offset, b"%d" % (offset % 70), dice.randbytes(MEBIBYTE), 1) for offset in range(90)]
    step = Clean(0, 90).step(write_segments(engine.root / TOPIC, records, 30))
    [outcome] = engine.rewrite([step])
    [segment] = outcome.added
    metadata = pq.ParquetFile(segment.path).metadata
    row_groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    assert sum(row_group.num_rows for row_group in row_groups) == 70
    assert max(row_group.total_byte_size for row_group in row_groups) < 2 * ROW_GROUP_BYTES


@pytest.mark.parametrize("sizes", [Sizes(), CUT], ids=["in one task", "cut"])
def test_a_task_that_fails_and_is_tried_again_leaves_nothing_behind(
    engine: Engine, tmp_path: Path, sizes: Sizes
) -> None:
    history = a_history(engine.root)
    engine.sizes = sizes
    engine.files = FailingFiles(journal=str(tmp_path / "failed"), failures=2)
    before = engine.paths()
    [outcome] = engine.rewrite([history.step])
    assert live_records(outcome) == history.expected
    assert engine.paths() - before == {segment.path for segment in outcome.added}
    assert len(list(tmp_path.glob("failed.*"))) == 2


def test_a_run_started_again_under_its_id_meets_no_file_of_its_own(engine: Engine) -> None:
    history = a_history(engine.root)
    [first], [second] = engine.rewrite([history.step], "same"), engine.rewrite([history.step], "same")
    assert not {segment.path for segment in first.added} & {segment.path for segment in second.added}
    assert live_records(first) == live_records(second) == history.expected


def test_a_storage_that_keeps_failing_is_told_in_one_line(engine: Engine, tmp_path: Path) -> None:
    engine.files = FailingFiles(journal=str(tmp_path / "failed"), failures=99)
    with pytest.raises(StorageUnavailable) as raised:
        engine.rewrite([a_history(engine.root).step])
    assert str(raised.value) == (
        "Spark failed while rewriting 1 log: ConnectionError: the storage went away; nothing was committed, try again"
    )
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("sizes", [Sizes(), CUT], ids=["in one task", "cut"])
def test_an_input_that_was_purged_makes_the_plan_stale(engine: Engine, sizes: Sizes) -> None:
    history = a_history(engine.root)
    engine.sizes = sizes
    Path(history.step.segments[-1].path).unlink()
    with pytest.raises(StalePlan, match=rf"{TOPIC}-0: segment .* is gone from storage since"):
        engine.rewrite([history.step])
    assert engine.paths(".arrow") == set()


def test_offset_maps_are_gone_after_the_clean(engine: Engine) -> None:
    engine.sizes = CUT
    engine.rewrite([a_history(engine.root).step])
    assert engine.paths(".arrow") == set()


def test_no_job_has_a_shuffle(engine: Engine) -> None:
    engine.sizes = CUT
    context = engine.spark.sparkContext
    context.setJobGroup("one clean", "")
    engine.rewrite([a_history(engine.root).step])
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getJobIdsForGroup("one clean")]
    assert len(jobs) == 3
    assert all(job is not None and len(job.stageIds) == 1 for job in jobs)


def test_nothing_to_do_starts_no_session(tmp_path: Path) -> None:
    def no_session() -> SparkSession:
        raise AssertionError("a session was asked for")

    assert spark_engine(no_session, LocalFiles()).rewrite([], {}, "run") == []


def a_version(record: Record) -> Record:
    """The record with a version in its header, some of them late, and some malformed."""
    version = record.offset ^ 7 if record.offset % 11 else None
    return replace(record, headers=(("v", struct.pack(">q", version) if version else b"none"),))


@pytest.mark.parametrize(
    ("sizes", "jobs"),
    [
        pytest.param(Sizes(), ["rewriting"], id="in one task"),
        pytest.param(
            replace(CUT, watermarks_without_job_bytes=0),
            ["mapping the keys", "merging the maps", "comparing the versions", "rewriting", "storing the watermarks"],
            id="cut",
        ),
        pytest.param(MAPPED_IN_RUNS, ["comparing the versions", "rewriting"], id="cut, few dirty records"),
    ],
)
def test_by_header_the_highest_version_stays_and_expired_tombstones_leave_watermarks(
    engine: Engine, sizes: Sizes, jobs: Sequence[str]
) -> None:
    engine.sizes = sizes
    history = a_history(engine.root)
    records = [a_version(record) for record in [*history.clean, *history.dirty]]
    segments = write_segments(engine.root / TOPIC / "by-header", records, 50)
    strategy = Strategy(StrategyKind.HEADER, "v")
    step = Clean(600, 1000, strategy=strategy, watermark_retention_ms=10**6).step(segments)
    [outcome] = engine.rewrite([step])
    expected = clean(step, [[r for r in records if s.base_offset <= r.offset <= s.last_offset] for s in segments])
    assert live_records(outcome) == list(expected.records)
    assert (outcome.counts, outcome.malformed) == (expected.counts, expected.malformed)
    assert outcome.malformed > 0
    assert outcome.watermarks_path
    assert outcome.watermarks_path.startswith(f"{engine.root / TOPIC}/watermarks/partition=0/marks-run-")
    with pa.OSFile(outcome.watermarks_path) as source:
        stored = pa.ipc.open_file(source).read_all().to_pylist()
    assert [Watermark(**row) for row in stored] == list(expected.watermarks)
    assert engine.paths(".arrow") == {outcome.watermarks_path}
    assert [line.split(" of ")[0].split(" 1 ")[0] for line in engine.said] == jobs


@dataclass(frozen=True)
class NoWatermarks(LocalFiles):
    """Can't store watermarks."""

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        if "/watermarks/" in path:
            raise OSError("the storage went away")
        with super().open_output(path) as sink:
            yield sink


def test_watermarks_that_can_not_be_stored_are_one_line_and_nothing_is_left_in_staging(engine: Engine) -> None:
    engine.files, engine.sizes = NoWatermarks(), MAPPED_IN_RUNS
    step = replace(a_history(engine.root).step, strategy=Strategy(StrategyKind.TIMESTAMP), watermark_retention_ms=10**6)
    with pytest.raises(StorageUnavailable, match=r"^storing watermarks: the storage went away; nothing was committed"):
        engine.rewrite([step])
    assert engine.paths(".arrow") == set()


@pytest.mark.parametrize("strategy", [Strategy(), Strategy(StrategyKind.TIMESTAMP)], ids=str)
def test_keys_beyond_the_map_are_shuffled_and_the_same_log_is_left(engine: Engine, strategy: Strategy) -> None:
    history = a_history(engine.root)
    unbounded = replace(history.step, strategy=strategy)
    shuffled = replace(unbounded, map_capacity=MapCapacity(20, MapOverflow.SHUFFLE))
    engine.sizes = replace(CUT, shuffled_part_records=300)
    [at_once] = engine.rewrite([unbounded], "at-once")
    engine.said.clear()
    [outcome] = engine.rewrite([shuffled], "shuffled")
    assert engine.said[0] == f"shuffling the keys of {TOPIC}-0 in {-(-history.records // 300)} parts"
    assert engine.said[1].startswith("rewriting 1 log")
    assert live_records(outcome) == live_records(at_once)
    assert (outcome.counts, outcome.map_keys) == (at_once.counts, at_once.map_keys)
    marks = [each.watermarks_path for each in (at_once, outcome) if each.watermarks_path]
    assert len(marks) == 2 * strategy.has_versions
    assert engine.paths(".arrow") == set(marks)
    tables = [read_any_watermarks(engine.files, path, TOPIC)[0] for path in marks]
    assert tables[:1] == tables[1:]
    assert all(each.num_rows for each in tables)


def test_a_shuffle_that_misses_an_input_makes_the_plan_stale(engine: Engine) -> None:
    step = replace(a_history(engine.root).step, map_capacity=MapCapacity(20, MapOverflow.SHUFFLE))
    Path(step.segments[0].path).unlink()
    with pytest.raises(StalePlan, match=rf"^{TOPIC}-0: segment .* is gone from storage since"):
        engine.rewrite([step])


def test_passes_that_end_where_their_map_is_full_leave_the_same_log(engine: Engine) -> None:
    history = a_history(engine.root)
    engine.sizes = CUT
    live, ends = list(history.step.segments), [600]
    while ends[-1] < 1000:
        step = replace(history.step, first_dirty_offset=ends[-1], segments=tuple(live), map_capacity=MapCapacity(80))
        [outcome] = engine.rewrite([step], f"pass-{len(ends)}")
        ends.append(outcome.step.end_offset)
        assert outcome.map_keys <= 80
        live = live_segments(outcome) + [segment for segment in live if segment not in outcome.step.segments]
    assert len(ends) > 3
    assert read(segment.path for segment in live) == history.expected
