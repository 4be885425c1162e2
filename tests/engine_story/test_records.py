"""What ``docs/engine.md`` shows of records: before and after, and what the kernels found out in between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.engine.tasks import Sizes
from keptlog.kernels.inputs import OpenInputs
from keptlog.kernels.judge import judge, way_to_judge
from keptlog.kernels.offset_map import DirtyMap, map_dirty
from keptlog.kernels.rivals import compare
from keptlog.kernels.watermarks import read_watermarks
from keptlog.log.offset_map import MapCapacity, MapOverflow
from keptlog.log.result import RewriteResult
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from tests.building import Clean
from tests.engine_story.page import Row, blocks
from tests.engine_story.shown import BY_HEADER, FILES, WHOLE, after, cleaned, ms, write
from tests.in_process import SMALL_CUTS
from tests.local_log import live_segments

SHOWN = blocks()
SHUFFLED = Sizes(whole_log_records=5, run_bytes=8000, bundles_per_core=1, shuffled_part_records=1)
IN_EVERY_WAY = {
    "in one segment run": (WHOLE, MapCapacity(100)),
    "cut": (SMALL_CUTS, MapCapacity(100)),
    "shuffled": (SHUFFLED, MapCapacity(1, MapOverflow.SHUFFLE)),
}


def first_dirty(segments: list[Segment]) -> int:
    """On the page the segments from ``B`` on are dirty."""
    return segments[1].base_offset


def first_clean(segments: list[Segment]) -> Compact:
    return Clean(first_dirty(segments), segments[-1].last_offset + 1).step(segments)


def mapped_rows(mapped: DirtyMap) -> list[Row]:
    rows = [{name: str(cell) for name, cell in row.items()} for row in mapped.offset_map.latest.to_pylist()]
    keys = mapped.offset_map.latest["key"].to_pylist()
    return sorted(({**row, "key": key.decode()} for row, key in zip(rows, keys, strict=True)), key=offset_in)


def offset_in(row: Row) -> int:
    return int(row["offset"])


def without_segment(rows: list[Row]) -> list[Row]:
    return [{name: cell for name, cell in row.items() if name != "segment"} for row in rows]


def test_the_map_of_the_simplest_case(tmp_path: Path) -> None:
    step = first_clean(write(tmp_path, SHOWN["one-log"]["before"]))
    assert mapped_rows(map_dirty(FILES, step, step.dirty)) == SHOWN["one-log"]["offset map"]


def test_each_segment_of_the_simplest_case_is_judged_in_the_way_that_the_page_says(tmp_path: Path) -> None:
    segments = write(tmp_path, SHOWN["one-log"]["before"])
    step = first_clean(segments)
    offset_map = map_dirty(FILES, step, step.dirty).offset_map
    with OpenInputs(FILES, step) as inputs:
        judged = judge(inputs, segments, offset_map)
    found = [
        {
            "segment": name,
            "section": "dirty" if segment in step.dirty else "clean",
            "way": way_to_judge(step, segment, offset_map).name,
            "reads": ",".join(judged.read[index][0].column_names),
        }
        for index, (name, segment) in enumerate(zip("AB", segments, strict=True))
    ]
    assert found == SHOWN["ways"]["segments"]


def test_the_verdicts_of_the_simplest_case(tmp_path: Path) -> None:
    segments = write(tmp_path, SHOWN["one-log"]["before"])
    step = first_clean(segments)
    with OpenInputs(FILES, step) as inputs:
        judged = judge(inputs, segments, map_dirty(FILES, step, step.dirty).offset_map)
    survives = [each for mask in judged.survives if mask is not None for each in mask.to_pylist()]
    verdicts = [row["verdict"] for row in SHOWN["one-log"]["verdict"]]
    assert survives == [verdict == "kept" for verdict in verdicts]
    assert (judged.counts.kept, judged.counts.superseded) == (verdicts.count("kept"), verdicts.count("superseded"))


@pytest.mark.parametrize(("sizes", "capacity"), IN_EVERY_WAY.values(), ids=IN_EVERY_WAY.keys())
def test_what_is_left_of_the_simplest_case_whichever_way_it_is_cleaned(
    tmp_path: Path, sizes: Sizes, capacity: MapCapacity
) -> None:
    step = replace(first_clean(write(tmp_path, SHOWN["one-log"]["before"])), map_capacity=capacity)
    rows = SHOWN["one-log"]["after"]
    assert after(cleaned(step, tmp_path, "run", sizes), without_segment(rows)) == without_segment(rows)


def test_in_the_simplest_case_both_segments_become_one(tmp_path: Path) -> None:
    outcome = cleaned(first_clean(write(tmp_path, SHOWN["one-log"]["before"])), tmp_path, "run")
    assert len(live_segments(outcome)) == len({row["segment"] for row in SHOWN["one-log"]["after"]}) == 1


def test_a_tombstone_is_stamped_and_goes_at_its_horizon(tmp_path: Path) -> None:
    before, stamped, expired = SHOWN["tombstone"].values()
    clean = Clean(0, 3, now_ms=ms("10s"), delete_retention_ms=ms("60s"))
    first = cleaned(clean.step(write(tmp_path, before)), tmp_path, "first")
    assert after(first, stamped) == stamped
    early = replace(clean, first_dirty_offset=3, now_ms=ms("70s") - 1).expiry(live_segments(first))
    assert cleaned(early, tmp_path, "early").is_empty
    second = cleaned(replace(early, now_ms=ms("70s")), tmp_path, "second")
    assert after(second, expired) == expired


def test_a_clean_record_of_a_higher_version_is_a_rival(tmp_path: Path) -> None:
    segments = write(tmp_path, SHOWN["versions"]["before"])
    step = replace(first_clean(segments), strategy=BY_HEADER)
    mapped = map_dirty(FILES, step, step.dirty)
    assert mapped_rows(mapped) == SHOWN["versions"]["offset map"]
    rivals = compare(FILES, step, segments, mapped.offset_map).rivals.select(["offset", "beats"]).to_pylist()
    assert [{name: str(each[name]) for name in each} for each in rivals] == SHOWN["versions"]["rivals"]
    rows = zip(SHOWN["versions"]["before"], SHOWN["versions"]["verdict"], strict=True)
    kept = [without_segment([row])[0] for row, verdict in rows if verdict["verdict"] == "kept"]
    assert after(cleaned(step, tmp_path, "run"), kept) == kept


def test_a_watermark_guards_a_deleted_key_against_a_late_record(tmp_path: Path) -> None:
    before, expired, watermarks, late, left = SHOWN["watermark"].values()
    clean = Clean(0, 2, ms("10s"), ms("60s"), strategy=BY_HEADER, watermark_retention_ms=ms("3600s"))
    first = cleaned(clean.step(write(tmp_path, before)), tmp_path, "first")
    clean = replace(clean, first_dirty_offset=2, now_ms=ms("70s"))
    second = cleaned(clean.expiry(live_segments(first)), tmp_path, "second")
    assert after(second, expired) == expired
    clean = replace(clean, end_offset=4, now_ms=ms("80s"), watermarks_path=second.watermarks_path)
    step = clean.step([*live_segments(second), *write(tmp_path / "late", late)])
    stored = read_watermarks(FILES, step).to_pylist()
    assert [{"key": row["key"].decode(), "version": str(row["version"])} for row in stored] == watermarks
    assert after(cleaned(step, tmp_path, "third"), left) == left


def test_a_full_map_ends_a_pass_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """The title of each pass says where it ends."""
    before, *passes, left = SHOWN["full-map"].values()
    ends = [int(title.split()[-1]) for title in SHOWN["full-map"] if title.startswith("pass")]
    live, first_dirty_offset, outcome = write(tmp_path, before), 3, None
    for number, (rows, end_offset) in enumerate(zip(passes, ends, strict=True)):
        step = Clean(first_dirty_offset, 12, map_capacity=MapCapacity(2)).step(live)
        mapped = map_dirty(FILES, step, step.dirty, max_keys=2)
        assert (mapped_rows(mapped), mapped.end_offset) == (rows, end_offset)
        outcome = cleaned(step, tmp_path, f"pass-{number}")
        live = _after_pass(live, outcome)
        first_dirty_offset = outcome.step.end_offset
    assert outcome is not None
    assert first_dirty_offset == 12
    assert after(outcome, left) == left


def _after_pass(live: list[Segment], outcome: RewriteResult) -> list[Segment]:
    """Segments behind the end of the pass are not in its step."""
    behind = [segment for segment in live if segment not in outcome.step.segments]
    return [*live_segments(outcome), *behind]
