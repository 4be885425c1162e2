"""An outage during the commits of a pass: it is no log's fault, and is waited for no longer than it takes to see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from keptlog.errors import CommitStateUnknown, LogCorrupt, StalePlan, StorageUnavailable
from keptlog.home import new_id
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.marked import Death
from keptlog.passes.names import named_logs
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.passes.conftest import NOW_MS, make_topic
from tests.strange import each_commit_fails


class Commits:
    """The commits of a store, of which a test says which are not taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tried: Counter[str] = Counter()
        self.error: Callable[[str], Exception | None] = lambda topic: None  # noqa: ARG005  # all are taken
        really = LogStore.swap

        def swap(store: LogStore, topic: str, *arguments: Any) -> None:
            self.tried[topic] += 1
            if error := self.error(topic):
                raise error
            really(store, topic, *arguments)

        monkeypatch.setattr(LogStore, "swap", swap)

    def refuse(self, *topics: str, times: int = 1_000) -> None:
        def error(topic: str) -> Exception | None:
            return down(topic) if topic in topics and self.tried[topic] <= times else None

        self.error = error


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Commits:
    return Commits(monkeypatch)


def down(topic: str) -> StorageUnavailable:
    return StorageUnavailable(f"topic {topic}: catalog or storage can't be reached; nothing landed, try again")


def in_doubt(topic: str) -> CommitStateUnknown:
    return CommitStateUnknown(f"topic {topic}: the catalog did not say whether the commit landed; run again")


def clean(store: LogStore) -> Pass:
    cleaner = Cleaner(store, in_process_engine(store.files))
    return cleaner.commit(cleaner.stage(cleaner.begin((), new_id(), now_ms=NOW_MS)))


def landed(done: Pass) -> list[str]:
    return sorted(str(outcome.step.topic_partition) for outcome in done.committed)


def marked(store: LogStore) -> list[str]:
    return [str(log.topic_partition) for log in named_logs(store).logs if log.uncleanable]


def test_an_outage_that_begins_during_the_commits_marks_none(store: LogStore, commits: Commits) -> None:
    commits.refuse("b", "c")
    done = clean(store)
    assert landed(done) == ["a-0"]
    assert done.blameless == done.failed.keys() == {"b-0", "c-0"}
    assert str(done.outage) == str(down("b"))
    assert marked(store) == []


def test_a_topic_after_which_none_lands_is_not_at_fault_and_is_no_outage_for_all(
    store: LogStore, commits: Commits
) -> None:
    commits.refuse("c")
    done = clean(store)
    assert landed(done) == ["a-0", "b-0"]
    assert done.blameless == done.failed.keys() == {"c-0"}
    assert done.outage is None
    assert marked(store) == []


def test_an_error_that_nobody_has_thought_of_names_its_topic_and_costs_no_other(
    store: LogStore, commits: Commits
) -> None:
    commits.error = lambda topic: IndexError("list index out of range") if topic == "a" else None
    done = clean(store)
    assert landed(done) == ["b-0", "c-0"]
    assert list(done.failed) == marked(store) == ["a-0"]
    assert done.blameless == set()
    assert "topic a: its commit stopped at" in str(done.failed["a-0"])
    assert "list index out of range" in str(done.failed["a-0"])


@pytest.fixture
def no_commit_to_a(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is strange about a table is met by every commit to it."""
    assert "a" in store.topics()
    with monkeypatch.context() as patch:
        each_commit_fails(patch, "a")
        yield


@pytest.mark.usefixtures("no_commit_to_a")
def test_an_error_that_the_mark_of_a_topic_meets_too_costs_no_other_and_no_other_mark(
    store: LogStore, commits: Commits, caplog: pytest.LogCaptureFixture
) -> None:
    commits.error = lambda topic: LogCorrupt("b is damaged") if topic == "b" else None
    done = clean(store)
    assert landed(done) == ["c-0"]
    assert list(done.failed) == ["a-0", "b-0"]
    assert marked(store) == ["b-0"]
    assert "topic a: 1 log can't be marked as uncleanable" in caplog.text


@pytest.mark.usefixtures("no_commit_to_a")
def test_a_mark_for_a_run_that_died_meets_an_error_that_nobody_has_thought_of_and_the_others_are_marked(
    store: LogStore,
) -> None:
    died, out_of_reach = Death(("a-0", "b-0"), "run 7 died", NOW_MS), set[str]()
    done = Cleaner(store, in_process_engine(store.files)).mark_still_due(died, out_of_reach, now_ms=NOW_MS)
    assert (done.names, list(done.failed), out_of_reach) == (("b-0",), ["a-0"], set())
    assert "topic a: its commit stopped at IndexError" in str(done.failed["a-0"])


def test_after_two_topics_in_a_row_the_others_are_not_tried(store: LogStore, commits: Commits) -> None:
    for number in range(5):
        make_topic(store, f"d{number}")
    commits.refuse("b", "c", *(f"d{number}" for number in range(5)))
    done = clean(store)
    assert commits.tried == {"a": 1, "b": 1, "c": 1}
    assert done.blameless == done.failed.keys() == {"b-0", "c-0", *(f"d{number}-0" for number in range(5))}
    assert {str(done.failed[f"d{number}-0"]) for number in range(5)} == {str(done.outage)}
    assert marked(store) == []
    commits.refuse()
    assert landed(clean(store)) == sorted(done.failed)


def test_a_topic_that_is_refused_before_and_after_another_lands_is_at_fault(store: LogStore, commits: Commits) -> None:
    make_topic(store, "d")
    commits.refuse("a", "c")
    done = clean(store)
    assert (landed(done), sorted(done.failed), done.blameless) == (["b-0", "d-0"], ["a-0", "c-0"], frozenset())
    assert commits.tried == {"a": 2, "b": 1, "c": 2, "d": 1}
    assert marked(store) == ["a-0", "c-0"]


def test_an_outage_that_ends_during_the_commits_costs_nothing(store: LogStore, commits: Commits) -> None:
    commits.refuse("b", times=1)
    done = clean(store)
    assert (landed(done), done.failed, done.blameless, done.outage) == (["a-0", "b-0", "c-0"], {}, frozenset(), None)


def test_a_log_that_is_at_fault_otherwise_says_nothing_of_the_catalog(store: LogStore, commits: Commits) -> None:
    """It is read, and nothing is committed: that others could be is not shown by it."""
    make_topic(store, "d")
    errors = {"b": down("b"), "c": StalePlan("others were faster"), "d": down("d")}
    commits.error = errors.get
    done = clean(store)
    assert landed(done) == ["a-0"]
    assert done.blameless == {"b-0", "d-0"}
    assert marked(store) == []


def test_an_outage_keeps_nobody_waiting_for_the_marks_of_many(
    store: LogStore, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        make_topic(store, f"d{number}")
    commits.error = lambda topic: LogCorrupt(f"{topic} is damaged")
    tried: list[str] = []

    def mark(store: LogStore, topic: str, *_: object) -> None:  # as that of LogStore
        tried.append(topic)
        raise down(topic)

    monkeypatch.setattr(LogStore, "mark_uncleanable", mark)
    assert len(clean(store).failed) == 8
    assert tried == ["a", "b"]


def test_after_two_commits_in_a_row_that_got_no_answer_the_others_are_not_tried(
    store: LogStore, commits: Commits
) -> None:
    make_topic(store, "d")
    commits.error = lambda topic: None if topic == "a" else in_doubt(topic)
    done = clean(store)
    assert commits.tried == {"a": 1, "b": 1, "c": 1}
    assert done.blameless == done.failed.keys() == {"b-0", "c-0", "d-0"}
    assert done.stopped_by is done.failed["b-0"]
    assert marked(store) == []


def test_a_topic_that_was_not_tried_is_not_told_that_its_commit_may_have_landed(
    store: LogStore, commits: Commits
) -> None:
    commits.error = in_doubt
    done = clean(store)
    assert [type(done.failed[name]) for name in ("a-0", "b-0", "c-0")] == [
        CommitStateUnknown,
        CommitStateUnknown,
        StorageUnavailable,
    ]
    assert done.outage is done.failed["c-0"]
    assert str(done.outage).startswith("commits get no answer now, so this one was not sent; nothing landed, try again")


def test_a_commit_that_got_no_answer_and_one_that_could_not_be_sent_are_one_outage(
    store: LogStore, commits: Commits
) -> None:
    commits.error = {"a": in_doubt("a"), "b": down("b")}.get
    done = clean(store)
    assert commits.tried == {"a": 1, "b": 1}
    assert str(done.outage) == str(done.failed["c-0"]) == str(down("b"))


def test_a_commit_that_got_no_answer_is_looked_for_once_more_when_another_topic_lands(
    store: LogStore, commits: Commits
) -> None:
    commits.error = lambda topic: in_doubt(topic) if topic == "a" and commits.tried[topic] == 1 else None
    done = clean(store)
    assert commits.tried == {"a": 2, "b": 1, "c": 1}
    assert (landed(done), done.failed, done.blameless) == (["a-0", "b-0", "c-0"], {}, frozenset())


def test_a_commit_that_stays_in_doubt_while_others_land_marks_no_log(store: LogStore, commits: Commits) -> None:
    commits.error = lambda topic: in_doubt(topic) if topic == "a" else None
    done = clean(store)
    assert landed(done) == ["b-0", "c-0"]
    assert isinstance(done.failed["a-0"], CommitStateUnknown)
    assert (done.blameless, done.outage, marked(store)) == (frozenset(), None, [])
