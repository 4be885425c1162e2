"""A row group is read for its keys only where one of the mapped keys may lie in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keptlog.kernels import key_ranges
from keptlog.kernels.key_ranges import KeyRange, may_hold
from keptlog.kernels.offset_map import map_dirty
from keptlog.kernels.rewrite import Output, RunRewrite, rewrite_run
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.storage.segment_reader import SegmentFile
from tests.building import Clean
from tests.local_log import LocalFiles, read, write_segment

FILES = LocalFiles()
KEYS = st.binary(max_size=2)


@pytest.fixture(params=[1, 1000])
def sampled_keys(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys are compared with the ranges, or few of them first."""
    monkeypatch.setattr(key_ranges, "SAMPLED_KEYS", request.param)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ends=st.lists(st.tuples(KEYS, KEYS).map(sorted), min_size=1, max_size=8),
    chunks=st.lists(st.lists(KEYS, max_size=4), min_size=1, max_size=4).filter(any),
)
def test_a_range_is_found_if_a_key_lies_in_it(
    sampled_keys: None, ends: list[list[bytes]], chunks: list[list[bytes]]
) -> None:
    keys = [key for chunk in chunks for key in chunk]
    found = may_hold([KeyRange(low, high, 16) for low, high in ends], pa.chunked_array(chunks, pa.binary()))
    assert found.tolist() == [any(low <= key <= high for key in keys) for low, high in ends]


def test_ranges_with_few_records_are_not_compared_with_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_ranges, "SAMPLED_KEYS", 1)
    keys = pa.chunked_array([[b"b", b"c", b"d"]], pa.binary())
    assert may_hold([KeyRange(b"x", b"y", 2)], keys).tolist() == [True]
    assert may_hold([KeyRange(b"x", b"y", 3)], keys).tolist() == [False]


def test_keys_may_have_more_bytes_than_one_of_arrows_arrays() -> None:
    records, key_bytes = 2**20, 1000
    ends = np.arange(0, (records + 1) * key_bytes, key_bytes, dtype=np.int32)
    content = pa.py_buffer(np.zeros(records * key_bytes, np.uint8))
    chunk = pa.Array.from_buffers(pa.binary(), records, [None, pa.py_buffer(ends), content])
    keys = pa.chunked_array([chunk] * 3)
    ranges = [KeyRange(b"", b"a", 1), KeyRange(b"a", b"b", 10 * records)]
    assert may_hold(ranges, keys).tolist() == [True, False]


class Reads:
    """What is read of which row group of which file, while segments are cleaned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys_read: list[tuple[str, int]] = []
        read_row_group = SegmentFile.read

        def recorded(opened: SegmentFile, row_group: int, columns: Sequence[str] | None = None) -> pa.Table:
            if columns is None or "key" in columns:
                self.keys_read.append((Path(opened._path).name, row_group))
            return read_row_group(opened, row_group, columns)

        monkeypatch.setattr(SegmentFile, "read", recorded)


def cleaned(tmp_path: Path, clean: list[Segment], dirty: list[Record]) -> RunRewrite:
    segments = [*clean, write_segment(tmp_path / "dirty", dirty)]
    step = Clean(dirty[0].offset, dirty[-1].offset + 1, segment_bytes=1).step(segments)
    latest = map_dirty(FILES, step, step.dirty).offset_map
    return rewrite_run(FILES, step, step.segments, latest, Output(lambda base: str(tmp_path / f"out-{base}")))


def in_time_order(tmp_path: Path, name: str, first: int) -> Segment:
    """Sixteen records in four row groups, whose keys rise with their offsets."""
    records = [Record(offset, b"%03d" % offset, b"v", 1) for offset in range(first, first + 16)]
    return write_segment(tmp_path / name, records, 4)


def test_one_old_key_costs_the_row_group_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, kept, newest = (in_time_order(tmp_path, name, first) for name, first in (("a", 0), ("b", 16), ("c", 32)))
    reads = Reads(monkeypatch)
    dirty = [Record(48, b"005", b"n", 1), Record(49, b"046", b"n", 1), Record(50, b"999", b"n", 1)]
    run = cleaned(tmp_path, [old, kept, newest], dirty)
    judged = [each for each in reads.keys_read if each[0] != "dirty"]
    # 5 lies in the second row group of its segment, 46 in the last: looked at to judge; the rest of both is rewritten.
    assert judged == [("a", 1), ("c", 3), *(("a", n) for n in (0, 2, 3)), *(("c", n) for n in (0, 1, 2))]
    assert [segment.path for segment in run.removed] == [old.path, newest.path, str(tmp_path / "dirty")]
    left = [record.offset for segment in run.added for record in read([segment.path])]
    assert left == [*(set(range(16)) - {5}), *(set(range(32, 48)) - {46}), 48, 49, 50]
    assert (run.counts.kept, run.counts.superseded) == (49, 2)


def test_a_row_group_with_a_record_without_a_key_is_read(tmp_path: Path) -> None:
    records = [Record(0, b"a", b"v", 1), Record(1, None, b"v", 1), Record(2, b"b", b"v", 1)]
    segment = write_segment(tmp_path / "a", records, 1)
    run = cleaned(tmp_path, [segment], [Record(3, b"z", b"n", 1)])
    assert (run.counts.unkeyed, run.counts.kept) == (1, 3)
    assert [record.offset for each in run.added for record in read([each.path])] == [0, 2, 3]
