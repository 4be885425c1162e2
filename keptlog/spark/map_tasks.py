"""Tasks that map the keys of a large log, in parts that are merged.

    dirty section    [ part ][ part ] -> [ merge ]

Where records have versions, the clean records of the mapped keys have a say too, and so have the watermarks:

    clean section                     -> [ part ][ part ] -> [ merge, with watermarks ]

A map that may be full is made by one task, for it ends where the records before it have filled it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keptlog.log.offset_map import UNBOUNDED
from keptlog.log.plan import Step
from keptlog.log.segment import Segment
from keptlog.spark.attempt import Attempt
from keptlog.spark.offset_map import Mapped, OffsetMap, map_dirty
from keptlog.spark.watermarks import read_watermarks


@dataclass(frozen=True, slots=True)
class MapTask:
    """Map a part of one log's dirty section, or all of it until the map is full."""

    step_index: int
    step: Step
    segments: tuple[Segment, ...]
    location: str
    max_keys: int = UNBOUNDED.max_keys

    def run(self, attempt: Attempt) -> dict[str, Any]:
        mapped = map_dirty(attempt.files, self.step, self.segments, self.max_keys)
        return _stored(mapped, self.step_index, attempt, attempt.staged(self.location, "dirty"))


@dataclass(frozen=True, slots=True)
class CleanMapTask:
    """Of the keys that were mapped, find the latest records in a part of the clean section."""

    step_index: int
    step: Step
    segments: tuple[Segment, ...]
    location: str
    map_path: str

    def run(self, attempt: Attempt) -> dict[str, Any]:
        offset_map = OffsetMap.read(attempt.files, self.map_path)
        latest = offset_map.latest_clean(attempt.files, self.step, self.segments)
        mapped = Mapped(latest, self.step.end_offset, 0)
        return _stored(mapped, self.step_index, attempt, attempt.staged(self.location, "clean"))


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Merge the parts of one log's map."""

    step_index: int
    step: Step
    parts: tuple[str, ...]
    location: str
    with_watermarks: bool = False

    def run(self, attempt: Attempt) -> dict[str, Any]:
        offset_map = OffsetMap.merged([OffsetMap.read(attempt.files, part) for part in self.parts])
        if self.with_watermarks:
            watermarks = read_watermarks(attempt.files, self.step)
            offset_map = OffsetMap.merged([offset_map, offset_map.latest_watermarks(watermarks)])
        mapped = Mapped(offset_map, self.step.end_offset, 0)
        path = attempt.staged(self.location, "all" if self.with_watermarks else "map")
        return _stored(mapped, self.step_index, attempt, path)


def _stored(mapped: Mapped, step_index: int, attempt: Attempt, path: str) -> dict[str, Any]:
    mapped.offset_map.write(attempt.files, path)
    return {
        "step_index": step_index,
        "path": path,
        "keys": mapped.offset_map.winners,
        "end_offset": mapped.end_offset,
        "malformed": mapped.malformed,
    }
