"""``kill -9`` in the middle of an import: what it brought is whole, and the next one brings the rest, once."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

from keptlog.home import new_id
from keptlog.log.record import Record
from keptlog.table.store import LogStore
from tests.crash.workload import Countdown
from tests.ingest.directories import records_of, run_import, some_batch, some_records, write_log
from tests.logs import open_store

KILLS = 10
BATCH_RECORDS = 20
LOGS = (("a", 0), ("a", 1), ("b", 0))
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.test_kill_import"])


def import_all(home: Path, there: Path, kill_at_call: int | None = None) -> int:
    """Import; killed at that call that keptlog makes. Gives how many it made, if it was not killed."""
    store = open_store(home)
    with Countdown("keptlog/", kill_at_call) as countdown:
        run_import(store, there, new_id())
    return countdown.calls


def copy_of_day(there: Path, day: int) -> list[Record]:
    """The directory with one segment more in every log; gives what each log holds then."""
    for topic, partition in LOGS:
        offset = day * BATCH_RECORDS
        write_log(there, f"{topic}-{partition}", [some_batch(offset, BATCH_RECORDS)], base_offset=offset)
    return some_records(0, (day + 1) * BATCH_RECORDS)


def records_by_log(store: LogStore) -> list[list[Record]]:
    return [records_of(store, topic, partition) for topic, partition in LOGS]


def test_a_killed_import_brings_all_of_a_topic_or_nothing_and_the_next_one_the_rest(
    tmp_path: Path, dice: Callable[[int], Random]
) -> None:
    home, there = tmp_path / "home", tmp_path / "there"
    before = copy_of_day(there, 0)
    import_all(home, there)
    copy_of_day(there, 1)
    calls = import_all(home, there)
    before = copy_of_day(there, 1)
    chance = dice(5)
    for day in range(2, 2 + KILLS):
        now = copy_of_day(there, day)
        process = PROCESSES.Process(target=import_all, args=(home, there, chance.randrange(1, calls)))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, f"kill of day {day} did not happen"
        a_0, a_1, b_0 = records_by_log(open_store(home))
        assert a_0 == a_1
        assert all(records in (before, now) for records in (a_0, b_0))
        import_all(home, there)
        assert records_by_log(open_store(home)) == [now] * 3
        before = now
    store = open_store(home)
    store.purge("a", 2**53, orphan_grace_ms=0)
    live = {segment.path for log in store.logs("a") for segment in log.segments}
    assert {file.path for file in store.files.list(store.data_location("a"))} == live
