"""Open requests cost whoever only looks nothing: no file of theirs is read, and a topic's properties stay small."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ReachedState
from keptlog.passes.observer import Observer
from keptlog.storage.segment_reader import open_segment
from keptlog.table.changes.erasures import RegisterChange
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.state import ERASURES, OPEN_ERASURES, read_open_erasures
from tests.erasure.world import DAY_MS, World, new_id

OPEN = 100
"""For each topic; with 1,000 topics that makes 100,000."""


def with_open_erasures(world: World, topic: str, count: int) -> None:
    """So many requests in one commit, which no command makes."""
    world.create(topic)
    described = world.store.describe_topic(topic)
    change = RegisterChange(described, world.store.committer, world.store.files, new_id, world.now_ms)
    requested = ReachedState(ErasureState.REQUESTED.value, world.now_ms)
    erasures = [
        Erasure(
            f"r{number}",
            "tombstone",
            world.now_ms,
            world.now_ms + DAY_MS + number,
            "request",
            "0" * 16,
            (f"{number:064x}",),
            (ErasureBound(0, 0, 1),),
            reached=(requested,),
        )
        for number in range(count)
    ]
    change._change("planted", lambda _table, _known: erasures, lambda _: world.now_ms + DAY_MS, since=None)


def test_a_quiet_look_reads_no_register_however_many_are_open(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [f"t{number}" for number in range(5)]
    for topic in topics:
        with_open_erasures(world, topic, OPEN)
    reads: Counter[str] = Counter()
    real = TableFiles.read_bytes

    def counted(files: TableFiles, path: str) -> Any:
        reads["register" if "/erasures/" in path else "other"] += 1
        return real(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", counted)
    store = world.store
    observer = Observer(store, lambda: 0)
    for _ in range(3):
        overview = observer.look(world.now_ms)
    assert [overview.erasures[topic].count for topic in topics] == [OPEN] * len(topics)
    assert overview.erasures["t0"].earliest_deadline_ms == world.now_ms + DAY_MS
    assert reads["register"] == 0


def test_the_properties_of_a_topic_stay_small_however_many_are_open(world: World) -> None:
    for topic, count in (("few", OPEN), ("many", 20 * OPEN)):
        with_open_erasures(world, topic, count)
    few, many = (world.store.load_table(topic).properties for topic in ("few", "many"))
    assert read_open_erasures("many", many).count == 20 * OPEN
    sizes = [len(each[ERASURES] + each[OPEN_ERASURES]) for each in (few, many)]
    assert max(sizes) < 1000
    # Only the counts, which stand there for each need and each deadline, have a digit or two more.
    assert sizes[1] - sizes[0] < 60


def test_topics_without_open_requests_are_not_read_to_bring_them_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    with_open_erasures(world, "t", 3)
    read: list[str] = []
    real = TableFiles.read_bytes

    def remembered(files: TableFiles, path: str) -> Any:
        read.append(path)
        return real(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", remembered)
    assert world.eraser.advance(["users"], now_ms=world.now_ms).rows == ()
    assert [path for path in read if "/erasures/" in path] == []


def test_each_live_segment_is_read_once_for_all_requests_that_wait_for_its_tombstones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    for number in range(5):
        world.ask(b"key-%08d" % number, id=f"r{number}")
    world.later(2 * 3_600_000)
    world.clean()
    opened: list[str] = []
    real = open_segment

    def counted(files: Any, segment: Any) -> Any:
        opened.append(segment.path)
        return real(files, segment)

    monkeypatch.setattr("keptlog.passes.erasures.erase_look.open_segment", counted)
    rows = world.eraser.advance(now_ms=world.now_ms).rows
    assert {row.erasure.state for row in rows} == {ErasureState.COMPACTED}
    assert len(opened) == len(world.store.logs("users")[0].segments) == 1
