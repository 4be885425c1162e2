"""The Arrow kernels against the rule for one record: any log, any cut into segments, any state of its tombstones."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from keptlog.errors import StalePlan
from keptlog.kernels import key_ranges, offset_map
from keptlog.kernels.offset_map import OffsetMap, map_dirty
from keptlog.kernels.rewrite import Output, rewrite_run
from keptlog.log.record import Record, TimestampType
from keptlog.log.reference import clean_records
from keptlog.log.result import Counts, RewriteResult, verify
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact
from keptlog.log.verdict import Verdict, verdict
from keptlog.storage import keys
from keptlog.storage.segment_writer import SegmentWriter
from tests.building import Clean
from tests.local_log import LocalFiles, live_records, live_segments, read, write_segment, write_segments
from tests.profiles import examples

FILES = LocalFiles()
NOW_MS = 10_000
KEYS = st.one_of(st.none(), st.sampled_from([b"", b"a", b"b", b"c", b"\x00", b"long key " * 9]))
HEADERS = st.lists(st.tuples(st.sampled_from(["", "h"]), st.one_of(st.none(), st.binary(max_size=2))), max_size=2)


@st.composite
def a_record(draw: st.DrawFn, *, stamped: bool = True) -> Record:
    value = draw(st.one_of(st.none(), st.binary(max_size=3)))
    horizon_ms = draw(st.one_of(st.none(), st.integers(NOW_MS - 2, NOW_MS + 2))) if stamped and value is None else None
    return Record(
        offset=0,
        key=draw(KEYS),
        value=value,
        timestamp_ms=draw(st.integers(-1, 5)),
        timestamp_type=draw(st.sampled_from(TimestampType)),
        headers=tuple(draw(HEADERS)),
        delete_horizon_ms=horizon_ms,
    )


@st.composite
def a_log(draw: st.DrawFn, records: st.SearchStrategy[Record]) -> list[list[Record]]:
    """Records at rising offsets with gaps, cut into segments."""
    numbered: list[Record] = []
    offset = draw(st.integers(0, 3))
    for record in draw(st.lists(records, min_size=1, max_size=24)):
        numbered.append(replace(record, offset=offset))
        offset += draw(st.sampled_from([1, 1, 1, 2, 40]))
    cuts = sorted(draw(st.sets(st.integers(1, len(numbered)), max_size=6)) | {0, len(numbered)})
    return [numbered[start:stop] for start, stop in pairwise(cuts)]


@dataclass
class OnDisk:
    """A log as files in a folder of its own."""

    folder: Path
    segments: list[Segment]

    def rewritten(self, step: CleanStep) -> RewriteResult:
        """One run over all segments, and verified."""
        numbers = count()

        def path_for(base_offset: int) -> str:
            return str(self.folder / f"{base_offset}-{next(numbers)}.parquet")

        latest = OffsetMap.empty(step.strategy)
        if isinstance(step, Compact):
            latest = map_dirty(FILES, step, step.dirty).offset_map
        run = rewrite_run(FILES, step, step.segments, latest, Output(path_for))
        outcome = RewriteResult(step, run.removed, run.added, run.counts, len(latest), run.winners_found)
        verify(outcome)
        return outcome


def on_disk(folder: str, log: list[list[Record]], row_group_rows: int) -> OnDisk:
    paths = (Path(folder) / f"in-{number}.parquet" for number in count())
    return OnDisk(Path(folder), [write_segment(next(paths), records, row_group_rows) for records in log])


def expected(log: list[list[Record]], step: Compact) -> tuple[list[Record], Counts]:
    """What the rule for one record makes of every record."""
    records = [record for segment in log for record in segment]
    mapped = [r for r in records if step.first_dirty_offset <= r.offset < step.end_offset]
    latest: dict[bytes | None, int] = {record.key: record.offset for record in mapped if record.key is not None}
    verdicts = {record.offset: verdict(record, latest.get(record.key), step.bounds) for record in records}
    horizon_ms = step.bounds.new_delete_horizon_ms
    survivors = [
        replace(record, delete_horizon_ms=horizon_ms) if verdicts[record.offset] is Verdict.STAMPED else record
        for record in records
        if verdicts[record.offset].is_retained
    ]
    return survivors, Counts(**{str(each): number for each, number in Counter(verdicts.values()).items()})


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such that a log of a few records is judged in several chunks, and its map folded several times."""
    monkeypatch.setattr(keys, "MOST_KEY_BYTES", 30)
    monkeypatch.setattr(keys, "JOINED_KEYS", 9)
    monkeypatch.setattr(key_ranges, "SAMPLED_KEYS", 1)
    monkeypatch.setattr(offset_map, "LOOKUP_RECORDS", 5)
    monkeypatch.setattr(offset_map, "FOLD_RECORDS", 4)


FIXTURE_IS_CONSTANT = [HealthCheck.function_scoped_fixture]


@settings(max_examples=examples(200), deadline=None, suppress_health_check=FIXTURE_IS_CONSTANT)
@given(log=a_log(a_record()), data=st.data())
def test_every_record_gets_the_verdict_of_the_rule(
    log: list[list[Record]], data: st.DataObject, small_chunks: None
) -> None:
    last_offset = log[-1][-1].offset
    first_dirty_offset = data.draw(st.integers(0, last_offset), label="first dirty")
    clean = Clean(
        first_dirty_offset,
        end_offset=data.draw(st.integers(first_dirty_offset, last_offset + 1), label="end"),
        now_ms=NOW_MS,
        segment_bytes=data.draw(st.sampled_from([1, 4000, 2**30]), label="segment.bytes"),
    )
    with tempfile.TemporaryDirectory() as folder:
        disk = on_disk(folder, log, data.draw(st.integers(1, 6), label="row group"))
        step = clean.step(disk.segments)
        outcome = disk.rewritten(step)
        survivors, counts = expected(log, step)
        assert live_records(outcome) == survivors
        assert outcome.counts == counts


@settings(max_examples=examples(100), deadline=None, suppress_health_check=FIXTURE_IS_CONSTANT)
@given(log=a_log(a_record(stamped=False)), split=st.integers(0, 6), retention_ms=st.integers(0, 2))
def test_cleaning_twice_gives_what_the_specification_gives(
    log: list[list[Record]], split: int, retention_ms: int, small_chunks: None
) -> None:
    assume(log[split:])
    older = [record for segment in log[:split] for record in segment]
    clean = clean_records([], older, NOW_MS, retention_ms)
    segments = ([clean] if clean else []) + log[split:]
    first_dirty_offset = log[split][0].offset
    end = Clean(first_dirty_offset, log[-1][-1].offset + 1, now_ms=NOW_MS + 1, delete_retention_ms=retention_ms)
    with tempfile.TemporaryDirectory() as folder:
        disk = on_disk(folder, segments, row_group_rows=4)
        outcome = disk.rewritten(end.step(disk.segments))
        dirty = [record for segment in log[split:] for record in segment]
        assert live_records(outcome) == clean_records(clean, dirty, NOW_MS + 1, retention_ms)


@settings(max_examples=examples(100), deadline=None)
@given(log=a_log(a_record()))
def test_expiry_removes_tombstones_past_their_horizon_and_nothing_else(log: list[list[Record]]) -> None:
    end_offset = log[-1][-1].offset + 1
    clean = Clean(end_offset, end_offset, now_ms=NOW_MS, segment_bytes=1)
    with tempfile.TemporaryDirectory() as folder:
        disk = on_disk(folder, log, row_group_rows=3)
        outcome = disk.rewritten(clean.expiry(disk.segments))
        records = [record for segment in log for record in segment]
        left = [r for r in records if r.delete_horizon_ms is None or r.delete_horizon_ms > NOW_MS]
        assert live_records(outcome) == left
        assert outcome.counts == Counts(kept=len(left), expired=len(records) - len(left))
        assert set(outcome.removed) == {s for s in disk.segments if s.has_expired_tombstone(NOW_MS)}


@settings(max_examples=examples(100), deadline=None, suppress_health_check=FIXTURE_IS_CONSTANT)
@given(log=a_log(a_record()), split=st.integers(0, 6))
def test_the_map_of_the_parts_merged_is_the_map_of_the_whole(
    log: list[list[Record]], split: int, small_chunks: None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        disk = on_disk(folder, log, row_group_rows=4)
        step = Clean(2, log[-1][-1].offset).step(disk.segments)
        halves = (disk.segments[:split], disk.segments[split:])
        parts = [map_dirty(FILES, step, part).offset_map for part in halves]
        for number, part in enumerate(parts):
            part.write(FILES, f"{folder}/{number}.arrow")
        merged = OffsetMap.read(FILES, [f"{folder}/{number}.arrow" for number in (1, 0)])
        inside = [r for segment in log for r in segment if 2 <= r.offset < step.end_offset and r.key is not None]
        assert dict(zip(*merged.latest.to_pydict().values(), strict=True)) == {r.key: r.offset for r in inside}
        assert len(merged) == len({r.key for r in inside})


def records(keys: list[bytes], first_offset: int = 0, value: bytes | None = b"v") -> list[Record]:
    return [Record(first_offset + number, key, value, 1) for number, key in enumerate(keys)]


def test_a_clean_segment_without_a_superseded_record_is_not_written(tmp_path: Path) -> None:
    untouched = write_segment(tmp_path / "a", records([b"a", b"b"]))
    touched = write_segment(tmp_path / "b", records([b"c", b"d"], 2))
    dirty = write_segment(tmp_path / "c", records([b"d", b"d", b"e"], 4))
    clean = Clean(4, 7, segment_bytes=untouched.size_bytes)
    outcome = OnDisk(tmp_path, []).rewritten(clean.step([untouched, touched, dirty]))
    assert outcome.removed == (touched, dirty)
    assert live_segments(outcome)[0] == untouched
    assert [r.offset for r in live_records(outcome)] == [0, 1, 2, 5, 6]


def test_what_the_metrics_prove_unchanged_is_not_even_opened(tmp_path: Path) -> None:
    unread = replace(write_segment(tmp_path / "a", records([b"a"] * 3)), path=str(tmp_path / "is not there"))
    expired = [Record(3, b"a", None, 1, delete_horizon_ms=5), Record(4, b"b", b"", 1)]
    segments = [unread, write_segment(tmp_path / "b", expired)]
    outcome = OnDisk(tmp_path, []).rewritten(Clean(5, 5).expiry(segments))
    assert outcome.counts == Counts(kept=4, expired=1)
    assert outcome.removed == (segments[1],)
    assert read([outcome.added[0].path]) == expired[1:]


def test_the_last_dirty_segment_is_rewritten_even_if_nothing_in_it_changes(tmp_path: Path) -> None:
    segments = [write_segment(tmp_path / "a", records([b"a", b"b"]))]
    outcome = OnDisk(tmp_path, []).rewritten(Clean(0, 2).step(segments))
    assert outcome.removed == tuple(segments)
    assert live_records(outcome) == records([b"a", b"b"])


def test_a_log_of_which_nothing_survives_is_replaced_by_nothing(tmp_path: Path) -> None:
    unkeyed = [Record(0, None, b"v", 1), Record(1, None, None, 1)]
    segments = [write_segment(tmp_path / "a", unkeyed)]
    outcome = OnDisk(tmp_path, []).rewritten(Clean(0, 2).step(segments))
    assert (outcome.removed, outcome.added) == (tuple(segments), ())
    assert outcome.counts == Counts(unkeyed=2)


def test_a_retention_without_end_gives_a_horizon_that_readers_can_show(tmp_path: Path) -> None:
    segments = [write_segment(tmp_path / "a", records([b"a"], value=None))]
    outcome = OnDisk(tmp_path, []).rewritten(Clean(0, 1, delete_retention_ms=2**63 - 1 - 10_000).step(segments))
    assert read([outcome.added[0].path])[0].delete_horizon_ms == 253_402_300_799_999


def test_a_bound_on_what_is_gathered_bounds_the_row_groups(tmp_path: Path) -> None:
    values = [Record(offset, b"%d" % offset, b"v" * 1000, 1) for offset in range(100)]
    step = Clean(0, 100).step([write_segment(tmp_path / "in", values)])
    latest = map_dirty(FILES, step, step.dirty).offset_map
    run = rewrite_run(FILES, step, step.segments, latest, Output(lambda _: str(tmp_path / "out"), 10_000))
    metadata = pq.ParquetFile(run.added[0].path).metadata
    assert metadata.num_row_groups > 4
    assert read([run.added[0].path]) == values


def test_a_bound_on_what_is_gathered_bounds_what_the_rewrite_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over = []
    write = SegmentWriter.write

    def recorded(writer: SegmentWriter, table: pa.Table) -> None:
        handed_over.append(table.num_rows)
        write(writer, table)

    monkeypatch.setattr(SegmentWriter, "write", recorded)
    values = [Record(offset, b"%d" % offset, b"v" * 1000, 1) for offset in range(100)]
    step = Clean(0, 100).step([write_segment(tmp_path / "in", values, row_group_rows=4)])
    latest = map_dirty(FILES, step, step.dirty).offset_map
    run = rewrite_run(FILES, step, step.segments, latest, Output(lambda _: str(tmp_path / "out"), 10_000))
    assert handed_over == [12] * 8 + [4]
    assert read([run.added[0].path]) == values


def test_an_input_that_is_gone_makes_the_plan_stale(tmp_path: Path) -> None:
    segments = write_segments(tmp_path, records([b"a"] * 4), records_each=2)
    Path(segments[1].path).unlink()
    with pytest.raises(StalePlan, match=r"server\.schema\.table-0: segment .*in-0*2\.parquet is gone from storage"):
        OnDisk(tmp_path, []).rewritten(Clean(0, 4).step(segments))


def test_the_kernels_do_not_need_spark() -> None:
    code = "import sys, keptlog.kernels.rewrite, keptlog.engine.tasks; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
