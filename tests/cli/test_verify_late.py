"""A log that is late fails ``keptlog verify``, whose row says so; nobody is told that a guarantee is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from keptlog.notify.checks import broken_checks
from tests.cli.conftest import Run


def test_a_late_log_fails_verify_and_is_not_remembered_as_broken(
    keptlog: Run, home: Path, lines: Callable[..., str]
) -> None:
    lag = ("--config", "cleanup.policy=compact", "--config", "max.compaction.lag.ms=1000")
    assert keptlog("topic", "create", "users", *lag).code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1", "timestamp": 1})).code == 0

    told = keptlog("verify", "--json")

    assert told.code == 1
    assert [row["check"] for row in told.json["checks"] if row["result"] == "BROKEN"] == ["max_compaction_lag"]
    assert broken_checks(home) == {}
