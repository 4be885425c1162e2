"""Where a run of a large log finds which records are the latest: jobs before it have found out, and stored it.

An offset map of the whole log where its keys fit into memory, or the maps of its parts; a list of the run's own offsets
where a shuffle has judged them; and nothing for an expire step, which maps no key. Where the dirty section is small, no
job comes before the runs: each maps all of it by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from keptlog.log.plan import Step
from keptlog.spark.judged_offsets import JudgedOffsets
from keptlog.spark.offset_map import OffsetMap, map_dirty
from keptlog.spark.watermarks import beaten_keys
from keptlog.storage.files import Files


@dataclass(frozen=True, slots=True)
class MapAt:
    """The files of a log's offset map, or of its parts, and what is known of it: malformed versions."""

    paths: tuple[str, ...]
    malformed: int

    def read(self, files: Files, _: Step) -> OffsetMap:
        return self._merged(files)

    def beaten(self, files: Files, watermarks: pa.Table) -> pa.ChunkedArray:
        """The keys of those watermarks that lost against a record."""
        return beaten_keys(watermarks, self._merged(files))

    def _merged(self, files: Files) -> OffsetMap:
        return OffsetMap.merged([OffsetMap.read(files, path) for path in self.paths])


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Nobody has mapped the keys yet: a run does so itself. Only for logs without versions."""

    malformed: int = 0

    def read(self, files: Files, step: Step) -> OffsetMap:
        return map_dirty(files, step, step.dirty).offset_map

    def beaten(self, _: Files, watermarks: pa.Table) -> pa.ChunkedArray:
        """The keys of those watermarks that lost against a record: without versions there are none."""
        return watermarks["key"].slice(0, 0)


@dataclass(frozen=True, slots=True)
class ListAt:
    """The file of a run's judged offsets, null if none were; numbers are of the whole log."""

    path: str | None
    beaten_path: str | None
    keys: int
    malformed: int

    def read(self, files: Files, _: Step) -> JudgedOffsets:
        return JudgedOffsets.read(files, self.path, self.keys)

    def beaten(self, files: Files, watermarks: pa.Table) -> pa.ChunkedArray:
        """The keys of those watermarks that lost against a record."""
        if self.beaten_path is None:
            return watermarks["key"].slice(0, 0)
        with files.open_input(self.beaten_path) as source:
            return pa.ipc.open_file(source).read_all()["key"]


@dataclass(frozen=True, slots=True)
class Nothing:
    """No key was mapped."""

    malformed: int = 0

    def read(self, _: Files, step: Step) -> OffsetMap:
        return OffsetMap.empty(step.strategy)

    def beaten(self, _: Files, watermarks: pa.Table) -> pa.ChunkedArray:
        """The keys of those watermarks that lost against a record: none did."""
        return watermarks["key"].slice(0, 0)


KnownLatest = MapAt | Unmapped | ListAt | Nothing
