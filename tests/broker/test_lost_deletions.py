"""A tombstone that a real broker's cleaner has dropped before the next ingest stops it; --reconcile puts that right."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from keptlog.home import new_id
from keptlog.log.record import NewRecord
from tests.broker.broker import Broker
from tests.broker.ingesting import Ingesting

MINUTE_MS = 60_000
DEADLINE_SECONDS = 400.0
ALWAYS_CLEANED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": str(MINUTE_MS),
    "delete.retention.ms": "1000",
}


@dataclass
class History:
    """Each record comes long enough after the one before to close its segment."""

    ingesting: Ingesting
    now_ms: int = time.time_ns() // 1_000_000 - 600 * MINUTE_MS

    def put(self, key: bytes, value: bytes | None) -> None:
        self.now_ms += 2 * MINUTE_MS
        self.ingesting.broker.produce(self.ingesting.topic, [NewRecord(key, value, self.now_ms, 0)])

    def left(self) -> list[tuple[bytes | None, bytes | None]]:
        records = self.ingesting.broker.records(self.ingesting.topic, 1)[0]
        return [(record.key, record.value) for record in records]

    def here(self) -> dict[bytes | None, bytes | None]:
        latest = self.ingesting.store.reader(self.ingesting.topic).records(0, latest=True)
        return {record.key: record.value for _, record in latest}


@pytest.mark.parametrize("later_policy", ["compact", "delete"])
def test_a_deletion_that_the_broker_has_forgotten_is_not_missed(
    broker: Broker, tmp_path: Path, later_policy: str
) -> None:
    """Whether the topic still is compacted when it is read again or not: its cleaner was there before."""
    ingesting = Ingesting(broker, tmp_path)
    history = History(ingesting)
    ingesting.create(config=ALWAYS_CLEANED)
    history.put(b"ada", b"secret")
    history.put(b"bob", b"kept")
    ingesting.bring_all()
    history.put(b"ada", None)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (b"ada", None) in history.left() or (b"ada", b"secret") in history.left():
        assert time.monotonic() < deadline, history.left()
        history.put(b"tick", b"%d" % history.now_ms)
        time.sleep(1)
    broker.alter_topic(ingesting.topic, {"cleanup.policy": later_policy})

    [(name, error)] = ingesting.bring().failed.items()
    assert name == f"{ingesting.topic}-0"
    assert "longer ago than delete.retention.ms=1000 at its source" in str(error)
    assert history.here() == {b"ada": b"secret", b"bob": b"kept"}

    plans = ingesting.ingest.plan(ingesting.source, reconcile=True)
    result = ingesting.ingest.carry_out(plans, new_id())
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    assert set(history.here()) == {b"bob", b"tick"}
    assert ingesting.end_offsets() == [broker.end_offsets(ingesting.topic, 1)[0]]


def test_what_is_cleaned_and_read_in_time_is_not_stopped(broker: Broker, tmp_path: Path) -> None:
    ingesting = Ingesting(broker, tmp_path)
    history = History(ingesting)
    ingesting.create(config=ALWAYS_CLEANED | {"delete.retention.ms": "86400000"})
    history.put(b"ada", b"1")
    ingesting.bring_all()
    for number in range(4):
        history.put(b"ada", b"%d" % number)
    broker.wait_until_cleaned(ingesting.topic, {0: 4})
    assert len(history.left()) < 5
    ingesting.bring_all()
    assert history.here() == {b"ada": b"3"}
