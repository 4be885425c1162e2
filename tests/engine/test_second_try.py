"""A clean in legs that is lost and tried again on what stands: it leaves, and tells, what one commit would."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from keptlog.engine.tasks import Sizes
from keptlog.errors import InvariantViolated
from keptlog.kernels import offset_map
from keptlog.log.clean import clean
from keptlog.log.holds import Hold, Holds
from keptlog.log.offset_map import UNBOUNDED, MapCapacity, MapOverflow
from keptlog.log.record import Record
from keptlog.log.result import Counts, RewriteResult, verify
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.watermark import Watermark
from keptlog.storage import keys
from tests.building import Clean
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

CAPACITIES = st.sampled_from([UNBOUNDED, MapCapacity(2), MapCapacity(4), MapCapacity(2, MapOverflow.SHUFFLE)])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_KEY_BYTES", 3)
    monkeypatch.setattr(offset_map, "LOOKUP_RECORDS", 5)
    monkeypatch.setattr(offset_map, "FOLD_RECORDS", 4)


def one_try(step: Compact, location: Path, sizes: Sizes, run_id: str) -> Iterator[RewriteResult]:
    """The legs of a try; what each replaces is deleted before the next."""
    for outcome in in_process_engine(FILES, sizes).rewrite_in_legs(step, str(location), run_id):
        if not outcome.ends_step:
            verify(outcome)
        yield outcome
        for gone in outcome.removed:
            Path(gone.path).unlink()


def in_two_tries(step: Compact, location: Path, sizes: Sizes, legs_before_loss: int) -> RewriteResult:
    """What ends the step, of which so many legs were live when the first try was lost."""
    live: list[RewriteResult] = []
    for outcome in one_try(step, location, sizes, "first"):
        if outcome.ends_step or len(live) == legs_before_loss:
            break
        live.append(outcome)
    assume(live)
    standing = replace(step.ended_at(live[-1].step.end_offset), segments=live[-1].segments_after)
    *between, last = one_try(standing, location, sizes, "second")
    return replace(last, earlier=(*live, *between))


@settings(max_examples=examples(120), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=a_log(), marks=WATERMARKS, capacity=CAPACITIES, legs=st.integers(1, 4), data=st.data())
def test_a_second_try_leaves_and_tells_what_the_rules_do(
    log: list[list[Record]], marks: dict[bytes, tuple[int, int]], capacity: MapCapacity, legs: int, data: st.DataObject
) -> None:
    sizes = data.draw(st.sampled_from([Sizes(), SMALL_CUTS, SHUFFLED]))
    asked = replace(data.draw(a_clean(log)), map_capacity=capacity)
    inputs = [records for records in log if records[0].offset < asked.end_offset]
    assume(len(inputs) > 1)
    asked = replace(asked, holds=at_beginnings(asked.holds, inputs))
    with tempfile.TemporaryDirectory() as name:
        location = Path(name) / asked.topic
        segments = [write_segment(location / f"in-{number}", records, 3) for number, records in enumerate(inputs)]
        share = data.draw(st.sampled_from([3, 2**40, 2**40]))
        most = max(sum(each.size_bytes for each in segments) // share, 1)
        step = stored(Path(name), replace(asked, commit_max_bytes=most).step(segments), marks)
        assert isinstance(step, Compact)
        before = [Watermark(key, *mark) for key, mark in sorted(marks.items())] if step.strategy.has_versions else []
        cleaned = clean(step, inputs, before)
        last = in_two_tries(step, location, sizes, legs)
        verify(last)
        whole = last.whole
        assert list(read(each.path for each in whole.segments_after)) == list(cleaned.records)
        assert (whole.step, whole.counts, whole.malformed) == (cleaned.step, cleaned.counts, cleaned.malformed)
        assert whole.overrun == cleaned.overrun
        if step.strategy.has_versions:
            expected, told = storable(cleaned.watermarks), watermarks_of(whole)
            assert [mark for mark in told if mark in expected] == expected
            left = [mark for mark in told if mark not in expected]
            assert left == [mark for mark in decided(storable(before), cleaned.records, step.strategy) if mark in left]
        event(f"{len(last.earlier)} legs before {'one commit' if last.leg is None else 'a last leg'}")
        event(f"by {step.strategy.kind}, removed in the first try: {last.earlier[0].counts.removed > 0}")


def at_beginnings(holds: Holds, inputs: Sequence[Sequence[Record]]) -> Holds:
    """The same, with no position inside of a segment, where it counts as one at its beginning.

    The segments that a first try has left may begin and end elsewhere, so a second one may see that it is behind them.
    """

    def counts_as(position: int) -> int:
        return next((each[0].offset for each in inputs if each[0].offset < position <= each[-1].offset), position)

    return replace(holds, readers=tuple(replace(hold, position=counts_as(hold.position)) for hold in holds.readers))


def storable(marks: Iterable[Watermark]) -> list[Watermark]:
    return [replace(mark, expires_ms=min(mark.expires_ms, LONG_MAX)) for mark in marks]


def decided(before: list[Watermark], records: Sequence[Record], strategy: Strategy) -> list[Watermark]:
    """Those that a record has won against: a second try that does not meet their keys leaves them to expire."""
    orders = [(record.key, strategy.order_of(record)) for record in records]
    return [mark for mark in before if any(key == mark.key and order > mark.order for key, order in orders)]


def test_a_watermark_that_a_record_has_won_against_may_outlive_a_lost_try_and_decides_nothing(tmp_path: Path) -> None:
    """Found by random testing: the only dirty record of its key went with the leg that was live."""
    version = (("v", bytes(8)),)
    log = [
        [Record(6, b"a", b"1", 0, headers=version), Record(7, b"a", b"1", 0)],
        [Record(8, None, None, 0), Record(9, None, None, 0)],
    ]
    segments = [write_segment(tmp_path / f"in-{number}", records, 3) for number, records in enumerate(log)]
    by_header = Strategy(StrategyKind.HEADER, "v")
    asked = Clean(7, 9, now_ms=NOW_MS, segment_bytes=1, strategy=by_header, commit_max_bytes=1)
    step = stored(tmp_path, asked.step(segments), {b"a": (0, NOW_MS + 1)})
    assert isinstance(step, Compact)
    mark = Watermark(b"a", 0, NOW_MS + 1)
    cleaned = clean(step, log, [mark])
    left = [log[0][0], log[1][1]]
    assert (list(cleaned.records), list(cleaned.watermarks)) == (left, [])
    whole = in_two_tries(step, tmp_path, Sizes(), 1).whole
    assert list(read(each.path for each in whole.segments_after)) == left
    assert list(watermarks_of(whole)) == decided([mark], cleaned.records, step.strategy) == [mark]


def test_a_tombstone_that_its_reader_has_met_may_go_in_a_second_try_already(tmp_path: Path) -> None:
    """Found by random testing: the position lay inside of a segment, and the first leg left a shorter one."""
    tombstone = Record(9, b"a", None, 0, delete_horizon_ms=NOW_MS - 1)
    log = [[Record(8, None, None, 0), tombstone, Record(10, None, None, 0)], [Record(11, b"b", b"1", 0)]]
    segments = [write_segment(tmp_path / f"in-{number}", records, 3) for number, records in enumerate(log)]
    met = Holds((Hold("r", 10, 2),))
    step = stored(
        tmp_path, Clean(0, 12, now_ms=NOW_MS, segment_bytes=1, holds=met, commit_max_bytes=1).step(segments), {}
    )
    assert isinstance(step, Compact)
    assert list(clean(step, log, []).records) == [tombstone, *log[1]]
    whole = in_two_tries(step, tmp_path, Sizes(), 1).whole
    assert list(read(each.path for each in whole.segments_after)) == log[1]


@pytest.fixture
def last(tmp_path: Path) -> RewriteResult:
    """Of three legs, of which two were live when the first try was lost."""
    log = [[Record(2 * n, b"a", b"1", 1), Record(2 * n + 1, b"%d" % n, b"1", 1)] for n in range(3)]
    segments = [write_segment(tmp_path / f"in-{number}", records, 3) for number, records in enumerate(log)]
    return in_two_tries(Clean(0, 6, now_ms=NOW_MS, commit_max_bytes=1).step(segments), tmp_path, Sizes(), 2)


def test_both_tries_are_told_as_one(last: RewriteResult) -> None:
    verify(last)
    assert [each.leg.number for each in last.earlier if each.leg] == [1, 2, 1, 2]
    assert last.whole.counts == Counts(kept=4, superseded=2)
    assert (len(last.whole.removed), len(last.whole.added)) == (3, 3)


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_what_ends_a_step_is_refused_if_a_leg_of_either_try_is_missing(last: RewriteResult, missing: int) -> None:
    """From the first that is known on: without it the others are a whole of their own."""
    earlier = last.earlier[:missing] + last.earlier[missing + 1 :]
    with pytest.raises(InvariantViolated, match=r"judged but the segments hold|went in and|would be replaced"):
        verify(replace(last, earlier=earlier))


def test_what_ends_a_step_is_refused_if_the_second_try_has_lost_a_record(last: RewriteResult) -> None:
    *before, second = last.earlier
    counts = replace(second.counts, kept=second.counts.kept - 1)
    with pytest.raises(InvariantViolated, match="5 records judged but the segments hold 6"):
        verify(replace(last, earlier=(*before, replace(second, counts=counts))))
    with pytest.raises(InvariantViolated, match="the offset map has 4 keys but of 3"):
        verify(replace(last, earlier=(*before, replace(second, winners_found=second.winners_found - 1))))
