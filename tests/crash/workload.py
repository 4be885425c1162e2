"""What the processes of these tests do to one topic.

Batches are made from their number, so that what was appended can be told afterwards from the log end offset alone.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Self

from keptlog.home import new_id
from keptlog.log.record import NewRecord, Record
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import carry_out, open_store

TOPIC = "killed"
BATCH_RECORDS = 20
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "delete.retention.ms": "0",
    "file.delete.delay.ms": "0",
    "internal.segment.bytes": "4000",
}
"""All is closed at once, tombstones go with the second clean, replaced files with the next purge; files are small."""


def batch(number: int) -> list[NewRecord]:
    """Records of few keys, a fifth of them tombstones."""
    chance = random.Random(number)
    return [
        NewRecord(
            key=b"key-%d" % chance.randrange(30),
            value=None if chance.random() < 0.2 else b"value %d of batch %d" % (index, number),
            timestamp_ms=1_700_000_000_000 + number,
        )
        for index in range(BATCH_RECORDS)
    ]


def appended(log_end_offset: int) -> list[Record]:
    """Everything that was appended to a log with this end: whole batches, or an append was not atomic."""
    batches, rest = divmod(log_end_offset, BATCH_RECORDS)
    assert rest == 0, f"the log ends at {log_end_offset}, in the middle of a batch"
    records = [record for number in range(batches) for record in batch(number)]
    return [Record(offset, new.key, new.value, new.timestamp_ms) for offset, new in enumerate(records)]


def clean(store: LogStore) -> None:
    """One pass over the topic, due or not."""
    cleaner = Cleaner(store, in_process_engine(store.files))
    result = carry_out(cleaner, cleaner.plan([TOPIC], now_ms=wall_clock_ms(), requested=True))
    for error in result.failed.values():
        raise error


def work(home: Path, rounds: int, caller: str, kill_at_call: int | None = None) -> int:
    """Append, then clean and purge; killed in one of the latter two, at that function call.

    Only calls from files whose path contains ``caller`` count. Most of all calls are made while Iceberg's metadata is
    written, so those of keptlog's own code are the better clock for all other moments.

    Returns:
        How many calls those two made, if it was not killed.
    """
    store = open_store(home)
    countdown = Countdown(caller, kill_at_call)
    for _ in range(rounds):
        number = store.logs(TOPIC)[0].log_end_offset // BATCH_RECORDS
        store.append(TOPIC, batch(number), new_id(), wall_clock_ms())
        store.append(TOPIC, batch(number + 1), new_id(), wall_clock_ms())
        with countdown:
            clean(store)
            store.purge(TOPIC, wall_clock_ms())
    return countdown.calls


class Countdown:
    """Counts function calls, Python's and C's, and kills this process at one of them, as ``kill -9`` would."""

    def __init__(self, caller: str, kill_at_call: int | None) -> None:
        self.calls = 0
        self._caller = caller
        self._last_call = kill_at_call

    def __enter__(self) -> Self:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        caller = {"call": frame.f_back, "c_call": frame}.get(event)
        if caller and self._caller in caller.f_code.co_filename:
            self.calls += 1
            if self.calls == self._last_call:
                os.kill(os.getpid(), signal.SIGKILL)


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000
