"""A topic with which something is wrong that nobody has thought of: who looks at all topics loses that one alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from keptlog.errors import KeptlogError
from keptlog.home import open_home
from keptlog.ingest.lag import LagScanner
from keptlog.log.assessment import Assessment, assess
from keptlog.log.segment import Log
from keptlog.passes.names import named_logs
from keptlog.passes.observer import Observer, observe
from keptlog.passes.purge import Purger
from keptlog.passes.readers import reader_standings
from keptlog.passes.standings import look_at_standings
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.metadata.logs import ObservedTopic
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
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


def test_a_log_that_cant_be_judged_costs_only_its_topic(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended each look of all topics, until somebody found out which one it was."""
    really, strange = assess, {"a"}

    def judge(log: Log, now_ms: int) -> Assessment:
        if log.topic_partition.topic in strange:
            raise OverflowError("int too large")
        return really(log, now_ms)

    monkeypatch.setattr("keptlog.passes.judging.assess", judge)
    observer = Observer(store, lambda: 0)
    for seen in (observe(store, now_ms=NOW_MS), observer.look(NOW_MS)):
        assert "topic a: the look at it stopped at OverflowError" in str(seen.unreadable["a"])
        assert (list(seen.unreadable), {log.topic_partition.topic for log in seen.logs}) == (["a"], {"b", "c"})
    strange.clear()
    assert observer.look(NOW_MS).unreadable == {}
    strange.add("b")
    seen = observer.look(NOW_MS - 1)  # set back, so all are judged again
    assert (list(seen.unreadable), {log.topic_partition.topic for log in seen.logs}) == (["b"], {"a", "c"})


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


def test_no_other_topic_lacks_a_purge_because_it_is_no_witness_of_the_time(strange: LogStore) -> None:
    """A home that lay idle for longer than the clock may jump asks all topics when they were changed last."""
    now_ms = int(time.time() * 1000) + 400 * DAY_MS
    strange.clock_guard.clock_ms = lambda: now_ms
    failed = Purger(strange).purge(now_ms=now_ms).failed
    assert "topic a: " in str(failed["a"])
    assert "IndexError" not in "".join(str(error) for topic, error in failed.items() if topic != "a")
