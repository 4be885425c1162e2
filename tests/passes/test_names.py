"""Which logs a word means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keptlog.errors import Action, KeptlogError, LogCorrupt, StorageUnavailable, UnknownTopic
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


def test_beside_a_topic_that_cannot_be_read_a_word_means_no_other_log_and_the_error_names_the_way(
    store: LogStore, make_unreadable: Callable[[str], None]
) -> None:
    """Whoever asked for partition 7 would get, export, clean or prove the records of another topic."""
    store.create_topic("b-7", 1, {})
    make_unreadable("b")
    store.load_table("b").transaction().set_properties({"log.partitions": "some"}).commit_transaction()
    named = named_logs(store, ["b-7", "b-0", "b-7-0"])
    assert [str(log.topic_partition) for log in named.logs] == ["b-7-0"]
    assert {name: type(error) for name, error in named.unreadable.items()} == {"b-7": LogCorrupt, "b-0": LogCorrupt}
    way_out = "; b-7 may be a log of topic b, so topic b-7 is named by its logs: b-7-0 and so on"
    assert str(named.unreadable["b-7"]).endswith(way_out)
    assert "may be a log" not in str(named.unreadable["b-0"])
    with pytest.raises(LogCorrupt, match="topic b-7 is named by its logs"):
        topic_and_partition(store, "b-7")
    with pytest.raises(LogCorrupt):
        topic_and_partition(store, "b-0")
    assert topic_and_partition(store, "b-7-0") == ("b-7", 0)


@pytest.mark.parametrize(
    "error",
    [
        StorageUnavailable("topic b can't be read: it may not be read").for_good(),
        StorageUnavailable("topic b can't be read: its catalog is damaged").of_damage(),
        LogCorrupt("topic b: a property is wrong").of_property().mended_by("keptlog repair b"),
    ],
)
def test_beside_a_topic_that_cannot_be_read_what_helps_is_told_of_the_word_too(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, error: KeptlogError
) -> None:
    """Of a topic that this user may not read, a program was told to try again."""
    store.create_topic("b-7", 1, {})
    really = LogStore.logs

    def refuse(self: LogStore, topic: str) -> object:
        if topic == "b":
            raise error
        return really(self, topic)

    monkeypatch.setattr(LogStore, "logs", refuse)
    told = named_logs(store, ["b-7"]).unreadable["b-7"]
    assert str(told) == f"{error}; b-7 may be a log of topic b, so topic b-7 is named by its logs: b-7-0 and so on"
    assert (type(told), vars(told)) == (type(error), vars(error))
    assert told.action is not Action.RETRY
