"""A clean in several commits leaves what one leaves. After each the log is whole, and what it replaced may be gone."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from keptlog.engine.tasks import Sizes
from keptlog.errors import InvariantViolated
from keptlog.kernels import offset_map
from keptlog.log.clean import clean
from keptlog.log.offset_map import UNBOUNDED, MapCapacity, MapOverflow
from keptlog.log.record import Record
from keptlog.log.result import RewriteResult, verify
from keptlog.log.steps import Compact, in_legs
from keptlog.log.watermark import Watermark
from keptlog.storage import keys
from tests.building import Clean, segment
from tests.engine.test_every_way import (
    FILES,
    LONG_MAX,
    NOW_MS,
    SHUFFLED,
    WATERMARKS,
    a_clean,
    a_log,
    stored,
    watermarks_of,
)
from tests.in_process import SMALL_CUTS, in_process_engine
from tests.local_log import read, write_segment
from tests.profiles import examples

EXAMPLES = settings(max_examples=examples(120), suppress_health_check=[HealthCheck.function_scoped_fixture])
CAPACITIES = st.one_of(
    st.just(UNBOUNDED),
    st.builds(MapCapacity, st.integers(1, 5)),
    st.builds(MapCapacity, st.integers(1, 4), st.just(MapOverflow.SHUFFLE)),
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_KEY_BYTES", 3)
    monkeypatch.setattr(offset_map, "LOOKUP_RECORDS", 5)
    monkeypatch.setattr(offset_map, "FOLD_RECORDS", 4)


def test_neighbours_fill_a_leg_up_to_its_bytes_and_no_segment_is_divided() -> None:
    sizes = [40, 50, 30, 90, 120, 10]
    segments = [segment(10 * number, 10 * number + 9, size=size) for number, size in enumerate(sizes)]
    assert [[each.size_bytes for each in leg] for leg in in_legs(segments, 100)] == [[40, 50], [30], [90], [120], [10]]
    assert in_legs(segments, sum(sizes)) == [tuple(segments)]
    assert in_legs([], 100) == [()]


@EXAMPLES
@given(
    log=a_log(),
    marks=WATERMARKS,
    capacity=CAPACITIES,
    share=st.sampled_from([1, 2, 3, 2**40]),
    data=st.data(),
)
def test_a_clean_in_legs_leaves_what_the_rules_leave_and_a_whole_log_after_each(
    log: list[list[Record]],
    marks: dict[bytes, tuple[int, int]],
    capacity: MapCapacity,
    share: int,
    data: st.DataObject,
) -> None:
    sizes = data.draw(st.sampled_from([Sizes(), SMALL_CUTS, SHUFFLED]))
    asked = replace(data.draw(a_clean(log)), map_capacity=capacity)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        location = folder / asked.topic
        inputs = [records for records in log if records[0].offset < asked.end_offset]
        segments = [write_segment(location / f"in-{number}", records, 3) for number, records in enumerate(inputs)]
        most = sum(each.size_bytes for each in segments) // share
        step = stored(folder, replace(asked, commit_max_bytes=max(most, 1)).step(segments), marks)
        assert isinstance(step, Compact)
        before = [Watermark(key, *mark) for key, mark in sorted(marks.items())] if step.strategy.has_versions else []
        cleaned = clean(step, inputs, before)
        kept = [part for part in inputs if part[0].offset < cleaned.step.end_offset]
        last = _in_legs(step, location, kept, list(cleaned.records), sizes)
        whole = last.whole
        assert (whole.step, whole.counts, whole.malformed) == (cleaned.step, cleaned.counts, cleaned.malformed)
        assert whole.overrun == cleaned.overrun
        if step.strategy.has_versions:
            expected = [replace(mark, expires_ms=min(mark.expires_ms, LONG_MAX)) for mark in cleaned.watermarks]
            assert list(watermarks_of(whole)) == expected
            assert not step.leaves_tombstones or not whole.counts.expired
        assert not list(location.rglob("staging/**/*.arrow"))
        event(f"{last.leg.of if last.leg else 1} legs")
        event(f"by {step.strategy.kind}, {capacity.overflow if capacity is not UNBOUNDED else 'unbounded'}")


def _in_legs(
    step: Compact, location: Path, before: list[list[Record]], after: list[Record], sizes: Sizes
) -> RewriteResult:
    """The last leg; each is held against the rules, and its inputs are deleted before the next."""
    records = [record for part in before for record in part]
    earlier: list[RewriteResult] = []
    for outcome in in_process_engine(FILES, sizes).rewrite_in_legs(step, str(location), "run"):
        verify(outcome if not outcome.ends_step else replace(outcome, earlier=tuple(earlier)))
        end = outcome.inputs[-1].last_offset
        for gone in outcome.removed:
            Path(gone.path).unlink()
        expected = [each for each in after if each.offset <= end] + [each for each in records if each.offset > end]
        assert list(read(each.path for each in outcome.segments_after)) == expected
        assert outcome.ends_step or outcome.watermarks_path == step.watermarks_path
        assert (
            outcome.ends_step
            or sum(each.size_bytes for each in outcome.inputs) <= step.commit_max_bytes
            or (len(outcome.inputs) == 1)
        )
        earlier.append(outcome)
    last = earlier.pop()
    assert last.ends_step
    assert not last.is_empty
    return replace(last, earlier=tuple(earlier))


def test_a_last_leg_is_refused_if_the_legs_together_do_not_add_up(tmp_path: Path) -> None:
    log = [[Record(2 * n, b"a", b"1", 1), Record(2 * n + 1, b"%d" % n, b"1", 1)] for n in range(3)]
    segments = [write_segment(tmp_path / f"in-{number}", records, 3) for number, records in enumerate(log)]
    step = Clean(0, 6, now_ms=NOW_MS, commit_max_bytes=1).step(segments)
    first, second, last = in_process_engine(FILES).rewrite_in_legs(step, str(tmp_path), "run")
    verify(replace(last, earlier=(first, second)))
    with pytest.raises(InvariantViolated, match=r"6 records judged but|records judged but the segments hold"):
        verify(replace(last, earlier=(first,)))
    with pytest.raises(InvariantViolated, match="the offset map has 4 keys but of 3"):
        verify(replace(last, earlier=(replace(first, winners_found=0), second)))
    with pytest.raises(InvariantViolated, match="the offset map has 2 keys but of 1"):
        verify(replace(second, winners_found=1, map_keys=2))
