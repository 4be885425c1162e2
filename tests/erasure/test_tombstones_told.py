"""Who asks for an erasure is told how many tombstones were appended: a key that several logs have takes one in each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Run, home, keptlog, lines

__all__ = ["home", "keptlog", "lines"]
COMPACT = ("--config", "cleanup.policy=compact", "--config", "max.compaction.lag.ms=3600000")
KEYS = ("--key", "a", "--key", "b")


@pytest.fixture
def wide(keptlog: Run, lines: Any) -> Run:
    """Key ``a`` is in three of eight logs, whatever Kafka's partitioner says of it, ``b`` is in none."""
    keptlog("topic", "create", "wide", "--partitions", "8", *COMPACT)
    keptlog("append", "wide", "--file", lines(*({"key": "a", "value": "x", "partition": each} for each in (1, 4, 6))))
    return keptlog


def test_a_key_counts_in_each_log_that_has_it_and_once_if_none_has(wide: Run) -> None:
    done = wide("erase", "wide", *KEYS, "--yes", "--run-id", "r1")
    assert "wide: asked for, tombstoned, 4 tombstones appended" in done.out.splitlines()
    assert [each["value"] for each in wide("read", "wide").json_lines].count(None) == 4


def test_a_request_that_is_repeated_has_appended_nothing_this_time(wide: Run) -> None:
    first = wide("erase", "wide", *KEYS, "--yes", "--run-id", "r1", "--json", "--quiet").json
    again = wide("erase", "wide", *KEYS, "--yes", "--run-id", "r1")
    assert "wide: asked for before, tombstoned" in again.out.splitlines()
    same = wide("erase", "wide", *KEYS, "--yes", "--run-id", "r1", "--json", "--quiet").json
    assert [each["topics"]["wide"]["tombstones"] for each in (first, same)] == [4, 4]


def test_where_records_go_by_their_age_no_tombstone_is_told(keptlog: Run, lines: Any) -> None:
    keptlog("topic", "create", "aged", "--config", "cleanup.policy=delete")
    keptlog("append", "aged", "--file", lines({"key": "a", "value": "x"}))
    assert "tombstones" not in keptlog("erase", "aged", *KEYS, "--yes").out
