"""``kill -9`` in the middle of a clean or a purge: nothing is lost, nothing is doubled, nothing is left behind."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from keptlog.log.record import Record
from keptlog.log.reference import clean_records, latest_values
from keptlog.table.store import LogStore
from tests.crash.workload import SETTINGS, TOPIC, appended, clean, wall_clock_ms, work
from tests.logs import open_store
from tests.model import invariants

KILLS = 10
ROUNDS = 2
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.workload"])


def read(store: LogStore) -> list[Record]:
    return [record for _, record in store.read(TOPIC)]


def require_nothing_lost(store: LogStore) -> list[Record]:
    """The log as the kill left it; gives what was appended to it."""
    written = appended(store.logs(TOPIC)[0].log_end_offset)
    log = read(store)
    invariants.g1_the_latest_record_of_every_key_is_kept(written, log)
    invariants.g2_order_never_changes(log)
    invariants.g3_an_offset_never_changes(written, log)
    assert latest_values(log) == latest_values(written)
    return written


def require_as_if_cleaned_once(store: LogStore, written: list[Record]) -> None:
    """Two more passes bring the log to where one undisturbed clean and the expiry of its tombstones would."""
    clean(store)
    clean(store)
    cleaned_once = [replace(record, delete_horizon_ms=None) for record in clean_records([], written, 0, 0)]
    assert read(store) == [record for record in cleaned_once if not record.is_tombstone]


@pytest.mark.parametrize("caller", ["keptlog/", "pyiceberg/"])
def test_kills_at_any_moment_of_clean_and_purge_lose_nothing_and_leave_no_orphan(
    tmp_path: Path, dice: Callable[[int], Random], caller: str
) -> None:
    store = open_store(tmp_path)
    store.create_topic(TOPIC, 1, SETTINGS)
    calls = work(tmp_path, ROUNDS, caller)
    chance = dice(20)
    for kill in range(KILLS):
        process = PROCESSES.Process(target=work, args=(tmp_path, 2 * ROUNDS, caller, chance.randrange(1, calls)))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, f"kill {kill} did not happen"
        reopened = open_store(tmp_path)
        written = require_nothing_lost(reopened)
        if kill % 2:
            require_as_if_cleaned_once(reopened, written)
    store.purge(TOPIC, wall_clock_ms(), orphan_grace_ms=0)
    live = {segment.path for log in store.logs(TOPIC) for segment in log.segments}
    assert {file.path for file in store.files.list(store.data_location(TOPIC))} == live
    require_as_if_cleaned_once(store, require_nothing_lost(store))
