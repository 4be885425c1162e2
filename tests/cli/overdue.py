"""A home with an erasure that is overdue, of which people were told, for tests of what must not end that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


def tell_of_an_overdue_erasure(keptlog: Run, at: Callable[[int], None], folder: Path) -> None:
    """Ask for it and, a day later, tell people."""
    at(NOW_MS)
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    (folder / "records.jsonl").write_text('{"key": "a", "value": "1"}\n')
    assert keptlog("append", "users", "--file", str(folder / "records.jsonl")).code == 0
    assert keptlog("erase", "users", "--key", "a", "--by", "1m", "--yes", "--run-id", "r1").code == 0
    at(NOW_MS + DAY_MS)
    told = keptlog("notify", "--once")
    assert "users: erasure deadline" in told.out + told.err
