"""One clean, carried out in every way the engine has, against the same clean of records in memory: all strategies, with
watermarks and with full maps, in one task, cut, and with the keys shuffled.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from keptlog.engine.tasks import Sizes
from keptlog.kernels import offset_map
from keptlog.kernels.watermarks import read_watermarks, write_watermarks
from keptlog.log.clean import clean
from keptlog.log.holds import Hold, Holds
from keptlog.log.offset_map import UNBOUNDED, MapCapacity, MapOverflow
from keptlog.log.record import Record
from keptlog.log.result import RewriteResult, verify
from keptlog.log.steps import CleanStep, Compact
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.watermark import Watermark
from keptlog.storage import keys
from tests.building import Clean, segment
from tests.in_process import SMALL_CUTS, in_process_engine
from tests.local_log import LocalFiles, live_records, write_segment
from tests.profiles import examples
from tests.strategies import ALL_STRATEGIES

FILES = LocalFiles()
NOW_MS = 10_000
LONG_MAX = 2**63 - 1
VERSIONS = st.sampled_from([None, b"", b"short", *(struct.pack(">q", version) for version in (-1, 0, 1, 2, 2**62))])
HEADERS = st.lists(st.tuples(st.sampled_from(["v", "v", "w"]), VERSIONS), max_size=3)
SHUFFLED = Sizes(whole_log_records=5, run_bytes=8000, bundles_per_core=1, shuffled_part_records=1)


@st.composite
def a_record(draw: st.DrawFn) -> Record:
    key = draw(st.sampled_from([None, b"", b"a", b"b", b"c", b"d", b"e"]))
    value = draw(st.one_of(st.none(), st.just(b"1")))
    is_stamped = key is not None and value is None and draw(st.booleans())
    return Record(
        offset=0,
        key=key,
        value=value,
        timestamp_ms=draw(st.integers(-1, 3)),
        headers=tuple(draw(HEADERS)),
        delete_horizon_ms=draw(st.integers(NOW_MS - 2, NOW_MS + 2)) if is_stamped else None,
    )


@st.composite
def a_log(draw: st.DrawFn) -> list[list[Record]]:
    """Records at rising offsets with gaps, cut into segments; of each key one tombstone at most was cleaned before."""
    numbered: list[Record] = []
    stamped: set[bytes | None] = set()
    offset = draw(st.integers(0, 3))
    for record in draw(st.lists(a_record(), min_size=1, max_size=20)):
        if record.delete_horizon_ms is not None:
            record = replace(record, delete_horizon_ms=None if record.key in stamped else record.delete_horizon_ms)
            stamped.add(record.key)
        numbered.append(replace(record, offset=offset))
        offset += draw(st.sampled_from([1, 1, 1, 2, 40]))
    cuts = sorted(draw(st.sets(st.integers(1, len(numbered)), max_size=6)) | {0, len(numbered)})
    return [numbered[start:stop] for start, stop in pairwise(cuts)]


@st.composite
def a_clean(draw: st.DrawFn, log: Sequence[Sequence[Record]]) -> Clean:
    last_offset = log[-1][-1].offset
    first_dirty_offset = draw(st.integers(log[0][0].offset, last_offset))
    end_offset = draw(st.integers(first_dirty_offset + 1, last_offset + 1))
    return Clean(
        first_dirty_offset,
        end_offset,
        now_ms=NOW_MS,
        strategy=draw(st.sampled_from(ALL_STRATEGIES)),
        segment_bytes=draw(st.sampled_from([1, 4000, 2**30])),
        log_start_offset=draw(st.integers(0, first_dirty_offset)),
        watermark_retention_ms=draw(st.sampled_from([0, 2, LONG_MAX])),
        holds=draw(some_holds(last_offset)),
    )


@st.composite
def some_holds(draw: st.DrawFn, last_offset: int) -> Holds:
    """No reader, or some who stand anywhere; some of them have had their time."""
    hold = st.builds(Hold, st.just("r"), st.integers(0, last_offset + 1), st.sampled_from([0, 1, 2, LONG_MAX]))
    ends_ms = st.sampled_from([None, None, NOW_MS, NOW_MS + 1])
    return Holds(tuple(draw(st.lists(hold, max_size=3))), draw(ends_ms))


WATERMARKS = st.dictionaries(
    st.sampled_from([b"", b"a", b"b", b"z"]), st.tuples(st.integers(-2, 4), st.integers(NOW_MS - 1, NOW_MS + 1))
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_KEY_BYTES", 3)
    monkeypatch.setattr(offset_map, "LOOKUP_RECORDS", 5)
    monkeypatch.setattr(offset_map, "FOLD_RECORDS", 4)


def stored(folder: Path, step: CleanStep, marks: dict[bytes, tuple[int, int]]) -> CleanStep:
    """The step with these watermarks in a file of its strategy."""
    if not marks:
        return step
    columns = {"key": sorted(marks), "version": [marks[key][0] for key in sorted(marks)]}
    columns |= {"expires_ms": [marks[key][1] for key in sorted(marks)]}
    schema = pa.schema([("key", pa.binary()), ("version", pa.int64()), ("expires_ms", pa.int64())])
    write_watermarks(FILES, step, pa.table(columns, schema=schema), str(folder / "before.arrow"))
    return replace(step, watermarks_path=str(folder / "before.arrow"))


def watermarks_of(outcome: RewriteResult) -> tuple[Watermark, ...]:
    table = read_watermarks(FILES, replace(outcome.step, watermarks_path=outcome.watermarks_path))
    return tuple(Watermark(**row) for row in table.to_pylist())


def check(
    log: list[list[Record]],
    settings_of_clean: Clean,
    marks: dict[bytes, tuple[int, int]],
    sizes: Sizes,
    *,
    is_expiry: bool = False,
) -> None:
    """Carry the clean out on disk and in memory, and compare all that comes back."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        location = folder / settings_of_clean.topic
        inputs = log
        if not is_expiry:
            inputs = [records for records in log if records[0].offset < settings_of_clean.end_offset]
        segments = [write_segment(location / f"in-{number}", records, 3) for number, records in enumerate(inputs)]
        asked = settings_of_clean.expiry(segments) if is_expiry else settings_of_clean.step(segments)
        step = stored(folder, asked, marks)
        has_versions = step.strategy.has_versions
        before = [Watermark(key, *mark) for key, mark in sorted(marks.items())] if has_versions else []
        [outcome] = in_process_engine(FILES, sizes).rewrite([step], {settings_of_clean.topic: str(location)}, "run")
        verify(outcome)
        cleaned = clean(step, inputs, before)
        assert outcome.step == cleaned.step
        assert live_records(outcome) == list(cleaned.records)
        assert outcome.counts == cleaned.counts
        assert outcome.malformed == cleaned.malformed
        assert outcome.overrun == cleaned.overrun
        if has_versions:
            assert watermarks_of(outcome) == tuple(
                replace(mark, expires_ms=min(mark.expires_ms, LONG_MAX)) for mark in cleaned.watermarks
            )
        else:
            assert outcome.watermarks_path is None
        assert not list(location.rglob("staging/**/*.arrow"))
        event(f"{step.kind} by {step.strategy.kind}")
        event(f"ends early: {isinstance(outcome.step, Compact) and outcome.step.ends_early}")
        event(f"overrun: {bool(outcome.overrun)}, readers: {bool(step.holds.readers)}")
        event(f"removed: {outcome.counts.removed > 0}")
        event(f"watermarks after: {len(cleaned.watermarks) if has_versions else 0}")


EXAMPLES = settings(max_examples=examples(120), suppress_health_check=[HealthCheck.function_scoped_fixture])


@EXAMPLES
@given(log=a_log(), marks=WATERMARKS, sizes=st.sampled_from([Sizes(), SMALL_CUTS]), data=st.data())
def test_every_strategy_leaves_what_the_rules_leave(
    log: list[list[Record]], marks: dict[bytes, tuple[int, int]], sizes: Sizes, data: st.DataObject
) -> None:
    check(log, data.draw(a_clean(log)), marks, sizes, is_expiry=data.draw(st.booleans()))


@EXAMPLES
@given(log=a_log(), marks=WATERMARKS, sizes=st.sampled_from([Sizes(), SMALL_CUTS]), data=st.data())
def test_a_full_map_ends_the_pass_where_the_rules_end_it(
    log: list[list[Record]], marks: dict[bytes, tuple[int, int]], sizes: Sizes, data: st.DataObject
) -> None:
    capacity = MapCapacity(data.draw(st.integers(1, 5)))
    check(log, replace(data.draw(a_clean(log)), map_capacity=capacity), marks, sizes)


@EXAMPLES
@given(log=a_log(), marks=WATERMARKS, data=st.data())
def test_shuffled_keys_leave_what_the_rules_leave(
    log: list[list[Record]], marks: dict[bytes, tuple[int, int]], data: st.DataObject
) -> None:
    capacity = MapCapacity(data.draw(st.integers(1, 4)), MapOverflow.SHUFFLE)
    check(log, replace(data.draw(a_clean(log)), map_capacity=capacity), marks, SHUFFLED)


@EXAMPLES
@given(a_log(), st.integers(1, 4), st.sampled_from(ALL_STRATEGIES), st.sampled_from([Sizes(), SMALL_CUTS]))
def test_passes_with_a_full_map_leave_the_same_log_as_one_without_bound(
    log: list[list[Record]], max_keys: int, strategy: Strategy, sizes: Sizes
) -> None:
    """Tombstones in their first clean: by how many passes a stamped one is met says when it goes."""
    unstamped = [[replace(record, delete_horizon_ms=None) for record in records] for records in log]
    whole = Clean(0, log[-1][-1].offset + 1, now_ms=NOW_MS, strategy=strategy)
    with tempfile.TemporaryDirectory() as name:
        location = Path(name) / whole.topic
        segments = [write_segment(location / f"in-{number}", records, 3) for number, records in enumerate(unstamped)]
        engine, locations = in_process_engine(FILES, sizes), {whole.topic: str(location)}
        [at_once] = engine.rewrite([whole.step(segments)], locations, "at-once")
        full, live, passes = replace(whole, map_capacity=MapCapacity(max_keys)), segments, 0
        while full.first_dirty_offset < whole.end_offset:
            step = full.step(live)
            [outcome] = engine.rewrite([step], locations, f"pass-{passes}")
            verify(outcome)
            behind = [segment for segment in live if segment not in outcome.step.segments]
            kept = set(outcome.step.segments) - set(outcome.removed)
            live = sorted(kept | set(outcome.added), key=lambda segment: segment.base_offset) + behind
            full = replace(full, first_dirty_offset=outcome.step.end_offset)
            passes += 1
        event(f"{passes} passes")
        left = live_records(replace(at_once, step=replace(at_once.step, segments=tuple(live)), removed=(), added=()))
        assert left == live_records(at_once)


@EXAMPLES
@given(
    st.sampled_from(ALL_STRATEGIES),
    st.sampled_from([2, 4, 5]),
    st.sampled_from([Sizes(), SMALL_CUTS, SHUFFLED]),
    st.integers(0, 2),
    st.booleans(),
)
def test_of_one_segment_only_those_tombstones_go_whose_readers_had_their_time(
    strategy: Strategy, first_dirty_offset: int, sizes: Sizes, position: int, is_expiry: bool
) -> None:
    """One is two ms past its horizon, one is at it: a reader who may hold for two ms has had his time for the first."""
    early, late = (Record(n, b"%d" % n, None, 1, delete_horizon_ms=NOW_MS - 2 + 2 * n) for n in range(2))
    log = [[early, late], [Record(2, b"c", b"1", 1), Record(3, b"d", b"1", 1)], [Record(4, b"e", b"1", 1)]]
    capacity = MapCapacity(1, MapOverflow.SHUFFLE) if sizes is SHUFFLED else UNBOUNDED
    held = Holds((Hold("r", position, 2),))
    asked = Clean(first_dirty_offset, 5, now_ms=NOW_MS, strategy=strategy, holds=held, map_capacity=capacity)
    stamped = segment(0, 1, horizon_ms=early.delete_horizon_ms)
    assert clean(asked.expiry([stamped]), log[:1]).counts.expired == (2 if position == 2 else 1)
    check(log, asked, {}, sizes, is_expiry=is_expiry)


@EXAMPLES
@given(st.sampled_from([Sizes(), SMALL_CUTS]))
def test_a_tombstone_that_leaves_no_watermark_takes_none_along_when_it_expires(sizes: Sizes) -> None:
    tombstone = Record(0, b"a", None, 3, delete_horizon_ms=NOW_MS - 2)
    log = [[tombstone], [Record(1, b"b", b"1", 1)]]
    asked = Clean(1, 2, now_ms=NOW_MS, strategy=Strategy(StrategyKind.TIMESTAMP), watermark_retention_ms=0)
    check(log, asked, {b"a": (1, NOW_MS + 1)}, sizes, is_expiry=True)
