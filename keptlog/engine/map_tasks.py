"""Tasks that map the keys of a large log, in parts that are merged.

    dirty section    [ part ][ part ] -> [ merge ]

Where records have versions, the clean records of the mapped keys have a say too, and so have the watermarks. All are
compared with the map, each of the tasks a like share (``rivals``):

    the whole log                     -> [ compare, with watermarks ][ compare ]

A map that may be full is made by one task, for it ends where the records before it have filled it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keptlog.engine.attempt import Attempt
from keptlog.engine.latest import MapSource, staged_below
from keptlog.kernels.offset_map import DirtyMap, OffsetMap, map_dirty
from keptlog.kernels.rivals import Comparison, compare, compare_watermarks
from keptlog.kernels.watermarks import read_watermarks
from keptlog.log.offset_map import UNBOUNDED
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact


@dataclass(frozen=True, slots=True)
class MapTask:
    """Map a part of one log's dirty section, or all of it until the map is full."""

    step_index: int
    step: Compact
    segments: tuple[Segment, ...]
    location: str
    max_keys: int = UNBOUNDED.max_keys

    @property
    def inputs(self) -> Sequence[Segment]:
        """What it reads, for whoever tells people how much that is."""
        return self.segments

    def run(self, attempt: Attempt) -> dict[str, Any]:
        """Stage the map; tells its path, how many keys it has, and how far it reaches."""
        with attempt.files.read_ahead([(each.path, each.size_bytes) for each in self.segments]) as files:
            mapped = map_dirty(files, self.step, self.segments, self.max_keys)
        return _stored(mapped, self.step_index, attempt, attempt.staged(self.location, "dirty"))


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Merge the parts of one log's map."""

    step_index: int
    end_offset: int
    parts: tuple[str, ...]
    location: str

    def run(self, attempt: Attempt) -> dict[str, Any]:
        """Stage the map of the whole; malformed records were counted with the parts."""
        with staged_below(self.location):
            offset_map = OffsetMap.read(attempt.files, self.parts)
        mapped = DirtyMap(offset_map, self.end_offset, 0)
        return _stored(mapped, self.step_index, attempt, attempt.staged(self.location, "map"))


@dataclass(frozen=True, slots=True)
class CompareTask:
    """Compare some segments of a log whose records have versions with its map; one task takes the watermarks too."""

    step_index: int
    step: Compact
    segments: tuple[Segment, ...]
    location: str
    latest: MapSource
    with_watermarks: bool

    @property
    def inputs(self) -> Sequence[Segment]:
        """What it reads, for whoever tells people how much that is."""
        return self.segments

    def run(self, attempt: Attempt) -> dict[str, Any]:
        """Stage what came of it; tells its path, and how many keys the map has."""
        with attempt.files.read_ahead([(each.path, each.size_bytes) for each in self.segments]) as files:
            with staged_below(self.location):
                mapped = self.latest.mapped(files)
            parts = [compare(files, self.step, self.segments, mapped.offset_map)]
        if self.with_watermarks:
            parts.append(compare_watermarks(read_watermarks(attempt.files, self.step), mapped.offset_map))
        path = attempt.staged(self.location, "compared")
        Comparison.joined(parts).write(attempt.files, path)
        keys = len(mapped.offset_map)
        return {"step_index": self.step_index, "path": path, "keys": keys, "malformed": mapped.malformed}


def _stored(mapped: DirtyMap, step_index: int, attempt: Attempt, path: str) -> dict[str, Any]:
    mapped.offset_map.write(attempt.files, path)
    return {
        "step_index": step_index,
        "path": path,
        "keys": len(mapped.offset_map),
        "end_offset": mapped.end_offset,
        "malformed": mapped.malformed,
    }
