"""What ``docs/engine.md`` shows of cuts: what is written together, who does what, and how parts are joined."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.engine.bundles import bundled
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import Sizes, cut_into_runs
from keptlog.kernels.judged_offsets import Standing
from keptlog.kernels.key_shuffle import EmitTask, settle
from keptlog.kernels.offset_map import OffsetMap, map_dirty
from keptlog.log.groups import groups_to_rewrite
from keptlog.log.steps import Compact, in_legs
from tests.building import Clean, segment
from tests.engine_story.page import PAGE, Row, blocks
from tests.engine_story.shown import FILES, write

SHOWN = blocks()


def test_what_does_not_change_is_kept_and_neighbours_share_an_output() -> None:
    rows = SHOWN["kept"]["segments"]
    segments = [segment(number, number, size=int(row["bytes"])) for number, row in enumerate(rows)]
    changed, dirty = ([row[name] == yes for row in rows] for name, yes in (("changes", "yes"), ("section", "dirty")))
    groups = groups_to_rewrite(segments, changed, dirty, segment_bytes=100)
    outputs = ["kept"] * len(rows)
    for group, name in zip(groups, "NP", strict=True):
        outputs[group.start : group.stop] = [name] * len(group)
    assert outputs == [row["output"] for row in SHOWN["kept"]["outcome"]]


def test_the_heaviest_log_goes_to_the_lightest_bundle() -> None:
    rows = SHOWN["bundles"]["small logs"]
    weights = {row["log"]: int(row["bytes"]) for row in rows}
    bundles = bundled(list(weights), 2, weights.__getitem__)
    task_of = {log: str(number) for number, bundle in enumerate(bundles, start=1) for log in bundle}
    assert [task_of[log] for log in weights] == [row["task"] for row in SHOWN["bundles"]["cut"]]


def test_neighbours_fill_a_commit() -> None:
    rows = SHOWN["legs"]["before"]
    segments = [segment(number, number, size=int(row["bytes"])) for number, row in enumerate(rows)]
    legs = [str(number) for number, leg in enumerate(in_legs(segments, 100), start=1) for _ in leg]
    assert legs == [row["leg"] for row in SHOWN["legs"]["leg"]]


def test_each_task_has_a_segment_run_of_the_newest_beside_one_of_the_rest() -> None:
    step = Clean(100, 1600).step([segment(100 * number, 100 * number + 99) for number in range(16)])
    parts = cut_into_runs([SegmentRun(0, step, step.segments, "folder")], 2, Sizes())
    found = [{"segments": _numbers(part), "task": str(part.task + 1)} for part in parts]
    assert found == SHOWN["cut"]["segment runs"]


def _numbers(part: SegmentRun) -> str:
    first, last = (part.segments[index].base_offset // 100 + 1 for index in (0, -1))
    return str(first) if first == last else f"{first}..{last}"


def test_maps_of_parts_are_merged_into_the_map_of_the_whole(tmp_path: Path) -> None:
    first, its_map, second, its_map_too, merged = SHOWN["parts"].values()
    paths = []
    for number, (rows, expected) in enumerate([(first, its_map), (second, its_map_too)]):
        segments = write(tmp_path / str(number), rows)
        offset_map = map_dirty(FILES, Clean(10, 15).step(segments), segments).offset_map
        assert _rows(offset_map) == _sorted(expected)
        paths.append(str(tmp_path / f"{number}.arrow"))
        offset_map.write(FILES, paths[-1])
    assert _rows(OffsetMap.read(FILES, paths)) == _sorted(merged)


def _rows(offset_map: OffsetMap) -> list[Row]:
    rows = offset_map.latest.to_pylist()
    return _sorted([{"key": row["key"].decode(), "offset": str(row["offset"])} for row in rows])


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["key"])


def test_each_part_of_a_shuffle_settles_its_keys(tmp_path: Path) -> None:
    segments = write(tmp_path, SHOWN["one-log"]["before"])
    step = Clean(segments[1].base_offset, 9).step(segments)
    first, settled, second, settled_too = SHOWN["shuffle"].values()
    for rows, expected in [(first, settled), (second, settled_too)]:
        batches = list(_shuffled_to_part(step, {row["key"].encode() for row in rows}))
        emitted = [row for batch in batches for row in batch.select(["offset", "key"]).to_pylist()]
        assert [{"offset": str(row["offset"]), "key": row["key"].decode()} for row in emitted] == rows
        assert _standings(settle(iter(batches), [0], step)) == expected


def _shuffled_to_part(step: Compact, keys: set[bytes]) -> list[pa.RecordBatch]:
    batches = EmitTask(step, step.segments, with_watermarks=True).emit(FILES)
    return [batch.filter(pc.is_in(batch["key"], value_set=pa.array(keys, pa.binary()))) for batch in batches]


def _standings(settled: Iterable[pa.RecordBatch]) -> list[Row]:
    found: dict[int, str] = {}
    for row in (row for batch in settled for row in batch.to_pylist()):
        standing = Standing(row["judged"]).name.lower()
        found |= dict.fromkeys(np.frombuffer(row["offsets"], np.int64).tolist(), standing)
    return [{"offset": str(offset), "standing": found[offset]} for offset in sorted(found)]


def test_every_table_of_the_page_is_looked_at() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert set(re.findall(r'SHOWN\["([\w-]+)"\]', sources)) == SHOWN.keys()


def test_every_module_that_the_page_names_exists() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:keptlog|kernels|engine|storage|log|spark|tests)/[\w/]+(?:\.py)?)`", page)
    roots = PAGE.parents[1], PAGE.parents[1] / "keptlog"
    assert named
    assert not [name for name in named if not any((root / name).exists() for root in roots)]
