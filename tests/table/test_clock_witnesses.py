"""Whether a clock is right each topic is asked once, and what does not answer is not waited for again and again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable
from keptlog.passes.purge import Purger
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.metadata.newest_change import newest_change_ms
from keptlog.table.purging.clock_guard import ClockGuard
from keptlog.table.store import LogStore
from keptlog.table.waiting.rest import TRIED_AGAIN_MS
from keptlog.table.waiting.side_by_side import AT_ONCE
from tests.table.counted_s3 import RESET, CountedS3
from tests.table.stores import COMPACTED, NOW_MS, new_id
from tests.table.test_clock_guard import DAY_MS, FAR_AHEAD_MS, store_of
from tests.table.test_requests import bucket, s3, server, store
from tests.table.test_store_faults import always

__all__ = ["bucket", "s3", "server", "store"]

IDLE = tuple(f"idle-{number:02}" for number in range(20))
WITNESS = "witness"
REFUSED = ("403 Forbidden", "AccessDenied")
DAMAGED = "damaged"


def made(home: Path, *topics: str, at_ms: int = NOW_MS) -> None:
    store = LogStore(open_catalog(home, lambda: at_ms), {}, lambda _: None, new_id)
    for topic in topics:
        store.create_topic(topic, 1, COMPACTED)


def damage(store: LogStore, topic: str) -> None:
    Path(store.metadata_locations()[topic].removeprefix("file://")).unlink()


def reads_of(store: LogStore) -> list[str]:
    """The topics that the guard reads, from now on."""
    reads, really = list[str](), store.clock_guard.load

    def load(topic: str) -> Table:
        reads.append(topic)
        return really(topic)

    store.clock_guard.load = load
    return reads


def judge(store: LogStore, topic: str = IDLE[0]) -> None:
    store.clock_guard.require_plausible(FAR_AHEAD_MS, store.load_table(topic))


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_purge_of_many_idle_topics_reads_each_once_beside_one_that_cant_be_read(tmp_path: Path, at_once: int) -> None:
    made(tmp_path, *IDLE)
    made(tmp_path, WITNESS, DAMAGED, at_ms=FAR_AHEAD_MS - DAY_MS)
    store = store_of(tmp_path)
    damage(store, DAMAGED)
    reads = reads_of(store)

    assert not Purger(store, at_once=at_once).purge(IDLE, now_ms=FAR_AHEAD_MS).failed

    assert sorted(reads) == sorted({*reads})


def test_only_what_could_not_be_read_is_asked_again_and_only_while_the_time_is_in_doubt(tmp_path: Path) -> None:
    made(tmp_path, *IDLE, DAMAGED)
    store = store_of(tmp_path)
    damage(store, DAMAGED)
    reads = reads_of(store)
    for asked in ({*IDLE[1:], DAMAGED}, {DAMAGED}, {DAMAGED}):  # its own table is there already
        reads.clear()
        with pytest.raises(InvalidConfig, match="topic damaged may have a newer one"):
            judge(store)
        assert {*reads} == asked
    made(tmp_path, WITNESS, at_ms=FAR_AHEAD_MS - DAY_MS)
    for asked in ({WITNESS, DAMAGED}, set()):
        reads.clear()
        judge(store)
        assert {*reads} == asked


def test_a_topic_that_was_committed_to_since_is_read_again(tmp_path: Path) -> None:
    made(tmp_path, *IDLE)
    store = store_of(tmp_path)
    reads = reads_of(store)
    with pytest.raises(InvalidConfig):
        judge(store)
    later = LogStore(open_catalog(tmp_path, lambda: FAR_AHEAD_MS - DAY_MS), {}, lambda _: None, new_id)
    later.alter_topic(IDLE[-1], {"segment.ms": "1000"})
    reads.clear()
    judge(store)
    assert reads == [IDLE[-1]]


def test_a_topic_that_is_gone_confirms_nothing_any_more(tmp_path: Path) -> None:
    """One whose commits a wrong clock has dated may be deleted for that."""
    made(tmp_path, *IDLE)
    made(tmp_path, WITNESS, at_ms=FAR_AHEAD_MS - DAY_MS)
    store = store_of(tmp_path)
    judge(store)
    store_of(tmp_path).delete_topic(WITNESS, NOW_MS)
    with pytest.raises(InvalidConfig, match="the newest commit of all topics is of"):
        judge(store)


def test_nobody_more_is_asked_once_a_topic_has_confirmed_the_clock(tmp_path: Path) -> None:
    made(tmp_path, IDLE[0])
    made(tmp_path, *IDLE[1:], at_ms=FAR_AHEAD_MS - DAY_MS)
    store = store_of(tmp_path)
    reads = reads_of(store)
    judge(store)
    assert len(reads) == AT_ONCE


class Waiting:
    """A clock that shows how long was waited: a second at each look at it."""

    def __init__(self) -> None:
        self.now_ms = FAR_AHEAD_MS

    def __call__(self) -> int:
        self.now_ms += 1_000
        return self.now_ms


def test_a_store_that_is_away_is_waited_for_once_and_not_for_each_topic_of_a_pass(
    store: LogStore, s3: CountedS3
) -> None:
    for topic in IDLE[:5]:
        store.create_topic(topic, 1, COMPACTED)
    clock = store.clock_guard.clock_ms = Waiting()
    table = store.load_table(IDLE[0])
    s3.refuse = always(RESET)
    s3.forget()
    for requests in (2 * 4, 0, 0):  # a read would go on to ask
        with pytest.raises(StorageUnavailable, match=r"topics that can be read is of .*: nothing was deleted"):
            store.clock_guard.require_plausible(FAR_AHEAD_MS, table)
        assert len(s3.requests) == requests
        s3.forget()

    s3.refuse = lambda _: None
    clock.now_ms += TRIED_AGAIN_MS
    with pytest.raises(InvalidConfig, match="the newest commit of all topics is of"):
        store.clock_guard.require_plausible(FAR_AHEAD_MS, table)


def beside_a_witness(store: LogStore) -> tuple[Table, int, dict[str, str]]:
    """The table of an idle topic, a time that the newest of all alone confirms, and the setting by which it does."""
    for topic in (*IDLE, WITNESS):
        store.create_topic(topic, 1, COMPACTED)
    table = store.load_table(IDLE[0])
    last_ms, confirmed_ms = (newest_change_ms(store.load_table(topic).metadata) for topic in (IDLE[-1], WITNESS))
    broker = {"keptlog.clock.max.jump.ms": str((confirmed_ms - last_ms) // 2)}
    return table, confirmed_ms, broker


def test_a_topic_that_can_be_read_confirms_the_clock_though_most_others_are_refused(
    store: LogStore, s3: CountedS3
) -> None:
    """Of many, some are asked whether the store answers. Which ones these are, goes by the second."""
    table, confirmed_ms, broker = beside_a_witness(store)
    s3.refuse = lambda request: REFUSED if "/idle-" in request.path else None
    for second in range(4):
        guard = ClockGuard(broker, store.load_table, store.metadata_locations, store)
        guard.clock_ms = partial(int, confirmed_ms + second * 1_000)
        guard.require_plausible(confirmed_ms, table)

    s3.refuse = always(REFUSED)
    guard = ClockGuard(broker, store.load_table, store.metadata_locations, store, partial(int, confirmed_ms))
    with pytest.raises(StorageUnavailable, match=r"topic idle-01 \(and 19 more\) may have a newer one") as refused:
        guard.require_plausible(confirmed_ms, table)
    assert refused.value.is_refused


def test_a_witness_is_read_also_where_one_topic_gives_no_answer_and_the_others_are_refused(
    store: LogStore, s3: CountedS3
) -> None:
    """Also in the second in which the silent one is asked for first, and the witness is not among those beside it."""
    table, confirmed_ms, broker = beside_a_witness(store)
    s3.refuse = lambda request: (RESET if IDLE[6] in request.path else REFUSED) if "/idle-" in request.path else None
    to_ask = [*IDLE[1:], WITNESS]
    second = (to_ask.index(IDLE[6]) - confirmed_ms // 1_000) % len(to_ask)
    clock_ms = partial(int, confirmed_ms + second * 1_000)
    ClockGuard(broker, store.load_table, store.metadata_locations, store, clock_ms).require_plausible(
        confirmed_ms, table
    )


@pytest.mark.parametrize("second", range(4))
def test_a_topic_that_is_refused_has_no_other_read_from_a_store_that_was_waited_for(
    store: LogStore, s3: CountedS3, second: int
) -> None:
    for topic in IDLE[:5]:
        store.create_topic(topic, 1, COMPACTED)
    clock = store.clock_guard.clock_ms = Waiting()
    clock.now_ms += second * 1_000
    table = store.load_table(IDLE[0])
    s3.refuse = lambda request: REFUSED if IDLE[1] in request.path else RESET
    reads = reads_of(store)
    with pytest.raises(StorageUnavailable, match=r"topics that can be read is of .*: nothing was deleted") as refused:
        store.clock_guard.require_plausible(FAR_AHEAD_MS, table)
    assert not refused.value.is_refused
    assert not {*reads} - {IDLE[1]}


@pytest.mark.parametrize(
    ("error", "reads_then"),
    [(StorageUnavailable("no answer"), 0), (StorageUnavailable("denied").for_good(), 1), (LogCorrupt("no file"), 1)],
    ids=["silent", "refused", "damaged"],
)
def test_a_topic_that_was_waited_for_in_vain_is_left_alone_for_a_while_until_the_clock_is_set(
    tmp_path: Path, error: Exception, reads_then: int
) -> None:
    made(tmp_path, *IDLE[:2])
    store = store_of(tmp_path)
    clock = store.clock_guard.clock_ms = Waiting()
    really, reads = store.clock_guard.load, list[str]()

    def load(topic: str) -> Table:
        if topic == IDLE[0]:
            return really(topic)
        reads.append(topic)
        raise error

    store.clock_guard.load = load
    for asked in (1, reads_then):
        reads.clear()
        with pytest.raises((StorageUnavailable, InvalidConfig), match=f"topic {IDLE[1]} may have a newer one"):
            judge(store)
        assert len(reads) == asked
    clock.now_ms -= DAY_MS  # a machine that had no network has found the time
    reads.clear()
    with pytest.raises((StorageUnavailable, InvalidConfig)):
        store.clock_guard.require_plausible(clock.now_ms, store.load_table(IDLE[0]))
    assert len(reads) == 1
