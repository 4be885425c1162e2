"""A pass over several logs: what fails is named and remembered, everything else lands."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from keptlog.errors import CommitStateUnknown, InvalidConfig, StalePlan
from keptlog.home import new_id
from keptlog.log.broker import BrokerConfig
from keptlog.log.steps import Compact
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.names import named_logs
from keptlog.spark.jobs import spark_engine
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.passes.conftest import NOW_MS


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
    cleaner.store.delete_topic("b")
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
