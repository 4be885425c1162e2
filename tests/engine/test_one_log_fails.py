"""One log of many that fails costs no other, in whatever job it fails, and leaves nothing on the disk."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from keptlog.engine.engine import Engine
from keptlog.engine.tasks import Sizes
from keptlog.errors import Action, KeptlogError, LogCorrupt, StalePlan, StorageUnavailable
from keptlog.log.offset_map import MapCapacity, MapOverflow
from keptlog.log.record import Record
from keptlog.log.result import RewriteResult, verify
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy, StrategyKind
from tests.building import Clean
from tests.engine.test_lost_jobs import LostAt
from tests.in_process import SMALL_CUTS, InProcessJobs, in_process_engine
from tests.local_log import LocalFiles, live_records, write_segments

TOPICS = "abcde"
BY_TIME = Strategy(StrategyKind.TIMESTAMP)
IN_A_JOB = replace(SMALL_CUTS, watermarks_without_job_bytes=0)
WITHOUT_JOB = replace(SMALL_CUTS, watermarks_without_job_bytes=2**20)
WAYS = {
    "whole": (Sizes(), Strategy(), MapOverflow.STOP),
    "mapped apart": (SMALL_CUTS, Strategy(), MapOverflow.STOP),
    "mapped in runs": (replace(SMALL_CUTS, mapped_in_runs_records=10**6), Strategy(), MapOverflow.STOP),
    "whole, with versions": (Sizes(), BY_TIME, MapOverflow.STOP),
    "compared": (SMALL_CUTS, BY_TIME, MapOverflow.STOP),
    "watermarks in a job": (IN_A_JOB, BY_TIME, MapOverflow.STOP),
    "watermarks without a job": (WITHOUT_JOB, BY_TIME, MapOverflow.STOP),
    "shuffled": (SMALL_CUTS, Strategy(), MapOverflow.SHUFFLE),
}


def a_step(folder: Path, topic: str, strategy: Strategy, overflow: MapOverflow) -> Compact:
    records = [Record(offset, b"%d" % offset, None, 1, delete_horizon_ms=5) for offset in range(6)]
    records += [Record(6 + offset, b"%d" % (offset % 6), b"1", 2) for offset in range(12)]
    settings = Clean(6, 18, strategy=strategy, watermark_retention_ms=10**6, topic=topic)
    if overflow is MapOverflow.SHUFFLE:
        settings = replace(settings, map_capacity=MapCapacity(2, overflow))
    return settings.step(write_segments(folder / topic, records, 3))


def locations(folder: Path) -> dict[str, str]:
    return {topic: str(folder / topic) for topic in TOPICS}


def left_beside(folder: Path, outcomes: Sequence[RewriteResult | KeptlogError]) -> list[str]:
    """Files that neither were there before nor belong to an outcome."""
    known = {path for each in outcomes if isinstance(each, RewriteResult) for path in each.staged_paths}
    files = [str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith("in-")]
    return [path for path in files if path not in known]


def broken(segment: str, *, is_gone: bool) -> None:
    Path(segment).unlink() if is_gone else Path(segment).write_bytes(b"this is no Parquet file")


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "damaged"])
@pytest.mark.parametrize("segment", [0, 1, 3, 5])
@pytest.mark.parametrize("way", WAYS)
def test_a_segment_that_is_broken_fails_its_log_alone(tmp_path: Path, way: str, segment: int, is_gone: bool) -> None:
    sizes, strategy, overflow = WAYS[way]
    steps = [a_step(tmp_path, topic, strategy, overflow) for topic in TOPICS]
    broken(steps[2].segments[segment].path, is_gone=is_gone)
    outcomes = in_process_engine(LocalFiles(), sizes).rewrite_each(steps, locations(tmp_path), "run")
    if isinstance(outcomes[2], RewriteResult):
        # Where nothing of it had to be read nobody has seen it.
        assert steps[2].segments[segment] not in outcomes[2].removed
    else:
        assert isinstance(outcomes[2], StalePlan if is_gone else LogCorrupt)
    for outcome in [*outcomes[:2], *outcomes[3:]]:
        assert isinstance(outcome, RewriteResult)
        verify(outcome)
        assert [record.offset for record in live_records(outcome)][-6:] == [12, 13, 14, 15, 16, 17]
    assert left_beside(tmp_path, outcomes) == []


@pytest.mark.parametrize("way", WAYS)
def test_who_wants_all_logs_or_none_gets_the_error_and_nothing_is_left(tmp_path: Path, way: str) -> None:
    sizes, strategy, overflow = WAYS[way]
    steps = [a_step(tmp_path, topic, strategy, overflow) for topic in TOPICS]
    broken(steps[2].segments[5].path, is_gone=True)
    with pytest.raises(StalePlan, match="c-0"):
        in_process_engine(LocalFiles(), sizes).rewrite(steps, locations(tmp_path), "run")
    assert left_beside(tmp_path, []) == []


@dataclass(frozen=True)
class NoRoomFor(LocalFiles):
    """A disk that is full when files with this in their path are closed."""

    part: str = ""
    error: type[OSError] | None = None

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with super().open_output(path) as sink:
            yield sink
        if self.part in path:
            Path(path).unlink()
            if self.error:
                raise self.error("the storage went away")
            raise OSError(errno.ENOSPC, "No space left on device", path)


@pytest.mark.parametrize("part", ["/c/partition=", "/c/watermarks/"])
@pytest.mark.parametrize("way", ["whole, with versions", "compared", "watermarks in a job", "watermarks without a job"])
def test_a_log_for_which_a_disk_has_no_room_leaves_nothing_and_costs_no_other(
    tmp_path: Path, way: str, part: str
) -> None:
    sizes, strategy, overflow = WAYS[way]
    steps = [with_expired(tmp_path, topic, strategy, overflow) for topic in TOPICS]
    outcomes = in_process_engine(NoRoomFor(part=part), sizes).rewrite_each(steps, locations(tmp_path), "run")
    assert [isinstance(each, RewriteResult) for each in outcomes] == [True, True, False, True, True]
    assert isinstance(outcomes[2], StorageUnavailable)
    assert outcomes[2].action is Action.FIX_STORAGE
    assert left_beside(tmp_path, outcomes) == []


@dataclass(frozen=True)
class NoRightFor(LocalFiles):
    """A disk on which this user may not read files with this in their path."""

    part: str = ""

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        if self.part in path:
            # As Arrow says it.
            raise PermissionError(errno.EACCES, f"Failed to open local file '{path}'. Detail: Permission denied")
        return super().open_input(path, size_bytes)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "shuffled"])  # a job for all logs ends with it
def test_a_log_that_this_user_may_not_read_costs_no_other_and_is_not_to_be_tried_again(
    tmp_path: Path, way: str
) -> None:
    """All logs of the job failed with it, each four times, and a program was told to try again."""
    sizes, strategy, overflow = WAYS[way]
    steps = [a_step(tmp_path, topic, strategy, overflow) for topic in TOPICS]
    shut = steps[2].segments[5].path
    outcomes = in_process_engine(NoRightFor(part=shut), sizes).rewrite_each(steps, locations(tmp_path), "run")
    assert [isinstance(each, RewriteResult) for each in outcomes] == [True, True, False, True, True]
    told = outcomes[2]
    assert isinstance(told, StorageUnavailable)
    assert told.action is Action.FIX_STORAGE
    assert f"may not: Failed to open local file '{shut}'. Detail: Permission denied; nothing was committed" in str(told)
    assert left_beside(tmp_path, outcomes) == []


def with_expired(folder: Path, topic: str, strategy: Strategy, overflow: MapOverflow) -> Compact:
    """A step that leaves watermarks: a tombstone goes by its horizon."""
    records = [Record(0, b"gone", None, 1, delete_horizon_ms=5)]
    records += [Record(1 + offset, b"%d" % (offset % 6), b"1", 2) for offset in range(17)]
    settings = Clean(6, 18, strategy=strategy, watermark_retention_ms=10**6, topic=topic)
    assert overflow is MapOverflow.STOP
    return settings.step(write_segments(folder / topic, records, 3))


def test_of_a_rewrite_whose_last_job_is_lost_nothing_is_left(tmp_path: Path) -> None:
    steps = [with_expired(tmp_path, topic, BY_TIME, MapOverflow.STOP) for topic in TOPICS]

    def start(run_id: str, told: object) -> LostAt:
        return LostAt(LocalFiles(), run_id, print, "local", doing="storing the watermarks")

    with pytest.raises(ConnectionRefusedError):
        Engine(start, LocalFiles(), IN_A_JOB).rewrite_each(steps, locations(tmp_path), "run")
    assert left_beside(tmp_path, []) == []


def test_a_task_that_dies_of_something_unknown_leaves_nothing_of_the_logs_before(tmp_path: Path) -> None:
    steps = [a_step(tmp_path, topic, Strategy(), MapOverflow.STOP) for topic in TOPICS]
    files = NoRoomFor(part="/e/partition=", error=ConnectionResetError)
    in_one_task = replace(Sizes(), bundles_per_core=1)

    def start(run_id: str, told: object) -> InProcessJobs:
        return InProcessJobs(files, run_id, print, "local", cores=1)

    with pytest.raises(StorageUnavailable, match="went away"):
        Engine(start, files, in_one_task).rewrite_each(steps, locations(tmp_path), "run")
    assert left_beside(tmp_path, []) == []
