"""The pass, whatever the source: what is read lands in one commit a topic, and what fails stops nobody else."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pytest

from keptlog.errors import CommitStateUnknown, InvalidConfig, InvariantViolated, LogCorrupt, StalePlan, UnknownTopic
from keptlog.home import wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.result import IngestResult
from keptlog.ingest.source import Survey
from keptlog.log.record import NewRecord
from keptlog.log.source import IngestPlan, StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.spark.jobs import spark_engine
from keptlog.table.commits.topics import Topic
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.directories import COMPACT, records_of, some_records
from tests.ingest.memory import MemoryPart, MemorySource
from tests.logs import open_store
from tests.strange import each_commit_fails


@dataclass(frozen=True)
class ForgetfulSource(MemorySource):
    """Leaves out parts of the topic ``a``."""

    kept: tuple[int, ...] = ()

    def cut(self, plans: Sequence[IngestPlan], cores: int) -> list[list[MemoryPart]]:
        cut = super().cut(plans, cores)
        return [
            [parts[number] for number in self.kept] if plan.topic == "a" else parts
            for plan, parts in zip(plans, cut, strict=True)
        ]


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    store = open_store(tmp_path)
    return Ingest(store, in_process_engine(store.files), wall_clock_ms)


def bring(ingest: Ingest, source: MemorySource, run_id: str = "run") -> IngestResult:
    return ingest.carry_out(ingest.plan(source), run_id)


def landed(result: IngestResult) -> dict[str, tuple[int, int]]:
    return {str(each.topic_partition): (each.range.from_offset, each.range.end_offset) for each in result.committed}


def test_what_is_read_is_there_with_its_offsets_and_a_new_topic_is_created(ingest: Ingest) -> None:
    result = bring(ingest, MemorySource({"a": (25, 0, 40)}, part_offsets=10))
    assert result.created == ("a",)
    assert not result.failed
    assert landed(result) == {"a-0": (0, 25), "a-1": (0, 0), "a-2": (0, 40)}
    assert [each.records for each in result.committed] == [25, 0, 40]
    assert len(result.committed[2].skipped) == 4
    assert [records_of(ingest.store, "a", n) for n in range(3)] == [some_records(0, 25), [], some_records(0, 40)]
    assert ingest.store.source_of("a").positions == (25, 0, 40)
    assert ingest.store.describe_topic("a").raw_config == COMPACT


def test_the_next_run_goes_on_where_this_one_ended_and_grows_the_topic(ingest: Ingest) -> None:
    bring(ingest, MemorySource({"a": (25,)}), "1")
    result = bring(ingest, MemorySource({"a": (30, 5)}), "2")
    assert (result.created, landed(result)) == ((), {"a-0": (25, 30), "a-1": (0, 5)})
    assert records_of(ingest.store, "a") == some_records(0, 30)


def test_a_part_that_fails_keeps_what_lies_behind_it_out_and_nothing_else(ingest: Ingest) -> None:
    there = MemorySource({"a": (40, 40), "b": (7,)}, part_offsets=10, broken_at={"a": 20})
    result = bring(ingest, there, "1")
    assert landed(result) == {"a-0": (0, 20), "a-1": (0, 40), "b-0": (0, 7)}
    assert [type(error) for error in result.failed.values()] == [LogCorrupt]
    assert list(result.failed) == ["a-0"]
    assert records_of(ingest.store, "a") == some_records(0, 20)
    repaired = bring(ingest, replace(there, broken_at={}), "2")
    assert landed(repaired) == {"a-0": (20, 40)}
    assert records_of(ingest.store, "a") == some_records(0, 40)


def test_a_topic_partition_of_which_nothing_could_be_read_is_left_as_if_never_seen(ingest: Ingest) -> None:
    result = bring(ingest, MemorySource({"a": (10, 10)}, broken_at={"a": 0}))
    assert landed(result) == {"a-1": (0, 10)}
    assert ingest.store.source_of("a").positions == (None, 10)


def test_what_must_not_be_read_is_named_and_the_rest_lands(ingest: Ingest) -> None:
    bring(ingest, MemorySource({"a": (10, 10)}), "1")
    result = bring(ingest, MemorySource({"a": (4, 20)}), "2")
    assert landed(result) == {"a-1": (10, 20)}
    assert "ends at offset 10 here and at 4" in str(result.failed["a-0"])


def test_of_two_runs_from_one_position_the_second_lands_nothing_and_loses_nothing(ingest: Ingest) -> None:
    first, second = ingest.plan(MemorySource({"a": (10,)})), ingest.plan(MemorySource({"a": (20,)}))
    ingest.carry_out(first, "1")
    result = ingest.carry_out(second, "2")
    assert isinstance(result.failed["a-0"], StalePlan)
    assert records_of(ingest.store, "a") == some_records(0, 10)


def test_another_run_that_lands_while_the_source_is_surveyed_makes_the_plan_stale_and_stops_nothing(
    ingest: Ingest,
) -> None:
    bring(ingest, MemorySource({"a": (10,)}), "1")

    class SlowSource(MemorySource):
        def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
            seen = super().survey(stored)
            bring(ingest, MemorySource({"a": (30,)}), "2")
            return seen

    plans = ingest.plan(SlowSource({"a": (20,)}))
    assert not plans.topics[0].plan.stopped
    assert isinstance(ingest.carry_out(plans, "3").failed["a-0"], StalePlan)
    assert records_of(ingest.store, "a") == some_records(0, 30)


def test_what_its_source_does_not_confirm_stays_out_alone(ingest: Ingest) -> None:
    result = bring(ingest, MemorySource({"a": (10, 10), "b": (10,)}, others=["a"]))
    assert landed(result) == {"b-0": (0, 10)}
    assert {name: type(error) for name, error in result.failed.items()} == {"a-0": StalePlan, "a-1": StalePlan}
    assert records_of(ingest.store, "a") == []


def test_what_was_lost_to_another_run_is_one_line_in_the_log(ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "keptlog.ingest")
    plans = ingest.plan(MemorySource({"a": (10, 10)}))
    ingest.carry_out(plans, "1")
    assert caplog.messages == []
    ingest.carry_out(plans, "2")
    [line] = caplog.messages
    assert line.startswith("what was read of a did not land: topic a changed since its source was read")


def test_a_commit_that_fails_fails_its_topic_alone(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    really = LogStore.ingest

    def unanswered_for_a(store: LogStore, topic: Topic, *rest: object) -> None:
        if topic.name == "a":
            raise CommitStateUnknown("the catalog did not say")
        really(store, topic, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LogStore, "ingest", unanswered_for_a)
    result = bring(ingest, MemorySource(dict.fromkeys("ab", (10, 10))))
    assert landed(result) == {"b-0": (0, 10), "b-1": (0, 10)}
    assert list(result.failed) == ["a-0", "a-1"]
    assert len(segment_files(ingest.store, "a")) == 2  # it may have landed


def test_what_did_not_land_leaves_no_file(ingest: Ingest) -> None:
    """Not what lies behind a part that breaks off, not what a source did not confirm, not what lost its race."""
    there = MemorySource({"a": (40, 10), "b": (10,)}, part_offsets=10, broken_at={"a": 20}, others=["b"])
    plans = ingest.plan(there)
    ingest.carry_out(plans, "1")
    assert {path.rpartition("/")[2][:20] for path in segment_files(ingest.store, "a")} == {f"{0:020}", f"{10:020}"}
    assert len(segment_files(ingest.store, "a")) == 3
    assert segment_files(ingest.store, "b") == []
    ingest.carry_out(plans, "2")
    assert len(segment_files(ingest.store, "a")) == 3


def segment_files(store: LogStore, topic: str) -> list[str]:
    return [file.path for file in store.files.list(store.data_location(topic))]


def test_a_topic_that_cannot_be_created_fails_alone(ingest: Ingest) -> None:
    there = MemorySource({"a": (10,), "b": (10,)}, configs={"a": {"retention.ms": "soon"}})
    result = bring(ingest, there)
    assert landed(result) == {"b-0": (0, 10)}
    assert "retention.ms" in str(result.failed["a"])


def test_a_commit_that_ends_in_an_error_that_nobody_has_thought_of_fails_alone(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(ingest, MemorySource({"a": (10,), "b": (10,)}), "1")
    each_commit_fails(monkeypatch, "a")
    result = bring(ingest, MemorySource({"a": (20,), "b": (20,)}), "2")
    assert landed(result) == {"b-0": (10, 20)}
    assert list(result.failed) == ["a-0"]
    assert "topic a: its commit stopped at IndexError" in str(result.failed["a-0"])


def test_a_topic_that_another_run_creates_at_that_moment_is_gone_on_with(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = LogStore.create_topic

    def twice(store: LogStore, name: str, partitions: int, config: dict[str, str]) -> Topic:
        really(store, name, partitions, config)
        return really(store, name, partitions, config)

    monkeypatch.setattr(LogStore, "create_topic", twice)
    result = bring(ingest, MemorySource({"a": (10,)}))
    assert (result.created, landed(result), result.failed) == ((), {"a-0": (0, 10)}, {})


@pytest.mark.parametrize("end", [10, 30])
def test_a_topic_that_was_deleted_since_it_was_planned_does_not_come_back(ingest: Ingest, end: int) -> None:
    """It came back empty, with the settings of a new one; if nothing was new there, its source was remembered too."""
    bring(ingest, MemorySource({"a": (10,)}), "1")
    planned = ingest.plan(MemorySource({"a": (end,), "b": (5,)}))
    ingest.store.delete_topic("a", wall_clock_ms())
    result = ingest.carry_out(planned, "2")
    assert isinstance(result.failed["a"], UnknownTopic)
    assert (result.created, landed(result), ingest.store.topics()) == (("b",), {"b-0": (0, 5)}, ["b"])


def test_a_topic_with_records_of_its_own_takes_none(ingest: Ingest) -> None:
    ingest.store.create_topic("a", 1, COMPACT)
    ingest.store.append("a", [NewRecord(b"k", b"v", 1)], "own", 1)
    plans = ingest.plan(MemorySource({"a": (10,), "b": (10,)}))
    assert isinstance(plans.failed["a"], InvalidConfig)
    assert "records of its own" in str(plans.failed["a"])
    assert landed(ingest.carry_out(plans, "run")) == {"b-0": (0, 10)}


def test_what_is_behind_is_told_of_all_topics_and_some_may_be_brought_alone(ingest: Ingest) -> None:
    there = MemorySource({"a": (10, 20), "b": (5,)})
    bring(ingest, replace(there, ends={"a": (4, 20)}), "1")
    lag = {str(name): offsets for name, offsets in ingest.plan(there).lag.items()}
    assert lag == {"a-0": 6, "a-1": 0, "b-0": 5}
    assert [str(name) for name in ingest.plan(there, ["a"]).lag] == ["a-0", "a-1"]
    some = ingest.plan(there).only([TopicPartition("a", 0)])
    assert landed(ingest.carry_out(some, "2")) == {"a-0": (4, 10)}


@pytest.mark.parametrize("kept", [(0, 1), (1, 2), (0, 2)])
def test_parts_that_leave_a_gap_are_refused_before_anything_happens_to_their_topic_and_cost_no_other(
    ingest: Ingest, kept: tuple[int, ...]
) -> None:
    result = bring(ingest, ForgetfulSource({"a": (30,), "b": (30,)}, part_offsets=10, kept=kept))
    assert list(result.failed) == ["a"]
    assert isinstance(result.failed["a"], InvariantViolated)
    assert "don't cover" in str(result.failed["a"])
    assert (ingest.store.topics(), landed(result)) == (["b"], {"b-0": (0, 30)})


def test_a_setting_that_is_left_out_is_said_once_for_all_topics(ingest: Ingest) -> None:
    """A default of the cluster is one of each of its topics."""
    plans = ingest.plan(MemorySource(dict.fromkeys("abcde", (1,))))
    everywhere = {"min.insync.replicas": "the storage replicates"}
    topics = tuple(
        replace(each, left_out=everywhere | ({"compression.type": "as here"} if each.plan.topic == "b" else {}))
        for each in plans.topics
    )
    assert replace(plans, topics=topics).left_out_lines == [
        "a, b, c and 2 more: min.insync.replicas is left out: the storage replicates",
        "b: compression.type is left out: as here",
    ]


def test_without_anything_to_read_no_session_is_started(ingest: Ingest) -> None:
    def no_session() -> NoReturn:
        raise AssertionError("nothing is to be read")

    bring(ingest, MemorySource({"a": (10,)}), "1")
    idle = Ingest(ingest.store, spark_engine(no_session, ingest.store.files), wall_clock_ms)
    assert bring(idle, MemorySource({"a": (10,)}), "2").committed == ()


def test_a_spark_that_cannot_start_leaves_no_topic_behind(ingest: Ingest) -> None:
    def no_java() -> NoReturn:
        raise InvalidConfig("install Java")

    helpless = Ingest(ingest.store, spark_engine(no_java, ingest.store.files), wall_clock_ms)
    with pytest.raises(InvalidConfig, match="install Java"):
        bring(helpless, MemorySource({"a": (10,)}))
    assert ingest.store.topics() == []
