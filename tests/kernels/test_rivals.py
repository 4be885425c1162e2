"""Who wins where several rivals beat the same dirty record: the highest version, in whatever part it was found."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa

from keptlog.kernels.judged_offsets import Standing
from keptlog.kernels.offset_map import map_dirty
from keptlog.kernels.rivals import Comparison, compare, compare_watermarks
from keptlog.log.record import Record
from keptlog.log.strategy import Strategy, StrategyKind
from tests.building import Clean
from tests.local_log import LocalFiles, write_segments

FILES = LocalFiles()


def test_the_rival_of_the_highest_version_wins_whatever_part_it_is_in(tmp_path: Path) -> None:
    keys_and_versions = [(b"a", 7), (b"a", 9), (b"a", 8), (b"b", 5), (b"c", 3), (b"a", 1), (b"b", 2), (b"c", 4)]
    records = [Record(offset, key, b"", version) for offset, (key, version) in enumerate(keys_and_versions)]
    segments = write_segments(tmp_path, records, 1)
    step = Clean(5, 8, strategy=Strategy(StrategyKind.TIMESTAMP)).step(segments)
    watermarks = pa.table({"key": [b"a", b"b", b"c", b"d"], "version": [8, 6, 9, 1]})
    watermarks = watermarks.set_column(0, "key", watermarks["key"].cast(pa.binary()))
    offset_map = map_dirty(FILES, step, step.dirty).offset_map
    cut = [segments[:2], segments[2:5], segments[5:]]
    parts = [compare(FILES, step, part, offset_map) for part in cut]
    parts.append(compare_watermarks(watermarks, offset_map))
    for in_any_order in permutations(parts):
        compared = Comparison.joined(in_any_order)
        judged = compared.settled(len(offset_map))
        asked = pa.chunked_array([np.arange(8)])
        latest, superseded, unkeyed = (judged.are(standing, asked).to_numpy().nonzero()[0] for standing in Standing)
        assert (list(latest), list(superseded), list(unkeyed)) == ([1], [0, 2, 3, 4, 5, 6, 7], [])
        assert judged.winners == 1
        assert compared.beaten_keys().to_pylist() == [b"a"]
