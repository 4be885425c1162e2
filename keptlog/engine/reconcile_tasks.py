"""Tasks that compare a log with all of its source: which offsets are there, and what was read with tombstones in it.

    PresentTask   a part of the source  --read-->  the stretches of offsets at which records are there
    InsertTask    staged segments, tombstones  --merge by offset-->  staged segments

Which records make way for which tombstones is decided between the two (``keptlog.ingest.reconcile``).
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.engine.attempt import Attempt
from keptlog.engine.ingest_tasks import Part
from keptlog.errors import LogCorrupt
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.files import Files
from keptlog.storage.schema import to_arrow
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.segment_writer import SegmentWriter

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PresentTask:
    """Reads one part for its offsets alone."""

    part: Part

    def run(self, attempt: Attempt) -> dict[str, Any]:  # noqa: ARG002  # it writes nothing
        """Look; with what is broken and left out, for whatever is missing may be in there.

        Raises:
            KeptlogError: it can't be read.
        """
        skipped: list[str] = []
        found = [_stretches(table["offset"].to_numpy()) for table in self.part.read(skipped.append) if table.num_rows]
        stretches = np.concatenate([np.zeros((0, 2), np.int64), *found])
        return {"present": base64.b64encode(zlib.compress(stretches.tobytes(), 1)).decode(), "skipped": skipped}


def _stretches(offsets: Longs) -> Longs:
    """Where the neighbours among some offsets begin and end, a row each."""
    offsets = np.sort(offsets)
    after_gap = np.flatnonzero(np.diff(offsets) > 1) + 1
    starts, lasts = offsets[np.r_[0, after_gap]], offsets[np.r_[after_gap - 1, -1]]
    return np.stack([starts, lasts + 1], axis=1)


@dataclass(frozen=True, slots=True)
class PresentOffsets:
    """At which offsets of a log records are. It is as large as there are records, however far apart they lie."""

    starts: Longs
    """Of stretches of neighbours, rising."""
    ends: Longs
    """How far all stretches up to this one come."""

    @classmethod
    def found_by(cls, results: Iterable[dict[str, Any]]) -> PresentOffsets:
        """What such tasks have found in the parts of one log."""
        found = [np.frombuffer(zlib.decompress(base64.b64decode(each["present"])), np.int64) for each in results]
        stretches = np.concatenate([np.zeros(0, np.int64), *found]).reshape(-1, 2)
        starts, ends = stretches[np.argsort(stretches[:, 0], kind="stable")].T
        return cls(np.ascontiguousarray(starts), np.maximum.accumulate(ends))

    def has(self, offsets: Longs) -> npt.NDArray[np.bool_]:
        """Of each offset, whether a record is there."""
        if not len(self.starts):
            return np.zeros(len(offsets), np.bool_)
        before = np.searchsorted(self.starts, offsets, side="right") - 1
        found: npt.NDArray[np.bool_] = (before >= 0) & (offsets < self.ends[before])
        return found


def hidden_by(left_out: str) -> LogCorrupt:
    """Why a log can't be compared of which something is broken and left out."""
    return LogCorrupt(
        f"{left_out}; what seems to be gone may be in there, or newer records of it, so nothing is deleted here: "
        "restore the file, or go on without (--skip-lost)"
    )


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Writes the segments of one log's end once more, with tombstones at offsets that no record has."""

    topic_partition: TopicPartition
    segments: tuple[Segment, ...]
    tombstones: tuple[Record, ...]
    """By offset, at least one; none of them has an offset below the segments."""
    location: str
    segment_bytes: int

    def run(self, attempt: Attempt) -> dict[str, Any]:
        """Stage the new segments."""
        path_for = partial(attempt.segment, self.location, self.topic_partition)
        writer = SegmentWriter(attempt.files, path_for, self.segment_bytes)
        try:
            for table in self._merged(attempt.files):
                writer.write(table)
            segments = writer.finish()
        except BaseException:
            writer.abandon()
            raise
        return {"segments": [dataclasses.asdict(segment) for segment in segments]}

    def _merged(self, files: Files) -> Iterator[pa.Table]:
        waiting = to_arrow(self.topic_partition.partition, self.tombstones)
        for segment in self.segments:
            for table in read_row_groups(files, segment):
                is_before = pc.less(waiting["offset"], table["offset"][-1])
                inside, waiting = waiting.filter(is_before), waiting.filter(pc.invert(is_before))
                yield pa.concat_tables([table.cast(waiting.schema), inside]).sort_by("offset") if inside else table
        if waiting.num_rows:
            yield waiting


def free_offsets(files: Files, segments: Sequence[Segment], end_offset: int, from_offset: int, count: int) -> list[int]:
    """Up to ``count`` offsets in [from, end) that no record of these segments has, the highest ones, rising."""
    found: list[int] = []
    upper = end_offset
    for segment in reversed(segments):
        found += range(upper - 1, segment.last_offset, -1)[: count - len(found)]
        if len(found) == count:
            break
        tables = read_row_groups(files, segment, ["offset"])
        taken = np.concatenate([[segment.base_offset - 1], *(table["offset"].to_numpy() for table in tables)])
        for index in np.flatnonzero(np.diff(taken) > 1)[::-1]:
            found += range(int(taken[index + 1]) - 1, int(taken[index]), -1)[: count - len(found)]
            if len(found) == count:
                break
        upper = segment.base_offset
    found += range(upper - 1, from_offset - 1, -1)[: count - len(found)]
    return sorted(found)
