"""A topic with which something is wrong that nobody has thought of: who looks at all topics loses that one alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.home import open_home
from keptlog.ingest.lag import LagScanner
from keptlog.log.assessment import Assessment, assess
from keptlog.log.plan import plan_step
from keptlog.log.retention import retention_of
from keptlog.log.segment import Log
from keptlog.passes.clean import Cleaner
from keptlog.passes.marked import Death
from keptlog.passes.names import named_logs
from keptlog.passes.observer import Observer, observe
from keptlog.passes.purge import Purger
from keptlog.passes.readers import reader_standings
from keptlog.passes.retain import Retainer
from keptlog.passes.standings import look_at_standings
from keptlog.passes.verify_pass import all_that_is_there, verify_logs
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.metadata.logs import ObservedTopic
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.in_process import in_process_engine
from tests.passes.applying import applied, applier, file
from tests.passes.conftest import DAY_MS, NOW_MS
from tests.strange import each_commit_fails


def _lag(store: LogStore) -> Mapping[str, KeptlogError]:
    known = LagScanner(store).sources().known
    return {topic: each.why_unread for topic, each in known.items() if each.why_unread}


LOOKS: Mapping[str, Callable[[LogStore], Mapping[str, KeptlogError]]] = {
    "observe": lambda store: observe(store, now_ms=NOW_MS).unreadable,
    "observer": lambda store: Observer(store, lambda: 0).look(NOW_MS).unreadable,
    "logs": lambda store: named_logs(store).unreadable,
    "readers": lambda store: reader_standings(store, (), now_ms=NOW_MS).failed,
    "purge, told before": lambda store: Purger(store).preview(now_ms=NOW_MS).failed,
    "topics file": lambda store: applier(store).plan(file("  a: {}\n", "  b: {}\n")).failed,
    "export": lambda store: applier(store).export()[1],
    "lag": _lag,
}


@pytest.fixture
def strange(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """Nobody can load a, in a way that no code foresees."""
    really = load_topic_table

    def load(catalog: Catalog, topic: str) -> Table:
        if topic == "a":
            raise IndexError("list index out of range")
        return really(catalog, topic)

    monkeypatch.setattr("keptlog.table.store.load_topic_table", load)
    return store


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_who_looks_at_all_topics_names_it_and_sees_the_others(
    strange: LogStore, look: Callable[[LogStore], Mapping[str, KeptlogError]]
) -> None:
    failed = look(strange)
    assert list(failed) == ["a"]
    assert "topic a: the look at it stopped at IndexError: list index out of range; report it" in str(failed["a"])


class Strange:
    """Topics with a log of which something can't be told, in a way that no code foresees; a at first."""

    def __init__(self) -> None:
        self.topics = {"a"}

    def __call__(self, really: Callable[..., Any]) -> Callable[..., Any]:
        """The same, which takes a log or its judgement first, and stops at theirs."""

        def tell(told: Log | Assessment, *rest: Any, **more: Any) -> Any:
            log = told if isinstance(told, Log) else told.log
            if log.topic_partition.topic in self.topics:
                raise OverflowError("int too large")
            return really(told, *rest, **more)

        return tell


STOPPED: Mapping[str, Callable[[Strange], tuple[str, Any]]] = {
    "a judgement": lambda strange: ("keptlog.passes.judging.assess", strange(assess)),
    "how long it is good": lambda strange: (
        "keptlog.log.assessment.Assessment.good_until_ms",
        property(strange(vars(Assessment)["good_until_ms"].fget)),
    ),
}


@pytest.mark.parametrize("stopped", STOPPED.values(), ids=STOPPED)
def test_a_log_that_cant_be_judged_costs_only_its_topic(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, stopped: Callable[[Strange], tuple[str, Any]]
) -> None:
    """It ended each look of all topics, until somebody found out which one it was."""
    strange = Strange()
    monkeypatch.setattr(*stopped(strange))
    observer = Observer(store, lambda: 0)
    for seen in (observe(store, now_ms=NOW_MS), observer.look(NOW_MS)):
        assert "topic a: the look at it stopped at OverflowError" in str(seen.unreadable["a"])
        assert (list(seen.unreadable), {log.topic_partition.topic for log in seen.logs}) == (["a"], {"b", "c"})
    strange.topics.clear()
    assert observer.look(NOW_MS).unreadable == {}
    strange.topics.add("b")
    seen = observer.look(NOW_MS - 1)  # set back, so all are judged again
    assert (list(seen.unreadable), {log.topic_partition.topic for log in seen.logs}) == (["b"], {"a", "c"})


PLANNED: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "its judgement": ("keptlog.passes.clean.assess", assess),
    "its step": ("keptlog.log.plan.plan_step", plan_step),
}


@pytest.mark.parametrize(("name", "really"), PLANNED.values(), ids=PLANNED)
def test_a_clean_goes_on_without_the_topic_of_which_it_cant_plan_a_log(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, name: str, really: Callable[..., Any]
) -> None:
    """One ended the plan and the clean of all topics."""
    monkeypatch.setattr(name, Strange()(really))
    cleaner = Cleaner(store, in_process_engine(store.files))
    planned = cleaner.begin((), "r", now_ms=NOW_MS)
    assert [str(step.topic_partition) for step in planned.plan.steps] == ["b-0", "c-0"]
    assert "topic a: the look at it stopped at OverflowError" in str(planned.failed["a"])
    with pytest.raises(KeptlogError, match="topic a: the look at it stopped"):
        cleaner.plan(now_ms=NOW_MS)
    assert len(cleaner.plan(["b", "c"], now_ms=NOW_MS).steps) == 2


def test_the_logs_of_a_run_that_died_are_marked_but_for_those_that_cant_be_judged(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.passes.judging.assess", Strange()(assess))
    died = Death(("a-0", "b-0"), "run r died", NOW_MS)
    marked = Cleaner(store, in_process_engine(store.files)).mark_still_due(died, set(), now_ms=NOW_MS)
    assert (marked.names, list(marked.failed)) == (("b-0",), ["a-0"])


def test_retention_goes_on_without_the_topic_of_which_it_cant_plan_a_log(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster's sensor plans all logs at each look: none of them was retained any more."""
    for topic in "abc":
        store.alter_topic(topic, {"cleanup.policy": "delete"})
    monkeypatch.setattr("keptlog.log.plan.retention_of", Strange()(retention_of))
    done = Retainer(store).retain(named_logs(store), "r", now_ms=NOW_MS)
    assert [str(step.topic_partition) for step in done.committed] == ["b-0", "c-0"]
    assert "topic a: the look at it stopped at OverflowError" in str(done.failed["a"])


def test_it_is_told_by_the_name_that_was_given_as_one_that_cant_be_read_is(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told by its topic: Dagster's next run was not asked for the others first."""
    strange = Strange()
    for place, really in (
        ("keptlog.passes.clean.assess", assess),
        ("keptlog.passes.judging.assess", assess),
        ("keptlog.log.plan.retention_of", retention_of),
    ):
        monkeypatch.setattr(place, strange(really))
    store.alter_topic("a", {"cleanup.policy": "compact,delete"})
    cleaner, retainer = Cleaner(store, in_process_engine(store.files)), Retainer(store)
    for names in (["a-0"], ["a"], ["a", "a-0"], []):
        told = [
            cleaner.begin([*names, "b-0"] if names else (), "r", now_ms=NOW_MS).failed,
            retainer.retain(named_logs(store, names), "r", now_ms=NOW_MS).failed,
            observe(store, names, now_ms=NOW_MS).unreadable,
        ]
        assert [list(failed) for failed in told] == [names or ["a"]] * 3


def test_a_verify_says_that_it_was_not_looked_at_and_checks_the_others(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.passes.verify.assess", Strange()(assess))
    found = verify_logs(store, all_that_is_there(store, ()), NOW_MS, lambda _found, _is_same: None)
    looked = {name: {result.is_looked_at for result in results[:-1]} for name, results in found.items()}
    assert looked == {"a-0": {False}, "b-0": {True}, "c-0": {True}}
    assert "topic a: the look at it stopped at OverflowError" in found["a-0"][0].description


def test_the_status_of_a_home_names_it(store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.topics()
    really = UnopenedStore.observe

    def observed(unopened: UnopenedStore, topic: str, location: str | None = None) -> ObservedTopic:
        if topic == "a":
            raise IndexError("list index out of range")
        return really(unopened, topic, location)

    monkeypatch.setattr(UnopenedStore, "observe", observed)
    seen = look_at_standings(UnopenedStore(tmp_path, {}, lambda: open_home(tmp_path).store), now_ms=NOW_MS)
    assert (list(seen.unreadable), sorted(seen.topics)) == (["a"], ["b", "c"])


def test_an_apply_that_meets_it_at_the_commit_alters_the_others(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    each_commit_fails(monkeypatch, "a")
    lines = [f"  {topic}: {{config: {{min.compaction.lag.ms: 5}}}}\n" for topic in "abc"]
    done = applied(store, *lines, "  new: {}\n")
    assert (list(done.failed), sorted(done.done)) == (["a"], ["b", "c", "new"])
    assert "topic a: its commit stopped at IndexError" in str(done.failed["a"])


def test_no_other_topic_lacks_a_purge_because_it_is_no_witness_of_the_time(strange: LogStore, tmp_path: Path) -> None:
    """A home that lay idle for longer than the clock may jump asks its topics when they were changed last."""
    now_ms = int(time.time() * 1000) + 400 * DAY_MS
    strange.clock_guard.clock_ms = lambda: now_ms
    failed = Purger(strange).purge(now_ms=now_ms).failed
    assert "IndexError" in str(failed.pop("a"))
    refusals = [str(error) for error in failed.values() if type(error) is InvalidConfig]
    assert len(refusals) == len(strange.topics()) - 1
    assert all("topic a may have a newer one, try again once it can be read" in each for each in refusals)

    busy = LogStore(open_catalog(tmp_path, lambda: now_ms - DAY_MS), {}, lambda _: None, lambda: "an-id")
    busy.create_topic("witness", 1, {})
    done = Purger(strange).purge(now_ms=now_ms)
    assert (list(done.failed), sorted(done.receipts)) == (["a"], ["b", "c", "witness"])
