"""Retention over several logs: what fails is named, what is busy waits, everything else goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.home import new_id
from keptlog.log.broker import BrokerConfig
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.names import named_logs
from keptlog.passes.retain import BEING_CLEANED, Retainer, RetentionResult
from keptlog.table.store import LogStore
from tests.passes.conftest import DAY_MS, NOW_MS


@pytest.fixture
def retainer(store: LogStore) -> Retainer:
    """All that is in a and b is old; c is only compacted."""
    for topic in "ab":
        store.alter_topic(topic, {"cleanup.policy": "delete"})
    return Retainer(store)


def retained(result: RetentionResult) -> list[str]:
    return [str(step.topic_partition) for step in result.committed]


def test_retention_of_one_topic_fails_alone(retainer: Retainer, monkeypatch: pytest.MonkeyPatch) -> None:
    really = LogStore.retain

    def stale_for_a(store: LogStore, topic: str, steps: list[object], run_id: str) -> None:
        if topic == "a":
            raise StalePlan("somebody was faster")
        really(store, topic, steps, run_id)  # type: ignore[arg-type]

    monkeypatch.setattr(LogStore, "retain", stale_for_a)
    result = retainer.retain(named_logs(retainer.store), new_id(), now_ms=NOW_MS)
    assert retained(result) == ["b-0"]
    assert list(result.failed) == ["a-0"]


def test_an_error_that_nobody_has_thought_of_names_its_topic_and_costs_no_other(
    retainer: Retainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = LogStore.retain

    def broken_for_a(store: LogStore, topic: str, steps: list[object], run_id: str) -> None:
        if topic == "a":
            raise IndexError("list index out of range")
        really(store, topic, steps, run_id)  # type: ignore[arg-type]

    monkeypatch.setattr(LogStore, "retain", broken_for_a)
    result = retainer.retain(named_logs(retainer.store), new_id(), now_ms=NOW_MS)
    assert retained(result) == ["b-0"]
    assert "topic a: its commit stopped at" in str(result.failed["a-0"])


def test_a_log_that_changed_since_it_was_looked_at_costs_only_itself(store: LogStore) -> None:
    store.create_topic("d", 3, {"cleanup.policy": "delete"})
    for partition in range(3):
        store.append("d", [NewRecord(b"k", b"1", NOW_MS - 8 * DAY_MS, partition)], new_id(), NOW_MS)
    named = named_logs(store, ["d"])
    store.delete_records(TopicPartition("d", 1), 1, new_id())
    result = Retainer(store).retain(named, new_id(), now_ms=NOW_MS)
    assert retained(result) == ["d-0", "d-2"]
    assert [log.log_start_offset for log in store.logs("d")] == [1, 1, 1]
    with pytest.raises(StalePlan, match=r"^d-1: the log changed since it was planned"):
        raise result.failed["d-1"]
    assert len(result.failed) == 1


def test_a_topic_that_cannot_be_read_costs_only_itself(
    retainer: Retainer, make_unreadable: Callable[[str], None]
) -> None:
    make_unreadable("a")
    result = retainer.retain(named_logs(retainer.store), new_id(), now_ms=NOW_MS)
    assert retained(result) == ["b-0"]
    assert isinstance(result.failed["a"], LogCorrupt)


def test_a_log_that_is_being_cleaned_waits_and_is_told(retainer: Retainer) -> None:
    retainer.store.alter_topic("a", {"cleanup.policy": "compact,delete"})
    result = retainer.retain(
        named_logs(retainer.store),
        new_id(),
        now_ms=NOW_MS,
        is_clean_under_way=lambda log: log.topic_partition.topic == "a",
    )
    assert retained(result) == ["b-0"]
    assert result.plan.left_alone["a-0"] == BEING_CLEANED
    assert len(list(retainer.store.read("a"))) == 2


def test_a_clean_of_everything_keeps_no_log_waiting_that_no_clean_comes_to(retainer: Retainer) -> None:
    """A topic that is only deleted from was not retained for as long as a clean of all logs took."""
    result = retainer.retain(named_logs(retainer.store), new_id(), now_ms=NOW_MS, is_clean_under_way=lambda _: True)
    assert retained(result) == ["a-0", "b-0"]


def test_a_log_that_is_being_cleaned_is_said_to_wait_only_if_it_has_something_to_remove(retainer: Retainer) -> None:
    result = retainer.retain(named_logs(retainer.store), new_id(), now_ms=NOW_MS, is_clean_under_way=lambda _: True)
    assert result.plan.left_alone["c-0"] == "no segment is old"


def test_a_disabled_cleaner_retains_no_compacted_log_and_all_others(retainer: Retainer) -> None:
    retainer.store.alter_topic("a", {"cleanup.policy": "compact,delete"})
    disabled = Retainer(retainer.store, BrokerConfig.of({"log.cleaner.enable": "false"}))
    result = disabled.retain(named_logs(disabled.store), new_id(), now_ms=NOW_MS)
    assert retained(result) == ["b-0"]
    assert "log.cleaner.enable=false" in result.plan.left_alone["a-0"]
