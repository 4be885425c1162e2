"""Random records go through an encoder and come back; random damage never does worse than it must."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.errors import LogCorrupt
from keptlog.log.record import Record, TimestampType
from keptlog.storage.schema import LARGEST_STORABLE_MS
from tests.sources.kafka_log.encoder import CODECS, BatchOptions, batch, read_log, whole_batch, write_segment

OLD_LOGS = Path(__file__).parents[2] / "data" / "legacy_logs"
BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=4).map(tuple)
TIMES_MS = st.integers(-1, 2**42) | st.sampled_from([0, -5, LARGEST_STORABLE_MS, -LARGEST_STORABLE_MS])


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Record], bytes]:
    """Records with gaps between their offsets, and the batches that hold them."""
    records: list[Record] = []
    content = b""
    next_offset = 0
    for _ in range(draw(st.integers(1, 5))):
        horizon_ms = draw(st.none() | st.integers(0, 2**42))
        is_append_time = draw(st.booleans())
        in_batch = []
        for gap in draw(st.lists(st.integers(1, 3), min_size=1, max_size=8)):
            next_offset += gap
            time_ms, headers = draw(TIMES_MS), draw(HEADERS)
            in_batch.append(Record(next_offset - 1, draw(BYTES), draw(BYTES), time_ms, headers=headers))
        last_offset = next_offset - 1 + draw(st.integers(0, 2))
        options = BatchOptions(
            codec=draw(st.sampled_from(sorted(CODECS))),
            is_append_time=is_append_time,
            delete_horizon_ms=horizon_ms,
            last_offset=last_offset,
        )
        content += batch(in_batch, options)
        if is_append_time:
            time_ms, kind = in_batch[-1].timestamp_ms, TimestampType.LOG_APPEND_TIME
            in_batch = [replace(record, timestamp_ms=time_ms, timestamp_type=kind) for record in in_batch]
        records += [replace(each, delete_horizon_ms=horizon_ms if each.is_tombstone else None) for each in in_batch]
        next_offset = last_offset + 1
    return records, content


@given(logs())
def test_records_come_back_as_they_were_written(log: tuple[list[Record], bytes]) -> None:
    records, content = log
    with tempfile.TemporaryDirectory() as folder:
        write_segment(Path(folder), 0, content)
        read = read_log(Path(folder))
        assert read.records == records
        assert read.scan.torn is None


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Some bytes changed, put in or taken out."""
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(content)))
        taken_out = draw(st.sampled_from([0, 1, 1, 1, 7, 100, len(content)]))
        content = content[:position] + draw(st.binary(max_size=20)) + content[position + taken_out :]
    return content


def contents(records: list[Record]) -> set[object]:
    """The records without what no checksum covers: their offsets."""
    return {(each.key, each.value, each.timestamp_ms, each.headers) for each in records}


@given(st.data(), logs())
def test_a_damaged_log_gives_what_is_left_of_it(data: st.DataObject, log: tuple[list[Record], bytes]) -> None:
    records, content = log
    _check_damaged(data.draw(damaged(content)), contents(records))


@pytest.mark.parametrize("name", ["v0.none-0", "v0.lz4-0", "v1.none-0", "v1.snappy-0"])
@given(data=st.data())
def test_a_damaged_log_in_an_old_format_gives_what_is_left_of_it(data: st.DataObject, name: str) -> None:
    content = (OLD_LOGS / name / f"{0:020d}.log").read_bytes()
    _check_damaged(data.draw(damaged(content)), contents(read_log(OLD_LOGS / name).records))


def _check_damaged(content: bytes, written: set[object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_segment(Path(folder), 0, content)
        left = read_log(Path(folder), skip_corrupt=True)
        assert contents(left.records) <= written
        try:
            strict = read_log(Path(folder))
        except LogCorrupt:
            assert left.skipped
        else:
            assert strict.records == left.records


@given(st.binary(max_size=400))
def test_random_bytes_are_no_log(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_segment(Path(folder), 0, content)
        read = read_log(Path(folder))
        assert not read.records
        assert (read.scan.torn is not None) == bool(content)


@given(
    payload=st.binary(max_size=200) | st.lists(st.sampled_from([0, 1, 2, 12, 128, 255]), max_size=60).map(bytes),
    count=st.integers(0, 6),
    codec=st.sampled_from(sorted(CODECS)),
    is_control=st.booleans(),
)
def test_random_bytes_under_a_right_checksum_are_corrupt_or_records(
    payload: bytes, count: int, codec: str, is_control: bool
) -> None:
    options = BatchOptions(codec=codec, is_control=is_control, is_transactional=is_control, producer_id=7)
    with tempfile.TemporaryDirectory() as folder:
        write_segment(Path(folder), 0, whole_batch(payload, (0, 9), (1, 1), count, options))
        left = read_log(Path(folder), skip_corrupt=True)
        assert len(left.records) + sum(count for _ in left.skipped) == (0 if is_control else count)
