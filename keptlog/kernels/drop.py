"""Takes the records of wanted keys out of one segment: all others are written again as they are, in their order.

    segment   offset 3 a | 4 b | 5 a | 9 c        a and c are wanted, a below 5, c below 20
    drop             x                   x        what is left: 4 b, 5 a, in a new segment

A segment without such a record is kept, and of it only keys were read. One of which nothing is left has no successor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.gone import input_gone
from keptlog.kernels.wanted_keys import KeyFinder, hits_of
from keptlog.log.search import KeyHits
from keptlog.log.segment import Segment
from keptlog.log.steps import Drop
from keptlog.storage.files import Files
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_reader import SegmentFile, open_segment
from keptlog.storage.segment_writer import ROW_GROUP_BYTES, SegmentWriter
from keptlog.storage.value_views import kept
from keptlog.storage.watermark_file import read_any_watermarks, write_watermark_file


@dataclass(frozen=True, slots=True)
class SegmentDrop:
    """What became of a segment with such records."""

    removed: Segment
    added: tuple[Segment, ...]
    hits: tuple[KeyHits, ...]
    """What went."""


@dataclass(frozen=True)
class RecordDrop:
    """Drops records of one log, segment by segment, in one task."""

    files: Files
    step: Drop
    finder: KeyFinder
    row_group_bytes: int = ROW_GROUP_BYTES

    def segment(self, segment: Segment, path_for: Callable[[int], str]) -> SegmentDrop | None:
        """Write a segment again without them; null if it has none. ``path_for`` gives new paths from base offsets.

        Raises:
            InputGone: the segment is gone.
            LogCorrupt: it is damaged; what it holds of the keys can't be told.
        """
        try:
            with open_segment(self.files, segment) as opened:
                found = [self._going(self.finder.found_in(opened, number)) for number in range(len(opened.row_groups))]
                if not any(rows.num_rows for rows in found):
                    return None
                added = self._rewritten(opened, found, path_for)
        except FileNotFoundError as error:
            what = f"segment {segment.path}"
            raise input_gone(self.step.topic_partition, what, "records were to be dropped from it") from error
        return SegmentDrop(segment, added, tuple(hits_of(found, self.finder.wanted)))

    def watermarks(self, new_path: str) -> tuple[str | None, int]:
        """The file of the log's watermarks without those of the keys, and how many went: itself, a new one, or none.

        Raises:
            InputGone: the file is gone.
        """
        path = self.step.watermarks_path
        if path is None:
            return None, 0
        try:
            marks, strategy = read_any_watermarks(self.files, path, self.step.topic_partition.topic)
        except FileNotFoundError as error:
            what = f"file {path} with its watermarks"
            raise input_gone(self.step.topic_partition, what, "records were to be dropped") from error
        which = self.finder.which(marks["key"])
        if which is None:
            return path, 0
        left = marks.filter(which.is_null())
        if left.num_rows == 0:
            return None, marks.num_rows
        write_watermark_file(self.files, new_path, strategy, left)
        return new_path, marks.num_rows - left.num_rows

    def _going(self, found: pa.Table) -> pa.Table:
        """Of the records of wanted keys those below the offset of their key."""
        end_offsets = pa.array([self.step.end_offsets[key_hash] for key_hash in self.finder.wanted.key_hashes])
        return found.filter(pc.less(found["offset"], pc.take(end_offsets, found["which"])))

    def _rewritten(
        self, opened: SegmentFile, found: list[pa.Table], path_for: Callable[[int], str]
    ) -> tuple[Segment, ...]:
        writer = SegmentWriter(self.files, path_for, self.step.segment_bytes, self.row_group_bytes)
        try:
            for number, rows in enumerate(opened.row_groups):
                going = found[number]["row"].to_numpy()
                if len(going) == rows:
                    continue
                records = opened.read(number, SCHEMA.names).select(SCHEMA.names)
                if len(going):
                    stays = np.ones(rows, dtype=bool)
                    stays[going] = False
                    records = kept(records, pa.chunked_array([pa.array(stays)]), rows - len(going))
                writer.write(records)
            return tuple(writer.finish())
        except BaseException:
            writer.abandon()
            raise
