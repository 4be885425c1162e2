"""Where a segment run of a large log finds which records are the latest: jobs before it have found out, and stored it.

An offset map of the whole log where its keys fit into memory, or the maps of its parts; what a comparison with that map
has found where records have versions (``rivals``); a list of the segment run's own offsets where a shuffle has judged
them; and nothing for an expire step, which maps no key. Where the dirty section is small, no job comes before the
segment runs: each task maps all of it by itself.

All of these are small and travel with the segment runs; what they name is read by the task (``read``), once for all
segment runs of a log that it does. ``malformed`` counts dirty records whose version header holds no version.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from keptlog.errors import StalePlan
from keptlog.kernels.judged_offsets import JudgedOffsets
from keptlog.kernels.offset_map import DirtyMap, OffsetMap, map_dirty
from keptlog.kernels.rivals import Comparison
from keptlog.kernels.watermarks import NO_KEYS
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy
from keptlog.storage.files import Files


@contextmanager
def staged_below(location: str) -> Iterator[None]:
    """Around the reading of what earlier jobs of the same clean have left there.

    Raises:
        StalePlan: it is gone. What earlier legs have committed stands.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise StalePlan(
            f"what a clean has staged below {location} is gone from storage: a sweep takes what is older than "
            "--orphan-grace-ms; what was committed stands, plan again"
        ) from error


@dataclass(frozen=True, slots=True)
class StoredMap:
    """The files of a log's offset map, or of its parts, and what is known of it: malformed versions."""

    paths: tuple[str, ...]
    keys: int
    """As many as the largest part has: the whole has hardly more, or few in all."""
    end_offset: int
    malformed: int

    def read(self, files: Files) -> OffsetMap:
        """The map, merged if it is in parts."""
        return self.mapped(files).offset_map

    def mapped(self, files: Files) -> DirtyMap:
        """The map, and how far it reaches."""
        return DirtyMap(OffsetMap.read(files, self.paths), self.end_offset, self.malformed)


@dataclass(frozen=True, slots=True)
class MapByTask:
    """Nobody has mapped the keys of the step yet: a task that needs the map makes it."""

    step: Compact
    malformed: int = 0

    def read(self, files: Files) -> OffsetMap:
        """Make the map.

        Raises:
            StalePlan: a segment is gone.
        """
        return self.mapped(files).offset_map

    def mapped(self, files: Files) -> DirtyMap:
        """Make the map, which reaches to the end of the step: this is not used where it may be full."""
        return map_dirty(files, self.step, self.step.dirty)


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """The files in which the parts of a log with versions are compared with its offset map, which has so many keys."""

    paths: tuple[str, ...]
    keys: int
    malformed: int

    def read(self, files: Files) -> JudgedOffsets:
        """What all parts together say of the records of the whole log."""
        return self._joined(files).settled(self.keys)

    def beaten(self, files: Files) -> pa.ChunkedArray:
        """The keys of the watermarks that lost against a record."""
        return self._joined(files).beaten_keys()

    def _joined(self, files: Files) -> Comparison:
        return Comparison.joined([Comparison.read(files, path) for path in self.paths])


@dataclass(frozen=True, slots=True)
class StoredList:
    """The file of a segment run's judged offsets, null if none were; numbers are of the whole log."""

    path: str | None
    beaten_path: str | None
    keys: int
    malformed: int

    def read(self, files: Files) -> JudgedOffsets:
        """What is known of the records of this segment run."""
        return JudgedOffsets.read(files, self.path, self.keys)

    def beaten(self, files: Files) -> pa.ChunkedArray:
        """The keys of the watermarks that lost against a record."""
        if self.beaten_path is None:
            return NO_KEYS
        with files.open_input(self.beaten_path) as source:
            return pa.ipc.open_file(source).read_all()["key"]


@dataclass(frozen=True, slots=True)
class NoMap:
    """No key is to be mapped."""

    strategy: Strategy
    malformed: int = 0

    def read(self, _: Files) -> OffsetMap:
        """The map of no record."""
        return OffsetMap.empty(self.strategy)

    def beaten(self, _: Files) -> pa.ChunkedArray:
        """The keys of the watermarks that lost against a record: none did."""
        return NO_KEYS


MapSource = StoredMap | MapByTask
"""Records are the latest that the offset map has: but where they have versions, the clean ones have a say too."""
BeatenSource = StoredComparison | StoredList | NoMap
"""What tells which watermarks lost."""
KnownLatest = MapSource | StoredComparison | StoredList | NoMap
