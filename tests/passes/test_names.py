"""Which logs a word means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keptlog.errors import LogCorrupt, UnknownTopic
from keptlog.passes.names import named_logs, require_all, topic_and_partition
from keptlog.table.store import LogStore


def test_names_that_mean_nothing_and_logs_that_cannot_be_read_are_told_apart(
    store: LogStore, make_unreadable: Callable[[str], None]
) -> None:
    make_unreadable("b")
    named = named_logs(store, ["a-0", "b", "nobody", "a-7"])
    assert [str(log.topic_partition) for log in named.logs] == ["a-0"]
    kinds = {name: type(error) for name, error in named.unreadable.items()}
    assert kinds == {"b": LogCorrupt, "nobody": UnknownTopic, "a-7": UnknownTopic}
    with pytest.raises(LogCorrupt, match="many"):
        require_all(named.unreadable)


def test_without_names_all_logs_are_meant_and_those_that_cannot_be_read_are_named(
    store: LogStore, make_unreadable: Callable[[str], None]
) -> None:
    make_unreadable("b")
    named = named_logs(store)
    assert [str(log.topic_partition) for log in named.logs] == ["a-0", "c-0"]
    assert list(named.unreadable) == ["b"]


def test_a_topic_that_is_deleted_while_all_are_read_is_simply_not_there(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = store.topics()
    store.delete_topic("b", 0)
    monkeypatch.setattr(LogStore, "topics", lambda _: topics)
    named = named_logs(store)
    assert [str(log.topic_partition) for log in named.logs] == ["a-0", "c-0"]
    assert named.unreadable == {}


def test_a_log_that_is_named_twice_is_meant_once(store: LogStore) -> None:
    named = named_logs(store, ["a", "a-0", "a"])
    assert [str(log.topic_partition) for log in named.logs] == ["a-0"]


def test_a_topic_that_cannot_be_read_costs_no_topic_that_is_called_as_one_of_its_logs(
    store: LogStore, make_unreadable: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    store.create_topic("b-7", 1, {})
    make_unreadable("b")
    store.load_table("b").transaction().set_properties({"log.partitions": "some"}).commit_transaction()
    named = named_logs(store, ["b-7", "b-0"])
    assert [str(log.topic_partition) for log in named.logs] == ["b-7-0"]
    assert {name: type(error) for name, error in named.unreadable.items()} == {"b-0": LogCorrupt}
    assert topic_and_partition(store, "b-7") == ("b-7", None)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    said = "b-7 is taken as the topic of that name: it is not known whether topic b has such a log"
    assert all(each.startswith(said) for each in told)
    with pytest.raises(LogCorrupt):
        topic_and_partition(store, "b-0")
