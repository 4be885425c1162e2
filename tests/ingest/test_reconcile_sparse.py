"""What comparing takes grows with the records that are there, and not with the offsets that ever were."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from keptlog.engine.attempt import Attempt
from keptlog.engine.ingest_tasks import Skip
from keptlog.engine.reconcile_tasks import PresentOffsets, PresentTask
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from tests.ingest.test_reconcile import DAY_MS, NOW_MS, CompactedTopic, KeyedPart, Scene
from tests.local_log import LocalFiles
from tests.logs import open_store

LOG = TopicPartition("t", 0)


def test_records_that_lie_far_apart_are_compared_in_little_memory(tmp_path: Path) -> None:
    scene, source = Scene(open_store(tmp_path)), CompactedTopic(part_offsets=2**40)
    source.put(ada="1", bob="1")
    source.end = 150_000_000
    source.put(cat="1")
    assert not scene.bring(source).failed
    source.put(dan="1", ada=None)
    source.end = 300_000_000
    source.put(eve="1")
    source.clean(drop_tombstones=True)
    scene.now_ms += 2 * DAY_MS
    tracemalloc.start()
    try:
        result = scene.bring(source, reconcile=True)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    assert scene.state() == source.state()
    assert peak_bytes < 20_000_000


@dataclass(frozen=True)
class PartOfAHalf:
    """Every second offset has a record, on an average."""

    topic_partition: TopicPartition = LOG
    from_offset: int = 0
    end_offset: int = 1_000_000
    weight: int = 1

    def read(self, _skip: Skip) -> Iterator[pa.Table]:
        offsets = np.flatnonzero(np.random.default_rng(1).random(self.end_offset) < 0.5)
        for low in range(0, len(offsets), 4096):
            yield pa.table({"offset": offsets[low : low + 4096]})


def test_records_at_every_second_offset_are_compared_in_less_than_a_byte_each() -> None:
    result = PresentTask(PartOfAHalf()).run(Attempt(LocalFiles(), "run", 0, "attempt"))
    assert len(json.dumps(result)) < 500_000
    looked_up = np.arange(250_000, 260_000)
    tracemalloc.start()
    try:
        found = PresentOffsets.found_by([result]).has(looked_up)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    offsets = np.concatenate([table["offset"].to_numpy() for table in PartOfAHalf().read(print)])
    assert found.tolist() == np.isin(looked_up, offsets).tolist()
    assert peak_bytes < 500_000


@pytest.mark.parametrize("apart", [1, 1000])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_there_is_found_and_nothing_else(dice: Callable[[int], Random], seed: int, apart: int) -> None:
    chance = dice(seed)
    there = sorted(apart * offset for offset in chance.sample(range(40), chance.randint(0, 30)))
    cuts = sorted(chance.sample(range(1, 40 * apart), chance.randint(0, 4)))
    results = []
    for start, end in zip([0, *cuts], [*cuts, 40 * apart], strict=True):
        records = tuple(Record(offset, b"k", b"v", NOW_MS) for offset in there if start <= offset < end)
        task = PresentTask(KeyedPart(LOG, start, end, records, False))
        results.append(task.run(Attempt(LocalFiles(), "run", 0, "attempt")))
    chance.shuffle(results)
    assert np.flatnonzero(PresentOffsets.found_by(results).has(np.arange(50 * apart))).tolist() == there
