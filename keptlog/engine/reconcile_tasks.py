"""Tasks that compare a log with all of its source: which offsets are there, and what was read with tombstones in it.

    PresentTask       a part of the source  --read-->  the offsets at which records are there, packed
    PresentKeysTask   a part of the source, some keys  --read-->  which of them are there
    UnfitTombstonesTask  a part of the source  --read-->  the tombstones in it that no table can hold
    InsertTask        a staged segment or none, tombstones  --merge by offset-->  staged segments

Which records make way for which tombstones is decided between the two (``keptlog.ingest.reconcile``).
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.engine.attempt import Attempt
from keptlog.engine.ingest_tasks import LeftOut, Part
from keptlog.errors import LogCorrupt
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.files import Files
from keptlog.storage.keys import rows_of
from keptlog.storage.schema import to_arrow
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.segment_writer import SegmentWriter

Longs = npt.NDArray[np.int64]

_TOLD_TOGETHER = 65_536
"""At least so many offsets, or all that are left of a part: a table may have one."""


@dataclass(frozen=True, slots=True)
class PresentTask:
    """Reads one part for its offsets alone."""

    part: Part

    def run(self, attempt: Attempt) -> dict[str, Any]:  # noqa: ARG002  # it writes nothing
        """Look; with what is left out, for whatever is missing may be in what is broken.

        Raises:
            KeptlogError: it can't be read.
        """
        left_out = LeftOut()
        present = [_told(offsets) for offsets in _together(self.part.read(left_out))]
        return {"present": present, **dataclasses.asdict(left_out)}


def _together(tables: Iterable[pa.Table]) -> Iterator[Longs]:
    """The offsets of some tables at a time, rising."""
    waiting: list[Longs] = []
    count = 0
    for table in tables:
        waiting.append(np.array(table["offset"].to_numpy()))
        count += table.num_rows
        if count >= _TOLD_TOGETHER:
            yield np.unique(np.concatenate(waiting))
            waiting, count = [], 0
    if count:
        yield np.unique(np.concatenate(waiting))


def _told(offsets: Longs) -> tuple[int, int, bool, str]:
    """From where to where some offsets lie, and which they are: a bit each or as stretches, whichever is smaller."""
    first, end = int(offsets[0]), int(offsets[-1]) + 1
    after_gap = np.flatnonzero(np.diff(offsets) > 1) + 1
    starts, lasts = offsets[np.r_[0, after_gap]], offsets[np.r_[after_gap - 1, -1]]
    found = np.concatenate([starts, lasts - starts]).tobytes()
    is_bits = end - first < 8 * len(found)
    if is_bits:
        is_there = np.zeros(end - first, np.bool_)
        is_there[offsets - first] = True
        found = np.packbits(is_there).tobytes()
    return first, end, is_bits, base64.b64encode(zlib.compress(found, 1)).decode()


@lru_cache(maxsize=2)
def _unpacked(text: str) -> bytes:
    """Tables that are asked for lie side by side, and no more than that is to be in memory."""
    return zlib.decompress(base64.b64decode(text))


@dataclass(frozen=True, slots=True)
class PresentOffsets:
    """At which offsets of a log records are. It stays as it was told, and is unpacked where somebody asks."""

    firsts: Longs
    """Where the offsets begin that were told together."""
    ends: Longs
    told: tuple[tuple[bool, str], ...]

    @classmethod
    def found_by(cls, results: Iterable[dict[str, Any]]) -> PresentOffsets:
        """What such tasks have found in the parts of one log."""
        told = [each for result in results for each in result["present"]]
        firsts, ends = (np.array([each[index] for each in told], np.int64) for index in (0, 1))
        return cls(firsts, ends, tuple((is_bits, text) for _, _, is_bits, text in told))

    def has(self, offsets: Longs) -> npt.NDArray[np.bool_]:
        """Of each offset, whether a record is there."""
        found = np.zeros(len(offsets), np.bool_)
        if not len(offsets):
            return found
        for index in np.flatnonzero((self.firsts <= offsets.max()) & (self.ends > offsets.min())):
            first = self.firsts[index]
            inside = (offsets >= first) & (offsets < self.ends[index])
            is_bits, text = self.told[index]
            look = _in_bits if is_bits else _in_stretches
            found[inside] |= look(_unpacked(text), offsets[inside], first)
        return found


def _in_bits(found: bytes, offsets: Longs, first: np.int64) -> npt.NDArray[np.bool_]:
    at = offsets - first
    is_there: npt.NDArray[np.bool_] = np.frombuffer(found, np.uint8)[at >> 3] << (at & 7) & 128 != 0
    return is_there


def _in_stretches(found: bytes, offsets: Longs, _first: np.int64) -> npt.NDArray[np.bool_]:
    starts, lengths = np.frombuffer(found, np.int64).reshape(2, -1)
    before = np.searchsorted(starts, offsets, side="right") - 1
    is_there: npt.NDArray[np.bool_] = offsets - starts[before] <= lengths[before]
    return is_there


def hidden_by(left_out: str) -> LogCorrupt:
    """Why a log can't be compared of which something is broken and left out."""
    return LogCorrupt(
        f"{left_out}; what seems to be gone may be in there, or newer records of it, so nothing is deleted here: "
        "restore the file, or go on without (--skip-lost)"
    )


@dataclass(frozen=True, slots=True)
class PresentKeysTask:
    """Reads one part for some keys."""

    part: Part
    keys: tuple[bytes, ...]

    def run(self, attempt: Attempt) -> dict[str, Any]:  # noqa: ARG002  # it writes nothing
        """Look: at which places of ``keys`` those are that records have, and how many records there are.

        With what is left out, as above. Of each key it tells the newest whole record that no table can hold: its place,
        the offset, and whether it is a tombstone (``alive_among``).

        Raises:
            KeptlogError: it can't be read.
        """
        wanted = pa.chunked_array([self.keys], pa.binary())
        left_out = LeftOut()
        found: set[int] = set()
        unfit: dict[int, tuple[int, bool]] = {}
        records = 0

        def skip(line: str, whole: pa.Table | None = None, /) -> None:
            nonlocal records
            left_out(line, whole)
            if whole is not None:
                records += whole.num_rows
                _keep_newest(unfit, whole, wanted)

        for table in self.part.read(skip):
            records += table.num_rows
            found.update(rows_of(table["key"], wanted).drop_null().to_pylist())
        newest_unfit = [(place, *newest) for place, newest in unfit.items()]
        counted = {"found": sorted(found), "newest_unfit": newest_unfit, "records": records}
        return {**counted, **dataclasses.asdict(left_out)}


def _keep_newest(newest: dict[int, tuple[int, bool]], whole: pa.Table, wanted: pa.ChunkedArray) -> None:
    """Take in records, which are not in the order of those that were taken in before."""
    found = whole.set_column(whole.schema.get_field_index("key"), "place", rows_of(whole["key"], wanted))
    found = found.filter(pc.is_valid(found["place"]))
    columns = (found[name].to_pylist() for name in ("place", "offset", "is_tombstone"))
    for place, offset, is_tombstone in zip(*columns, strict=True):
        newest[place] = max(newest.get(place, (-1, False)), (offset, is_tombstone))


def alive_among(keys: Sequence[bytes], results: Iterable[dict[str, Any]]) -> set[bytes]:
    """Keys that have a value there which no table can hold, and behind it no tombstone which none can hold either.

    ``results`` are those of all parts of a log: a tombstone may lie in another part than what it deletes.
    """
    newest: dict[int, tuple[int, bool]] = {}
    for result in results:
        for place, offset, is_tombstone in result["newest_unfit"]:
            newest[place] = max(newest.get(place, (-1, False)), (offset, is_tombstone))
    return {keys[place] for place, (_, is_tombstone) in newest.items() if not is_tombstone}


@dataclass(frozen=True, slots=True)
class UnfitTombstonesTask:
    """Reads one part for the tombstones that no table can hold."""

    part: Part

    def run(self, attempt: Attempt) -> dict[str, Any]:  # noqa: ARG002  # it writes nothing
        """Look: of each key that has some, the newest one.

        Raises:
            KeptlogError: it can't be read.
        """
        newest: dict[bytes, int] = {}

        def skip(_line: str, whole: pa.Table | None = None, /) -> None:
            if whole is not None:
                found = whole.filter(pc.and_(whole["is_tombstone"], pc.is_valid(whole["key"])))
                for key, offset in zip(found["key"].to_pylist(), found["offset"].to_pylist(), strict=True):
                    newest[key] = max(newest.get(key, -1), offset)

        for _ in self.part.read(skip):
            pass
        return {"deleted": [(base64.b64encode(key).decode(), offset) for key, offset in newest.items()]}


def deleted_among(results: Iterable[dict[str, Any]]) -> dict[bytes, int]:
    """Keys to the newest of such tombstones, from the results of all parts of a log."""
    newest: dict[bytes, int] = {}
    for result in results:
        for text, offset in result["deleted"]:
            key = base64.b64decode(text)
            newest[key] = max(newest.get(key, -1), offset)
    return newest


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Writes one segment of a log once more, with tombstones at offsets that no record has."""

    topic_partition: TopicPartition
    segment: Segment | None
    """Null for tombstones behind the last one."""
    tombstones: tuple[Record, ...]
    """By offset, at least one; those around the segment go before and behind it."""
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
        for table in read_row_groups(files, self.segment) if self.segment else ():
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
