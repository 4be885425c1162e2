"""A mark on a log is a warning when it is set, and a line when it is gone, whatever took it away."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from keptlog.log.plan import make_retention_plan
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.changes.mark import Failure
from keptlog.table.store import LogStore
from tests.logging.lines import lines
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create, new_id

HOUR_MS = 3_600_000
LOG = TopicPartition(TOPIC, 0)


@pytest.fixture
def store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> LogStore:
    caplog.set_level(logging.DEBUG)
    store = create(tmp_path, config={"cleanup.policy": "compact,delete", "retention.ms": "1"})
    append_each(store, [("a", "1")], [("a", "2")])
    return store


def mark(store: LogStore, checkpoint: int | None = None, now_ms: int = NOW_MS) -> None:
    failure = Failure(LOG, "segment 7 is broken", checkpoint)
    store.mark_uncleanable(TOPIC, [failure], now_ms, Backoff(HOUR_MS, 24 * HOUR_MS))


def test_a_mark_is_a_warning_that_tells_the_back_off(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    mark(store)
    mark(store, now_ms=NOW_MS + HOUR_MS)
    since = "2023-11-14T22:13:20.000Z"
    begins = f"{LOG} is uncleanable: attempt"
    assert lines(caplog, logging.DEBUG) == [
        ("WARNING", f"{begins} 1 since {since} failed; the next try comes at 2023-11-14T23:13:20.000Z"),
        ("WARNING", f"{begins} 2 since {since} failed; the next try comes at 2023-11-15T01:13:20.000Z"),
    ]


def test_a_mark_that_is_not_set_is_not_told(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    mark(store, checkpoint=5)
    assert lines(caplog, logging.DEBUG) == []


def test_the_clean_that_heals_a_log_is_told_once(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    mark(store)
    caplog.clear()
    clean(store)
    assert lines(caplog, logging.DEBUG) == [("INFO", f"{LOG} is cleanable again")]
    caplog.clear()
    append_each(store, [("a", "3")], [("a", "4")])
    clean(store)
    assert lines(caplog, logging.DEBUG) == []


def test_so_is_retention_that_takes_what_was_broken(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    mark(store)
    caplog.clear()
    store.retain(TOPIC, make_retention_plan(store.logs(TOPIC), NOW_MS + HOUR_MS).steps, new_id())
    assert lines(caplog, logging.DEBUG) == [("INFO", f"{LOG} is cleanable again")]


def test_so_is_a_deletion_of_records(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    mark(store)
    caplog.clear()
    store.delete_records(LOG, -1, new_id())
    assert lines(caplog, logging.DEBUG) == [("INFO", f"{LOG} is cleanable again")]
