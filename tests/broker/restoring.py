"""What the tests of ``restore`` share with the processes that they kill."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from keptlog.home import new_id
from keptlog.kafka_client.settings import ClientSettings
from keptlog.passes.restore import Restore, RestoreResult
from keptlog.progress import Progress
from keptlog.sinks.kafka_broker import writer
from keptlog.table.store import LogStore
from tests.crash.workload import Countdown
from tests.logs import open_store


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def ignore(_line: str) -> None:
    pass


def restore_of(
    store: LogStore, bootstrap: str, progress: Progress = ignore, *, client: Mapping[str, str] | None = None
) -> Restore:
    settings = ClientSettings.load({"bootstrap.servers": bootstrap, **(client or {})}, {})
    return Restore(store, settings, wall_clock_ms, progress, new_id)


def restore_until_killed(home: Path, bootstrap: str, topic: str, kill_at_call: int | None = None) -> RestoreResult:
    """Restore a topic in small transactions; killed at that function call of keptlog's own code, if it gets there."""
    writer.TRANSACTION_RECORDS = 20
    with Countdown("keptlog/", kill_at_call):
        return restore_of(open_store(home), bootstrap).to_broker(topic, topic)
