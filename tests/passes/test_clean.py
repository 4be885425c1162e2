"""A pass over several logs: what fails is named and remembered, everything else lands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from keptlog.engine.jobs import Result, Task
from keptlog.errors import (
    CommitStateUnknown,
    InvalidConfig,
    KeptlogError,
    SparkUnavailable,
    StalePlan,
    StorageUnavailable,
)
from keptlog.home import new_id
from keptlog.log.broker import BrokerConfig
from keptlog.log.record import NewRecord
from keptlog.log.steps import Compact, Expire
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.names import named_logs
from keptlog.progress import Progress
from keptlog.spark.jobs import spark_engine
from keptlog.table.store import LogStore
from tests.in_process import InProcessJobs, in_process_engine
from tests.passes.conftest import DAY_MS, NOW_MS


@pytest.fixture
def cleaner(store: LogStore) -> Cleaner:
    """The clock of durations goes on by 5 ms a look."""
    ticks = iter(range(0, 1_000_000, 5))
    return Cleaner(store, in_process_engine(store.files), BrokerConfig(), lambda: next(ticks))


def break_segment(store: LogStore, topic: str) -> None:
    Path(store.logs(topic)[0].segments[0].path.removeprefix("file://")).write_bytes(b"this is no Parquet file")


def cleaned_topics(done: Pass) -> list[str]:
    return [outcome.step.topic_partition.topic for outcome in done.committed]


def marked(store: LogStore) -> list[str]:
    return [str(log.topic_partition) for log in named_logs(store).logs if log.uncleanable]


def run(cleaner: Cleaner, *names: str) -> Pass:
    return cleaner.commit(cleaner.stage(cleaner.begin(names, new_id(), now_ms=NOW_MS, requested=bool(names))))


def test_a_broken_log_is_marked_and_all_others_are_cleaned(cleaner: Cleaner) -> None:
    break_segment(cleaner.store, "b")
    done = run(cleaner)
    assert cleaned_topics(done) == ["a", "c"]
    assert list(done.failed) == ["b-0"]
    assert marked(cleaner.store) == ["b-0"]
    assert cleaner.plan(now_ms=NOW_MS).steps == ()
    assert [str(step.topic_partition) for step in cleaner.plan(["b"], now_ms=NOW_MS, requested=True).steps] == ["b-0"]


def test_the_back_off_is_that_of_the_broker_settings_and_begins_when_the_clean_ended(cleaner: Cleaner) -> None:
    break_segment(cleaner.store, "b")
    done = run(cleaner, "b")
    mark = cleaner.store.logs("b")[0].uncleanable
    assert mark
    assert done.duration_ms > 0
    assert mark.retry_at_ms == NOW_MS + done.duration_ms + 15_000


def test_what_a_clean_cost_is_stored_with_each_log(cleaner: Cleaner) -> None:
    done = run(cleaner)
    last = cleaner.store.observe("a").last_passes[TopicPartition("a", 0)]
    assert (last.duration_ms, last.ended_ms) == (done.duration_ms, NOW_MS + done.duration_ms)
    assert (last.map_keys, last.map_slots) == (1, 134_217_728 // 24)
    assert last.bytes_read > 0 < last.bytes_written


@pytest.mark.parametrize("before_rewrite", [True, False])
def test_a_topic_that_is_deleted_during_a_clean_aborts_its_logs_alone(cleaner: Cleaner, before_rewrite: bool) -> None:
    planned = cleaner.begin([], new_id(), now_ms=NOW_MS)
    staged = planned if before_rewrite else cleaner.stage(planned)
    cleaner.store.delete_topic("b", NOW_MS)
    done = cleaner.commit(cleaner.stage(staged) if before_rewrite else staged)
    assert cleaned_topics(done) == ["a", "c"]
    assert isinstance(done.failed["b-0"], StalePlan)
    assert "deleted" in str(done.failed["b-0"])


def test_a_topic_that_is_altered_during_a_clean_aborts_its_logs_alone_and_marks_none(cleaner: Cleaner) -> None:
    staged = cleaner.stage(cleaner.begin([], new_id(), now_ms=NOW_MS))
    cleaner.store.alter_topic("b", {"cleanup.policy": "delete"})
    done = cleaner.commit(staged)
    assert cleaned_topics(done) == ["a", "c"]
    assert isinstance(done.failed["b-0"], StalePlan)
    assert marked(cleaner.store) == []


def test_a_commit_without_an_answer_marks_nothing(cleaner: Cleaner, monkeypatch: pytest.MonkeyPatch) -> None:
    def unanswered(*_: object) -> NoReturn:
        raise CommitStateUnknown("the catalog did not say")

    monkeypatch.setattr(LogStore, "swap", unanswered)
    assert len(run(cleaner).failed) == 3
    assert marked(cleaner.store) == []


def test_a_spark_that_cannot_start_is_no_logs_fault(cleaner: Cleaner) -> None:
    def no_java() -> NoReturn:
        raise InvalidConfig("install Java")

    helpless = Cleaner(cleaner.store, spark_engine(no_java, cleaner.store.files))
    with pytest.raises(InvalidConfig, match="install Java"):
        run(helpless)
    assert marked(cleaner.store) == []


def test_the_offset_map_is_as_large_as_the_broker_settings_say(cleaner: Cleaner) -> None:
    broker = BrokerConfig.of({"log.cleaner.dedupe.buffer.size": "2097152", "keptlog.offset.map.overflow": "shuffle"})
    [step] = Cleaner(cleaner.store, cleaner.engine, broker).plan(["a"], now_ms=NOW_MS, requested=True).steps
    assert isinstance(step, Compact)
    assert (step.map_capacity.max_keys, str(step.map_capacity.overflow)) == (int(2097152 // 24 * 0.9), "shuffle")


def test_a_disabled_cleaner_leaves_all_logs_alone_and_says_why(cleaner: Cleaner) -> None:
    disabled = Cleaner(cleaner.store, cleaner.engine, BrokerConfig.of({"log.cleaner.enable": "false"}))
    plan = disabled.plan(["a"], now_ms=NOW_MS, requested=True)
    assert plan.steps == ()
    assert "log.cleaner.enable=false" in plan.left_alone["a-0"]


@dataclass
class Outage:
    """Something that all tasks need and that is gone, from a number of jobs on, for a number of jobs."""

    begins_with_job: int = 0
    lasts_for_jobs: int = 1_000
    jobs_asked_for: int = 0

    @property
    def is_now(self) -> bool:
        return self.begins_with_job <= self.jobs_asked_for - 1 < self.begins_with_job + self.lasts_for_jobs


_CRASHED = StorageUnavailable("Spark failed while rewriting: Python worker exited unexpectedly (crashed)")


@dataclass(frozen=True)
class FailingJobs(InProcessJobs):
    """Jobs that fail as a lost Spark does: all of them during an outage, those with a killer's segments at any time."""

    outage: Outage | None = None
    killers: frozenset[str] = frozenset()
    error: KeptlogError = _CRASHED

    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        if self.outage:
            self.outage.jobs_asked_for += 1
        if (self.outage and self.outage.is_now) or any(f"/{topic}/" in repr(tasks) for topic in self.killers):
            raise self.error
        return super().run(tasks, doing)


def failing(
    cleaner: Cleaner, outage: Outage | None = None, killers: Iterable[str] = (), error: KeptlogError = _CRASHED
) -> Cleaner:
    really = cleaner.engine.start_jobs

    def start(run_id: str, progress: Progress) -> FailingJobs:
        jobs = really(run_id, progress)
        assert isinstance(jobs, InProcessJobs)
        of_the_jobs = (jobs.files, jobs.run_id, jobs.progress, jobs.application, jobs.cores)
        return FailingJobs(*of_the_jobs, outage, frozenset(killers), error)

    return replace(cleaner, engine=replace(cleaner.engine, start_jobs=start))


def test_an_outage_of_spark_in_the_middle_marks_no_log_and_says_what_is_down(cleaner: Cleaner) -> None:
    done = run(failing(cleaner, Outage()))
    assert done.blameless == done.failed.keys() == {"a-0", "b-0", "c-0"}
    assert "Spark failed" in str(done.outage)
    assert marked(cleaner.store) == []
    assert cleaned_topics(run(cleaner)) == ["a", "b", "c"]


def test_an_outage_costs_one_look_and_is_not_tried_log_by_log(cleaner: Cleaner) -> None:
    outage = Outage()
    run(failing(cleaner, outage))
    assert outage.jobs_asked_for == 2


@pytest.mark.parametrize("names", [(), ("b",)])
def test_an_outage_that_has_just_ended_costs_nothing(cleaner: Cleaner, names: tuple[str, ...]) -> None:
    done = run(failing(cleaner, Outage(lasts_for_jobs=1)), *names)
    assert (done.failed, cleaned_topics(done)) == ({}, list(names) or ["a", "b", "c"])


@pytest.mark.parametrize("names", [(), ("b",)], ids=["among others", "alone"])
def test_a_log_that_kills_its_worker_each_time_is_marked(cleaner: Cleaner, names: tuple[str, ...]) -> None:
    done = run(failing(cleaner, killers=["b"]), *names)
    assert list(done.failed) == ["b-0"]
    assert done.blameless == set()
    assert marked(cleaner.store) == ["b-0"]
    assert cleaned_topics(done) == ([] if names else ["a", "c"])


def test_a_log_whose_executors_are_lost_each_time_is_not_marked_and_stops_no_other(cleaner: Cleaner) -> None:
    lost = SparkUnavailable("Spark was lost while rewriting: ExecutorLostFailure")
    done = run(failing(cleaner, killers=["b"], error=lost))
    assert done.failed == {"b-0": lost}
    assert done.blameless == {"b-0"}
    assert marked(cleaner.store) == []
    assert cleaned_topics(done) == ["a", "c"]


def test_a_log_whose_executors_are_lost_in_one_stage_does_not_stop_the_next_one(cleaner: Cleaner) -> None:
    cleaner.store.alter_topic("b", {"delete.retention.ms": "1"})
    cleaner.store.append("b", [NewRecord(b"k", None, NOW_MS - 8 * DAY_MS, 0)], new_id(), NOW_MS)
    assert run(cleaner, "b").committed
    planned = cleaner.begin([], new_id(), now_ms=NOW_MS + DAY_MS)
    lost = SparkUnavailable("Spark was lost while rewriting: ExecutorLostFailure")
    compacted = failing(cleaner, killers=["a"], error=lost).stage(planned, [Compact])
    assert compacted.blameless == {"a-0"}
    assert compacted.outage is None
    done = cleaner.commit(cleaner.stage(compacted, [Expire]))
    assert cleaned_topics(done) == ["b", "c"]
    assert done.failed == {"a-0": done.stopped_by} == {"a-0": lost}
    assert marked(cleaner.store) == []


def test_a_module_that_workers_lack_costs_one_job_and_marks_no_log(cleaner: Cleaner) -> None:
    outage = Outage()
    done = run(failing(cleaner, outage, error=InvalidConfig("Spark's workers have no module 'pyiceberg'")))
    assert done.blameless == done.failed.keys() == {"a-0", "b-0", "c-0"}
    assert outage.jobs_asked_for == 1
    assert marked(cleaner.store) == []


def test_where_all_of_several_logs_fail_without_a_reason_of_their_own_none_is_marked(cleaner: Cleaner) -> None:
    done = run(failing(cleaner, killers=["a", "b", "c"]))
    assert done.blameless == {"a-0", "b-0", "c-0"}
    assert marked(cleaner.store) == []


def test_what_was_staged_before_an_outage_lands(cleaner: Cleaner) -> None:
    cleaner.store.alter_topic("b", {"delete.retention.ms": "1"})
    cleaner.store.append("b", [NewRecord(b"k", None, NOW_MS - 8 * DAY_MS, 0)], new_id(), NOW_MS)
    assert run(cleaner, "b").committed
    later_ms = NOW_MS + DAY_MS
    planned = cleaner.begin([], new_id(), now_ms=later_ms)
    assert {type(step) for step in planned.plan.steps} == {Compact, Expire}
    compacted = cleaner.stage(planned, [Compact])
    done = cleaner.commit(failing(cleaner, Outage()).stage(compacted, [Expire]))
    assert cleaned_topics(done) == ["a", "c"]
    assert done.blameless == {"b-0"}
    assert marked(cleaner.store) == []


def test_a_catalog_that_does_not_take_a_commit_is_no_logs_fault(
    cleaner: Cleaner, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, refused = LogStore.swap, {"a", "b", "c"}

    def swap(store: LogStore, topic: str, *arguments: Any) -> None:
        if topic in refused:
            raise StorageUnavailable("database is locked")
        really(store, topic, *arguments)

    monkeypatch.setattr(LogStore, "swap", swap)
    stopped = run(cleaner)
    assert stopped.blameless == {"a-0", "b-0", "c-0"}
    assert str(stopped.outage) == "database is locked"
    assert marked(cleaner.store) == []
    refused -= {"a", "c"}
    done = run(cleaner)
    assert done.outage is None
    assert (list(done.failed), list(done.blameless)) == (["b-0"], [])
    assert marked(cleaner.store) == ["b-0"]
