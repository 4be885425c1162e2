"""An open erasure of a topic that can't be read is counted by status and metrics: its deadline does not move."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.broken_topics import cut_in_half, metadata_file
from tests.cli.conftest import Run

_HOUR_MS = 3_600_000
_COMPACTED = ("cleanup.policy=compact", "max.compaction.lag.ms=60000", "delete.retention.ms=60000")


@pytest.fixture
def overdue(keptlog: Run, home: Path, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic whose logs can't be told, and its table can, with an erasure that was to be done an hour ago."""
    config = [option for each in _COMPACTED for option in ("--config", each)]
    assert keptlog("topic", "create", "users", *config).code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"})).code == 0
    assert keptlog("erase", "users", "--key", "a", "--by", "60d", "--yes").code == 0
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + (60 * 24 + 1) * _HOUR_MS))
    table = open_home(home).store.load_table("users")
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    return "users"


@pytest.mark.parametrize("names", [(), ("users",)], ids=["all", "by name"])
def test_status_counts_it(keptlog: Run, overdue: str, names: tuple[str, ...]) -> None:
    told = keptlog("status", *names, "--json")
    assert (told.code, [each["subject"] for each in told.json["errors"]]) == (1, [overdue])
    metrics = told.json["metrics"]
    assert (metrics["erasures-open-count"], metrics["erasures-overdue-count"]) == (1, 1)
    assert metrics["erasure-delay-secs"] >= _HOUR_MS // 2000


def test_status_shows_it_beside_nothing_that_is_not_known(keptlog: Run, overdue: str) -> None:
    told = keptlog("status").out
    assert "erasures-open-count 1, erasures-overdue-count 1" in told
    assert "max-dirty-percent" not in told


def test_prometheus_gets_it_and_no_number_of_its_logs(keptlog: Run, overdue: str) -> None:
    told = keptlog("metrics", "write", "-").out.splitlines()
    assert 'keptlog_erasures_open{topic="users"} 1.0' in told
    assert 'keptlog_erasures_overdue{topic="users"} 1.0' in told
    assert any(line.startswith('keptlog_erasure_deadline_timestamp_seconds{topic="users"}') for line in told)
    assert [line for line in told if line.startswith("keptlog_log_") and 'topic="users"' in line] == []


def test_where_its_table_can_not_be_read_either_nothing_is_known_and_there_is_no_number(
    keptlog: Run, overdue: str, home: Path
) -> None:
    cut_in_half(metadata_file(open_home(home).store, overdue))
    told = keptlog("metrics", "write", "-").out
    assert "keptlog_erasures_open{" not in told
    assert "erasures-open-count" not in keptlog("status").out
