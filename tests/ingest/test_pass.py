"""The pass, whatever the source: what is read lands in one commit a topic, and what fails stops nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

from keptlog.engine.ingest_tasks import Skip
from keptlog.errors import CommitStateUnknown, InvalidConfig, InvariantViolated, LogCorrupt, StalePlan
from keptlog.ingest.ingest_pass import Ingest, IngestResult, TopicIngest
from keptlog.log.record import NewRecord, Record
from keptlog.log.source import SourceIdentity, SourceLog, SourceTopic
from keptlog.log.topic_partition import TopicPartition
from keptlog.spark.jobs import spark_engine
from keptlog.storage.schema import to_arrow
from keptlog.table.store import LogStore
from keptlog.table.topics import Topic
from tests.in_process import in_process_engine
from tests.ingest.directories import COMPACT, records_of, some_records
from tests.logs import open_store


@dataclass(frozen=True)
class MemoryPart:
    """Offsets of which each has a record."""

    topic_partition: TopicPartition
    from_offset: int
    end_offset: int
    is_broken: bool = False

    @property
    def weight(self) -> int:
        return self.end_offset - self.from_offset

    @property
    def records(self) -> list[Record]:
        return some_records(self.from_offset, self.weight)

    def read(self, skip: Skip) -> Iterator[pa.Table]:
        skip(f"something before {self.end_offset}")
        yield to_arrow(self.topic_partition.partition, self.records[: self.weight // 2])
        if self.is_broken:
            raise LogCorrupt(f"{self.topic_partition} breaks off")
        yield to_arrow(self.topic_partition.partition, self.records[self.weight // 2 :])


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    store = open_store(tmp_path)
    return Ingest(store, in_process_engine(store.files))


def topic_there(topic: str, *ends: int) -> SourceTopic:
    return SourceTopic(
        SourceIdentity(topic, f"id-of-{topic}"), tuple(SourceLog(n, 0, end) for n, end in enumerate(ends))
    )


def work(ingest: Ingest, there: SourceTopic, part_offsets: int = 1000, broken_at: int | None = None) -> TopicIngest:
    """What there is to do, in parts of so many offsets; partition 0 is broken in the part with an offset."""
    topic = there.source.topic
    plan = ingest.plan(topic, there)
    parts = [
        MemoryPart(
            TopicPartition(topic, each.partition),
            start,
            end := min(start + part_offsets, each.end_offset),
            is_broken=each.partition == 0 and broken_at is not None and start <= broken_at < end,
        )
        for each in plan.ranges
        for start in range(each.from_offset, each.end_offset, part_offsets)
    ]
    return TopicIngest(plan, tuple(parts), COMPACT)


def landed(result: IngestResult) -> dict[str, tuple[int, int]]:
    return {str(each.topic_partition): (each.range.from_offset, each.range.end_offset) for each in result.committed}


def test_what_is_read_is_there_with_its_offsets_and_a_new_topic_is_created(ingest: Ingest) -> None:
    result = ingest.run([work(ingest, topic_there("a", 25, 0, 40), part_offsets=10)], "run")
    assert result.created == ("a",)
    assert not result.failed
    assert landed(result) == {"a-0": (0, 25), "a-1": (0, 0), "a-2": (0, 40)}
    assert [each.records for each in result.committed] == [25, 0, 40]
    assert len(result.committed[2].skipped) == 4
    assert [records_of(ingest.store, "a", n) for n in range(3)] == [some_records(0, 25), [], some_records(0, 40)]
    assert ingest.store.source_of("a").positions == (25, 0, 40)
    assert ingest.store.describe_topic("a").raw_config == COMPACT


def test_the_next_run_goes_on_where_this_one_ended_and_grows_the_topic(ingest: Ingest) -> None:
    ingest.run([work(ingest, topic_there("a", 25))], "1")
    result = ingest.run([work(ingest, topic_there("a", 30, 5))], "2")
    assert (result.created, landed(result)) == ((), {"a-0": (25, 30), "a-1": (0, 5)})
    assert records_of(ingest.store, "a") == some_records(0, 30)


def test_a_part_that_fails_keeps_what_lies_behind_it_out_and_nothing_else(ingest: Ingest) -> None:
    broken = work(ingest, topic_there("a", 40, 40), part_offsets=10, broken_at=20)
    result = ingest.run([broken, work(ingest, topic_there("b", 7))], "1")
    assert landed(result) == {"a-0": (0, 20), "a-1": (0, 40), "b-0": (0, 7)}
    assert [type(error) for error in result.failed.values()] == [LogCorrupt]
    assert list(result.failed) == ["a-0"]
    assert records_of(ingest.store, "a") == some_records(0, 20)
    repaired = ingest.run([work(ingest, topic_there("a", 40, 40))], "2")
    assert landed(repaired) == {"a-0": (20, 40)}
    assert records_of(ingest.store, "a") == some_records(0, 40)


def test_a_topic_partition_of_which_nothing_could_be_read_is_left_as_if_never_seen(ingest: Ingest) -> None:
    result = ingest.run([work(ingest, topic_there("a", 10, 10), broken_at=0)], "1")
    assert landed(result) == {"a-1": (0, 10)}
    assert ingest.store.source_of("a").positions == (None, 10)


def test_what_must_not_be_read_is_named_and_the_rest_lands(ingest: Ingest) -> None:
    ingest.run([work(ingest, topic_there("a", 10, 10))], "1")
    result = ingest.run([work(ingest, topic_there("a", 4, 20))], "2")
    assert landed(result) == {"a-1": (10, 20)}
    assert "ends at offset 10 here and at 4" in str(result.failed["a-0"])


def test_of_two_runs_from_one_position_the_second_lands_nothing_and_loses_nothing(ingest: Ingest) -> None:
    first, second = work(ingest, topic_there("a", 10)), work(ingest, topic_there("a", 20))
    ingest.run([first], "1")
    result = ingest.run([second], "2")
    assert isinstance(result.failed["a-0"], StalePlan)
    assert records_of(ingest.store, "a") == some_records(0, 10)


def test_a_commit_that_fails_fails_its_topic_alone(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    really = LogStore.ingest

    def unanswered_for_a(store: LogStore, topic: str, *rest: object) -> None:
        if topic == "a":
            raise CommitStateUnknown("the catalog did not say")
        really(store, topic, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LogStore, "ingest", unanswered_for_a)
    result = ingest.run([work(ingest, topic_there(topic, 10, 10)) for topic in "ab"], "1")
    assert landed(result) == {"b-0": (0, 10), "b-1": (0, 10)}
    assert list(result.failed) == ["a-0", "a-1"]


def test_a_topic_that_cannot_be_created_fails_alone(ingest: Ingest) -> None:
    bad = replace(work(ingest, topic_there("a", 10)), config={"retention.ms": "soon"})
    result = ingest.run([bad, work(ingest, topic_there("b", 10))], "1")
    assert landed(result) == {"b-0": (0, 10)}
    assert "retention.ms" in str(result.failed["a"])


def test_a_topic_that_another_run_creates_at_that_moment_is_gone_on_with(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = LogStore.create_topic

    def twice(store: LogStore, name: str, partitions: int, config: dict[str, str]) -> Topic:
        really(store, name, partitions, config)
        return really(store, name, partitions, config)

    monkeypatch.setattr(LogStore, "create_topic", twice)
    result = ingest.run([work(ingest, topic_there("a", 10))], "1")
    assert (result.created, landed(result), result.failed) == ((), {"a-0": (0, 10)}, {})


def test_a_topic_with_records_of_its_own_takes_none(ingest: Ingest) -> None:
    ingest.store.create_topic("a", 1, COMPACT)
    ingest.store.append("a", [NewRecord(b"k", b"v", 1)], "own", 1)
    with pytest.raises(InvalidConfig, match="records of its own"):
        ingest.plan("a", topic_there("a", 10))


def test_parts_that_leave_a_gap_are_refused_before_anything_happens(ingest: Ingest) -> None:
    whole = work(ingest, topic_there("a", 30), part_offsets=10)
    for some in (whole.parts[:2], whole.parts[1:], (whole.parts[0], whole.parts[2])):
        with pytest.raises(InvariantViolated, match="don't cover"):
            ingest.run([replace(whole, parts=some)], "1")
    assert ingest.store.topics() == []


def test_without_anything_to_read_no_session_is_started(ingest: Ingest) -> None:
    def no_session() -> NoReturn:
        raise AssertionError("nothing is to be read")

    ingest.run([work(ingest, topic_there("a", 10))], "1")
    idle = Ingest(ingest.store, spark_engine(no_session, ingest.store.files))
    assert idle.run([work(idle, topic_there("a", 10))], "2").committed == ()


def test_a_spark_that_cannot_start_leaves_no_topic_behind(ingest: Ingest) -> None:
    def no_java() -> NoReturn:
        raise InvalidConfig("install Java")

    helpless = Ingest(ingest.store, spark_engine(no_java, ingest.store.files))
    with pytest.raises(InvalidConfig, match="install Java"):
        helpless.run([work(helpless, topic_there("a", 10))], "1")
    assert ingest.store.topics() == []
