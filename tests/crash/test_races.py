"""Several processes at one topic at once: one of two cleans wins, and nobody's records are lost or doubled."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from keptlog.errors import StalePlan
from keptlog.home import new_id
from keptlog.log.record import NewRecord, Record
from keptlog.log.reference import clean_records
from keptlog.passes.clean import Cleaner, Pass
from tests.crash.workload import BATCH_RECORDS, SETTINGS, TOPIC, batch, wall_clock_ms
from tests.in_process import in_process_engine
from tests.logs import carry_out, open_store
from tests.model import invariants

ROUNDS = 5
BATCHES = 40
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.workload"])


def open_cleaner(home: Path) -> Cleaner:
    store = open_store(home)
    return Cleaner(store, in_process_engine(store.files))


def without_horizons(records: list[Record]) -> list[Record]:
    return [replace(record, delete_horizon_ms=None) for record in records]


def read(home: Path) -> list[Record]:
    return without_horizons([record for _, record in open_store(home).read(TOPIC)])


def record_at(offset: int, new: NewRecord) -> Record:
    return Record(offset, new.key, new.value, new.timestamp_ms)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    open_store(tmp_path).create_topic(TOPIC, 1, {**SETTINGS, "delete.retention.ms": "86400000"})
    return tmp_path


def test_of_two_cleans_at_once_one_wins_and_the_other_is_stale(home: Path) -> None:
    written: list[Record] = []
    for number in range(ROUNDS):
        open_store(home).append(TOPIC, batch(number), new_id(), wall_clock_ms())
        written += [record_at(len(written) + index, new) for index, new in enumerate(batch(number))]
        both_planned = Barrier(2)

        def one_clean(planned: Barrier = both_planned) -> Pass:
            cleaner, run_id = open_cleaner(home), new_id()
            plan = cleaner.plan([TOPIC], now_ms=wall_clock_ms(), requested=True)
            outcomes = cleaner.rewrite(plan.steps, run_id)
            planned.wait()
            return cleaner.commit(Pass(run_id, plan, tuple(outcomes)))

        with ThreadPoolExecutor(2) as threads:
            results = [future.result() for future in [threads.submit(one_clean) for _ in range(2)]]
        (stale,) = [error for result in results for error in result.failed.values()]
        assert isinstance(stale, StalePlan)
        assert "nothing lost" in str(stale)
        assert sum(len(result.committed) for result in results) == 1
        assert read(home) == without_horizons(clean_records([], written, 0, 0))


def append_batches(home: Path, appender: int) -> list[tuple[int, int]]:
    """Append this appender's batches; gives base offset and number of each."""
    store = open_store(home)
    appended = []
    for number in range(appender * BATCHES, (appender + 1) * BATCHES):
        result = store.append(TOPIC, batch(number), new_id(), wall_clock_ms())
        (here,) = result.partitions
        assert here.last_offset - here.base_offset == BATCH_RECORDS - 1
        appended.append((here.base_offset, number))
    return appended


def clean_and_purge_until_done(home: Path, appenders: list[Future[list[tuple[int, int]]]]) -> int:
    """How many cleans landed meanwhile."""
    cleaner, landed = open_cleaner(home), 0
    while True:
        is_last = all(appender.done() for appender in appenders)
        plan = cleaner.plan([TOPIC], now_ms=wall_clock_ms(), requested=True)
        result = carry_out(cleaner, plan)
        assert all(isinstance(error, StalePlan) for error in result.failed.values()), result.failed
        landed += len(result.committed)
        cleaner.store.purge(TOPIC, wall_clock_ms())
        if is_last and not result.failed:
            return landed
        wait(appenders, timeout=0.05)


def test_two_appenders_and_a_cleaner_leave_dense_offsets_and_all_records(home: Path) -> None:
    with ProcessPoolExecutor(2, PROCESSES) as processes:
        appenders = [processes.submit(append_batches, home, appender) for appender in range(2)]
        landed = clean_and_purge_until_done(home, appenders)
    placed = sorted(place for appender in appenders for place in appender.result())
    assert [base_offset for base_offset, _ in placed] == list(range(0, 2 * BATCHES * BATCH_RECORDS, BATCH_RECORDS))
    written = [
        record_at(base_offset + index, new) for base_offset, number in placed for index, new in enumerate(batch(number))
    ]
    log = read(home)
    invariants.g1_the_latest_record_of_every_key_is_kept(written, log)
    assert log == without_horizons(clean_records([], written, 0, 0))
    assert landed > 1
