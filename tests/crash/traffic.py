"""Processes that work on one topic at once, until somebody kills them, and what a reader must see meanwhile.

A worker throws dice: it appends a batch, appends one of its batches again under the same run id, cleans, or purges with
a grace so short that files of a process that sleeps are swept. What it begins and what was acknowledged it writes to a
file of its own, one line at a time, so that a ``kill -9`` leaves what it has said.

Every batch begins with a record of a key that no other has, its *marker*. Compaction never takes it. So the log itself
tells which batches landed and where, and with that all that was ever appended:

    log     [marker 7][ b ]   [ d ][marker 3]   [ f ]        batch 7 at offset 0, batch 3 at 21
    then    [ 21 records of batch 7          ][ 21 records of batch 3      ]        is what the log was made from
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from keptlog.errors import CommitStateUnknown, StalePlan, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.record import NewRecord, Record
from keptlog.log.reference import clean_records, latest_values
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.crash.workload import TOPIC, batch, wall_clock_ms
from tests.in_process import in_process_engine
from tests.logs import carry_out, open_store
from tests.model import invariants

GRACE_MS = 500
"""Of orphans: shorter than a worker may sleep, so that purges and zombies meet."""
_MARKER = b"batch-"
_BATCHES_OF_A_WORKER = 10**6


def marked_batch(number: int) -> list[NewRecord]:
    """A batch's marker, and its records."""
    marker = NewRecord(key=_MARKER + b"%d" % number, value=b"%d" % number, timestamp_ms=1_700_000_000_000)
    return [marker, *batch(number)]


BATCH_RECORDS = len(marked_batch(0))


@dataclass(frozen=True, slots=True)
class Journal:
    """What one worker has begun, and what was acknowledged to it."""

    path: Path

    def say(self, word: str, number: int | str) -> None:
        """One line, whole or not at all."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, f"{word} {number}\n".encode())
        finally:
            os.close(descriptor)

    def said(self, word: str) -> list[str]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{word} ")]

    def batches(self, word: str) -> set[int]:
        return {int(number) for number in self.said(word)}


def journals_in(folder: Path) -> list[Journal]:
    return [Journal(path) for path in sorted(folder.glob("worker-*"))]


def work_until_killed(home: Path, folder: Path, worker: int, seed: str) -> None:
    """Do what the dice say, for ever; what a worker may not meet ends it, and stands in its journal."""
    journal, chance = Journal(folder / f"worker-{worker}"), Random(seed)
    try:
        store = open_store(home)
        cleaner = Cleaner(store, in_process_engine(store.files))
        journal.say("ready", worker)
        while True:
            try:
                do_something(cleaner, journal, worker, chance)
            except (StalePlan, CommitStateUnknown, StorageUnavailable) as error:
                journal.say("refused", " ".join(f"{type(error).__name__}: {error}".split()))
    except BaseException:
        journal.say("broken", traceback.format_exc().replace("\n", " | "))
        raise


def do_something(cleaner: Cleaner, journal: Journal, worker: int, chance: Random, grace_ms: int = GRACE_MS) -> None:
    """One thing that the dice say; what is begun and what is acknowledged stands in the journal."""
    store, begun = cleaner.store, sorted(journal.batches("began"))
    what = chance.choices(["append", "again", "clean", "purge"], [4, 2, 2, 2])[0]
    if what == "append" or (what == "again" and not begun):
        number = worker * _BATCHES_OF_A_WORKER + len(begun)
        journal.say("began", number)
        store.append(TOPIC, marked_batch(number), f"run-{number}", wall_clock_ms())
        journal.say("acked", number)
    elif what == "again":
        number = chance.choice(begun[-20:])
        store.append(TOPIC, marked_batch(number), f"run-{number}", wall_clock_ms())
        journal.say("acked", number)
    elif what == "clean":
        result = carry_out(cleaner, cleaner.plan([TOPIC], now_ms=wall_clock_ms(), requested=True), new_id())
        for error in result.failed.values():
            raise error
    else:
        store.purge(TOPIC, wall_clock_ms(), orphan_grace_ms=grace_ms)


def acknowledged(folder: Path) -> set[int]:
    return {number for journal in journals_in(folder) for number in journal.batches("acked")}


def require_cleaned_once(store: LogStore, written: list[Record]) -> list[Record]:
    """See that the log is what one undisturbed clean makes of all that was written; gives it without its horizons."""
    once = without_horizons(clean_records([], written, 0, 0))
    log = without_horizons([record for _, record in store.read(TOPIC)])
    assert log == [record for record in once if not record.is_tombstone]
    return log


def require_only_live_files(store: LogStore) -> None:
    """Purge without grace, and see that what is left is what the log shows."""
    for _ in range(2):
        store.purge(TOPIC, wall_clock_ms(), orphan_grace_ms=0)
    live = {segment.path for each in store.logs(TOPIC) for segment in each.segments}
    listed = {file.path for file in store.files.list(store.data_location(TOPIC))}
    # An object store may list folders, as names that end with a slash; a disk lists files.
    assert {path for path in listed if not path.endswith("/")} == live


def require_whole(store: LogStore, folder: Path) -> list[Record]:
    """Read the log once, and compare it with what was acknowledged before; gives all that it was made from."""
    before = acknowledged(folder)
    log = [record for _, record in store.read(TOPIC)]
    placed = _markers(log)
    lost = before - {number for _, number in placed}
    assert not lost, f"acknowledged, but not in the log: {sorted(lost)}"
    offsets = [offset for offset, _ in placed]
    assert offsets == list(range(0, len(placed) * BATCH_RECORDS, BATCH_RECORDS)), f"not side by side: {placed}"
    written = [
        Record(offset + index, new.key, new.value, new.timestamp_ms)
        for offset, number in placed
        for index, new in enumerate(marked_batch(number))
    ]
    invariants.g1_the_latest_record_of_every_key_is_kept(written, log)
    invariants.g2_order_never_changes(log)
    invariants.g3_an_offset_never_changes(written, log)
    assert latest_values(log) == latest_values(written)
    return written


def without_horizons(records: Sequence[Record]) -> list[Record]:
    return [replace(record, delete_horizon_ms=None) for record in records]


def _markers(log: Sequence[Record]) -> list[tuple[int, int]]:
    """Offset and number of each batch; fails if one is there twice."""
    placed = [(record.offset, int(record.value or b"")) for record in log if (record.key or b"").startswith(_MARKER)]
    numbers = sorted(number for _, number in placed)
    twice = [number for number, following in pairwise(numbers) if number == following]
    assert not twice, f"in the log twice: {twice}"
    return placed
