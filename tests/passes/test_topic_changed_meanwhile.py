"""A topic that is broken or deleted between the plan of a clean and its end costs only itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from keptlog.errors import SparkUnavailable, StalePlan
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.steps import Compact
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.in_legs import InLegs
from keptlog.table.store import LogStore
from tests.in_process import InProcessJobs, in_process_engine
from tests.passes.conftest import DAY_MS, NOW_MS

WRONG = [{"kafka.cleanup.policy": "shred"}, {"kafka.no.such.setting": "1"}]


def set_by_another_engine(store: LogStore, topic: str, properties: dict[str, str]) -> None:
    store.load_table(topic).transaction().set_properties(properties).commit_transaction()


def cleaned(done: Pass) -> list[str]:
    return sorted(str(outcome.step.topic_partition) for outcome in done.committed)


@pytest.mark.parametrize("wrong", WRONG, ids=["a value", "a name"])
@pytest.mark.parametrize("topic", ["a", "b"])
def test_a_setting_that_another_engine_made_wrong_since_the_plan_stops_its_own_topic_alone(
    store: LogStore, topic: str, wrong: dict[str, str]
) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files))
    planned = cleaner.begin((), new_id(), now_ms=NOW_MS)
    set_by_another_engine(store, topic, wrong)
    done = cleaner.commit(cleaner.stage(planned))
    assert cleaned(done) == [f"{each}-0" for each in "abc" if each != topic]
    assert list(done.failed) == [f"{topic}-0"]
    assert next(iter(wrong)).removeprefix("kafka.") in str(done.failed[f"{topic}-0"])
    assert (done.blameless, done.outage) == (frozenset(), None)


def test_a_topic_that_was_deleted_while_spark_lost_its_job_is_no_outage(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = InProcessJobs.run
    lost: list[str] = []

    def run(jobs: InProcessJobs, tasks: Sequence[object], doing: str) -> object:
        if doing.startswith("rewriting") and not lost:
            lost.append(doing)
            store.delete_topic("a", now_ms=NOW_MS)
            raise SparkUnavailable(
                "Spark was lost while rewriting: ExecutorLostFailure; nothing was committed, try again"
            )
        return really(jobs, tasks, doing)  # type: ignore[arg-type]

    cleaner = Cleaner(store, in_process_engine(store.files))
    planned = cleaner.begin((), new_id(), now_ms=NOW_MS)
    monkeypatch.setattr(InProcessJobs, "run", run)
    done = cleaner.commit(cleaner.stage(planned))
    assert lost
    assert cleaned(done) == ["b-0", "c-0"]
    assert isinstance(done.failed["a-0"], StalePlan)
    assert (done.blameless, done.outage) == (frozenset(), None)


def test_a_setting_that_was_made_wrong_between_two_legs_stops_its_own_topic_alone(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in "abc":
        for _ in range(2):
            append_old(store, topic)
    cleaner = Cleaner(store, in_process_engine(store.files))
    planned = cleaner.begin((), new_id(), now_ms=NOW_MS)
    compacts = [step for step in planned.plan.steps if isinstance(step, Compact)]
    steps = tuple(replace(step, commit_max_bytes=1) for step in compacts)
    assert [len(step.legs) > 1 for step in steps] == [True, True, True]
    really = InLegs._commit
    legs: list[str] = []

    def commit(in_legs: InLegs, outcome: object) -> None:
        legs.append("a leg")
        if len(legs) == 2:
            set_by_another_engine(store, "a", WRONG[0])
        really(in_legs, outcome)  # type: ignore[arg-type]

    monkeypatch.setattr(InLegs, "_commit", commit)
    done = cleaner.commit(cleaner.stage(replace(planned, plan=replace(planned.plan, steps=steps))))
    assert cleaned(done) == ["b-0", "c-0"]
    assert list(done.failed) == ["a-0"]
    assert (done.blameless, done.outage) == (frozenset(), None)


def append_old(store: LogStore, topic: str) -> None:
    store.append(topic, [NewRecord(b"k", b"3", NOW_MS - 8 * DAY_MS, 0)], new_id(), NOW_MS)
