"""What judges records takes memory by the bytes of their keys, not by how many they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from keptlog.kernels import offset_map
from keptlog.kernels.inputs import OpenInputs
from keptlog.kernels.judge import judge
from keptlog.kernels.offset_map import OffsetMap, grouped_for_lookup, map_dirty
from keptlog.kernels.rivals import compare
from keptlog.log.record import Record
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.storage.segment_reader import SegmentFile
from tests.building import Clean
from tests.local_log import LocalFiles, write_segment

FILES = LocalFiles()
CLEAN, DIRTY, ROW_GROUP = 10_000, 100, 500
AT_ONCE = 20_000
"""More records than the log has: the number alone bounds nothing."""
BOUND_BYTES = AT_ONCE * offset_map.RECORD_BYTES


@pytest.fixture(autouse=True)
def small_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_map, "LOOKUP_RECORDS", AT_ONCE)
    monkeypatch.setattr(offset_map, "FOLD_RECORDS", AT_ONCE)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What Arrow has taken, behind each row group that is read."""
    taken: list[int] = []
    really = SegmentFile.read

    def read(opened: SegmentFile, *arguments: Any) -> pa.Table:
        table = really(opened, *arguments)
        taken.append(pa.total_allocated_bytes())
        return table

    monkeypatch.setattr(SegmentFile, "read", read)
    return taken


def a_step(folder: Path, key_bytes: int, strategy: StrategyKind = StrategyKind.OFFSET) -> Compact:
    """Each clean key once, and then some of them again; in row groups of ``ROW_GROUP``."""
    numbers = [*range(CLEAN), *range(0, CLEAN, CLEAN // DIRTY)]
    records = [Record(offset, b"%0*d" % (key_bytes, number), b"v", 1) for offset, number in enumerate(numbers)]
    half = CLEAN // 2
    parts = [records[:half], records[half:CLEAN], records[CLEAN:]]
    segments = [write_segment(folder / f"in-{number}", part, ROW_GROUP) for number, part in enumerate(parts)]
    return Clean(CLEAN, CLEAN + DIRTY, strategy=Strategy(strategy)).step(segments)


def mapped(step: Compact) -> OffsetMap:
    return map_dirty(FILES, step, step.dirty).offset_map


def test_records_with_long_keys_are_looked_up_few_at_a_time(tmp_path: Path, memory: list[int]) -> None:
    step = a_step(tmp_path, key_bytes=1_000)
    latest, before = mapped(step), pa.total_allocated_bytes()
    with OpenInputs(FILES, step) as inputs:
        judged = judge(inputs, step.segments, latest)
    assert (judged.counts.kept, judged.counts.superseded, judged.winners_found) == (CLEAN, DIRTY, DIRTY)
    assert max(memory) - before < 5 * BOUND_BYTES < CLEAN * 1_000


def test_long_keys_are_not_held_until_the_rewrite(tmp_path: Path) -> None:
    for key_bytes, are_held in ((20, True), (1_000, False)):
        step = a_step(tmp_path / str(key_bytes), key_bytes)
        with OpenInputs(FILES, step) as inputs:
            assert bool(judge(inputs, step.segments, mapped(step)).read) is are_held


def test_records_with_versions_and_long_keys_are_compared_few_at_a_time(tmp_path: Path, memory: list[int]) -> None:
    step = a_step(tmp_path, 1_000, StrategyKind.TIMESTAMP)
    latest, before = mapped(step), pa.total_allocated_bytes()
    judged = compare(FILES, step, step.segments, latest).settled(len(latest))
    assert judged.winners == DIRTY
    assert max(memory) - before < 5 * BOUND_BYTES < CLEAN * 1_000


@pytest.mark.parametrize("key_bytes", [1, 20, 36, offset_map.RECORD_BYTES])
def test_of_short_keys_the_number_of_records_counts(key_bytes: int) -> None:
    row_group = pa.table({"key": pa.array([b"k" * key_bytes] * ROW_GROUP), "offset": range(ROW_GROUP)})
    groups = list(grouped_for_lookup([row_group] * 100, lambda each: each, map_weight=0))
    assert [len(group) for group in groups] == [AT_ONCE // ROW_GROUP, AT_ONCE // ROW_GROUP, 20]


def test_a_lookup_is_as_large_as_the_map_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_map, "MOST_LOOKUP_RECORDS", 2 * AT_ONCE)
    row_group = pa.table({"key": pa.array([b"k" * 400] * ROW_GROUP)})
    for map_weight, together in ((0, 4), (BOUND_BYTES * 3 // 2, 6), (BOUND_BYTES * 9, 8)):
        [first, *_] = grouped_for_lookup([row_group] * 100, lambda each: each, map_weight)
        assert len(first) == together
