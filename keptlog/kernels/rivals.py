"""Which records survive where they have versions: ``keptlog.log.strategy``, a column at a time.

The offset map knows the latest *dirty* record of each key. A clean record of such a key is superseded by it, unless its
version is higher; then it is a **rival**, and so is a watermark of a higher version:

    clean section        dirty section           rivals
    0: a, version 7      4: a, version 5         0 beats 4
    1: b, version 2      5: b, version 9
                         6: c, version 3

    latest: 0, 5, 6      superseded: 1, 4

So one look at the clean keys settles all but the rivals, which are few: records that came late. It is made in parts,
each of them some segments, and the segment runs settle who is the latest from the rivals of all parts, by numbers
alone.

Versions are read only of clean records whose keys are in the map, row group by row group. A clean record below the log
start has no say: it is no rival. A key whose watermark wins has no latest record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.inputs import Between, open_input, read_where
from keptlog.kernels.judged_offsets import JUDGED_SCHEMA, JudgedOffsets, Standing
from keptlog.kernels.offset_map import OffsetMap, grouped_for_lookup
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from keptlog.log.watermark import NO_OFFSET
from keptlog.storage.files import Files
from keptlog.storage.versions import version_columns, with_versions

_RIVALS = pa.schema([("beats", pa.int64()), ("version", pa.int64()), ("offset", pa.int64())])
"""``beats`` is the offset of a key's latest dirty record, ``offset`` the rival's, ``NO_OFFSET`` for a watermark; in any
order, no nulls. A key is named by the offset of its latest dirty record, for that is a number and one key's alone.
"""
_MARKS = pa.schema([("key", pa.binary()), ("latest_dirty", pa.int64())])
"""One row a key, in any order, no nulls."""


@dataclass(frozen=True)
class Comparison:
    """Some segments, or watermarks, of a log, compared with its offset map."""

    judged: pa.Table
    """Of ``JUDGED_SCHEMA``: all that is known but for the rivals. A dirty record that a rival beats is still the latest
    here."""
    rivals: pa.Table
    """Of ``_RIVALS``; a key may have several."""
    marks: pa.Table
    """Of ``_MARKS``: the watermarks of mapped keys, each with the offset of its key's latest dirty record."""

    @classmethod
    def joined(cls, parts: Sequence[Comparison]) -> Comparison:
        """What is known from all parts of a log, in any order."""
        judged = [JUDGED_SCHEMA.empty_table(), *(part.judged for part in parts)]
        rivals = [_RIVALS.empty_table(), *(part.rivals for part in parts)]
        marks = [_MARKS.empty_table(), *(part.marks for part in parts)]
        return cls(pa.concat_tables(judged), pa.concat_tables(rivals), pa.concat_tables(marks))

    def settled(self, keys: int) -> JudgedOffsets:
        """What this, joined from all parts, says of each record; ``keys`` is how many the offset map has.

        Each key has one best rival at most, and it takes the place of the latest dirty record: that one is superseded,
        and so are the key's other rivals. Where the best is a watermark no record is the latest, a winner less:

            keys 5, best rivals 3, one of them a watermark: winners 5 - 3 + 2 = 4
        """
        best, others = self._divided_rivals()
        of_records = best.filter(pc.field("offset") != NO_OFFSET)
        losers = pa.chunked_array([*best["beats"].chunks, *others["offset"].chunks], pa.int64())
        judged = [
            self.judged.filter(pc.invert(pc.is_in(self.judged["offset"], value_set=best["beats"]))),
            _all_judged(of_records["offset"].to_numpy(), Standing.LATEST),
            _all_judged(losers.filter(pc.not_equal(losers, NO_OFFSET)).to_numpy(), Standing.SUPERSEDED),
        ]
        return JudgedOffsets.of(pa.concat_tables(judged), keys - best.num_rows + of_records.num_rows)

    def beaten_keys(self) -> pa.ChunkedArray:
        """The keys (binary) of the watermarks that lost against a record; this is joined from all parts.

        A watermark of a mapped key lost, unless it is the best rival itself.
        """
        best, _ = self._divided_rivals()
        unbeaten = best.filter(pc.field("offset") == NO_OFFSET)["beats"]
        return self.marks["key"].filter(pc.invert(pc.is_in(self.marks["latest_dirty"], value_set=unbeaten)))

    def _divided_rivals(self) -> tuple[pa.Table, pa.Table]:
        """The best rival of each key that has any, and the others.

        Sorted by key, version and offset (``lexsort`` takes its last key first), the best of a key is its last: the one
        behind which another key begins.

            beats      4   4   9       (key, version, offset) rise
            version    6   7   2
            is_best    -   x   x       4 != 9; behind the last row there is nothing, so it is the best of its key
        """
        beats, versions, offsets = (self.rivals[name].to_numpy() for name in _RIVALS.names)
        in_order = np.lexsort((offsets, versions, beats))
        ordered = beats[in_order]
        # One element a row; the slice takes the appended one away where there are no rows at all.
        is_best = np.append(ordered[1:] != ordered[:-1], values=True)[: len(ordered)]
        return self.rivals.take(pa.array(in_order[is_best])), self.rivals.take(pa.array(in_order[~is_best]))

    def write(self, files: Files, path: str) -> None:
        """Store it, as three Arrow streams in one file."""
        with files.open_output(path) as sink:
            for table in (self.judged, self.rivals, self.marks):
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)

    @classmethod
    def read(cls, files: Files, path: str) -> Comparison:
        """Read what ``write`` stored.

        Raises:
            FileNotFoundError: it is gone.
        """
        with files.open_input(path) as source:
            judged, rivals, marks = (pa.ipc.open_stream(source).read_all() for _ in range(3))
        return cls(judged, rivals, marks)


def compare(files: Files, step: Compact, segments: Sequence[Segment], offset_map: OffsetMap) -> Comparison:
    """Compare some segments of a step, in any order, with the map of its dirty section.

    Raises:
        StalePlan: a segment is gone.
    """
    by_offset: list[Segment] = []
    by_key: list[Segment] = []
    for segment in sorted(segments, key=lambda segment: segment.base_offset):
        if Between.dirty(step).holds(segment) and not segment.unkeyed_count:
            by_offset.append(segment)
        elif (len(offset_map) or segment.unkeyed_count) and segment.base_offset < step.end_offset:
            by_key.append(segment)
    row_groups = _row_groups(files, step, by_key, ["key", "offset"])
    groups = grouped_for_lookup(row_groups, lambda row_group: row_group.columns, offset_map.weight)
    parts = [_by_key(files, step, group, offset_map) for group in groups]
    if by_offset:
        offsets = _joined(_row_groups(files, step, by_offset, ["offset"]))["offset"]
        is_latest = offset_map.has_offsets(offsets)
        latest = _all_judged(offsets.filter(is_latest).to_numpy(), Standing.LATEST)
        superseded = _all_judged(offsets.filter(pc.invert(is_latest)).to_numpy(), Standing.SUPERSEDED)
        parts += [_judged_only(latest), _judged_only(superseded)]
    return Comparison.joined(parts)


def compare_watermarks(watermarks: pa.Table, offset_map: OffsetMap) -> Comparison:
    """Compare the watermarks of a log, of ``WATERMARKS_SCHEMA``, with the map of its dirty section."""
    rows, is_mapped = _rows_in(offset_map, watermarks["key"])
    mapped, rows = watermarks.filter(pa.array(is_mapped)), rows[is_mapped]
    latest_dirty = offset_map.latest["offset"].to_numpy()[rows]
    offsets = np.full(len(rows), NO_OFFSET)
    rivals = _rivals(mapped["version"], offsets, latest_dirty, offset_map.latest["version"].take(pa.array(rows)))
    marks = pa.table([mapped["key"], latest_dirty], schema=_MARKS)
    return Comparison(JUDGED_SCHEMA.empty_table(), rivals, marks)


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """What was read of one to compare it, and in which row of its segment it begins."""

    segment: Segment
    first_row: int
    columns: pa.Table


def _by_key(files: Files, step: Compact, row_groups: Sequence[_RowGroup], offset_map: OffsetMap) -> Comparison:
    """Compare row groups whose keys have to be looked up: of clean or mixed segments, or of those with unkeyed records.

    They are neighbours and come in offset order, so positions in ``records`` and offsets rise together.
    """
    segments = list(dict.fromkeys(row_group.segment for row_group in row_groups))
    records = _joined(row_groups)
    all_offsets = records["offset"].to_numpy()
    is_inside = all_offsets < step.end_offset
    found = _lookup(records["key"], all_offsets, is_inside, offset_map)
    found = replace(found, positions=found.positions + row_groups[0].first_row)
    rivals = _rivals_among(files, step, segments, found, offset_map)
    is_latest = found.offsets == found.latest_dirty
    is_superseded = ~is_latest
    # Rivals are among the offsets that were found, and these rise: so searching for one gives its place. A rival is not
    # superseded yet: who is the best is known when all parts are joined.
    is_superseded[np.searchsorted(found.offsets, rivals["offset"].to_numpy())] = False
    is_unkeyed = pc.is_null(records["key"]).to_numpy() & is_inside
    judged = (
        _all_judged(found.offsets[is_latest], Standing.LATEST),
        _all_judged(found.offsets[is_superseded], Standing.SUPERSEDED),
        _all_judged(all_offsets[is_unkeyed], Standing.UNKEYED),
    )
    return Comparison(pa.concat_tables(judged), rivals, _MARKS.empty_table())


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The records before the end whose keys the map has; all arrays are int64, of one length, in offset order."""

    positions: npt.NDArray[np.int64]
    """Where they stand among all records of the segments that were read; rising."""
    offsets: npt.NDArray[np.int64]
    """Rising."""
    rows: npt.NDArray[np.int64]
    """The rows of their keys in the map."""
    latest_dirty: npt.NDArray[np.int64]
    """The offsets of the latest dirty records of their keys."""


def _lookup(
    keys: pa.ChunkedArray, offsets: npt.NDArray[np.int64], is_inside: npt.NDArray[np.bool_], offset_map: OffsetMap
) -> _Lookup:
    """``keys``, ``offsets`` and ``is_inside`` have one element for each record that was read."""
    rows, is_mapped = _rows_in(offset_map, keys)
    positions = np.flatnonzero(is_mapped & is_inside)
    rows = rows[positions]
    return _Lookup(positions, offsets[positions], rows, offset_map.latest["offset"].to_numpy()[rows])


def _rivals_among(
    files: Files, step: Compact, segments: Sequence[Segment], found: _Lookup, offset_map: OffsetMap
) -> pa.Table:
    """The rivals, as a table of ``_RIVALS``: only clean records have a say, and only their versions are read."""
    # ``_versions_at`` gives a version for each position, in their order: all columns are of the same records.
    has_a_say = (found.offsets >= step.log_start_offset) & (found.offsets < step.first_dirty_offset)
    return _rivals(
        _versions_at(files, step, segments, found.positions[has_a_say]),
        found.offsets[has_a_say],
        found.latest_dirty[has_a_say],
        offset_map.latest["version"].take(pa.array(found.rows[has_a_say])),
    )


def _rows_in(offset_map: OffsetMap, keys: pa.ChunkedArray) -> tuple[Any, npt.NDArray[np.bool_]]:
    """For each key its row in the map (int64, -1 without one), and whether it has one (bool)."""
    rows = pc.fill_null(offset_map.rows_of(keys), -1).to_numpy()
    return rows, rows >= 0


def _rivals(versions: pa.ChunkedArray, offsets: Any, latest_dirty: Any, dirty_versions: pa.ChunkedArray) -> pa.Table:
    """Those of these records, or watermarks, that beat the latest dirty ones of their keys. A tie is for the dirty.

    All four are int64 and of one length: of each record its version (null for none), its offset, and the offset and
    the version (null for none) of its key's latest dirty record. A record without a version beats nothing; one with a
    version beats a dirty record without one. What comes back is of ``_RIVALS``.
    """
    is_higher = pc.or_kleene(pc.greater(versions, dirty_versions), pc.is_null(dirty_versions))
    is_rival = pc.fill_null(pc.and_(pc.is_valid(versions), is_higher), fill_value=False)
    return pa.table([latest_dirty, versions, offsets], schema=_RIVALS).filter(is_rival)


def _versions_at(
    files: Files, step: Compact, segments: Sequence[Segment], positions: npt.NDArray[np.int64]
) -> pa.ChunkedArray:
    """The versions (int64, null for none) of the records of the segments that stand at these rising positions.

    Positions count through all segments, so those of a segment lie between where it starts and where it ends; less its
    start they are the rows of its file:

        segments     [ 0 1 2 3 ][ 4 5 6 ]        of 4 and of 3 records
        positions        1   3    4     6
        rows             1   3    0     2        of the first file, of the second one
    """
    columns, start, chunks = version_columns(step.strategy), 0, []
    for segment in segments:
        end = start + segment.record_count
        mask = np.zeros(segment.record_count, dtype=bool)
        mask[positions[np.searchsorted(positions, start) : np.searchsorted(positions, end)] - start] = True
        for records in read_where(files, step, segment, pa.array(mask), columns):
            chunks += with_versions(records, step.strategy)["version"].chunks
        start = end
    return pa.chunked_array(chunks, pa.int64())


def _row_groups(
    files: Files, step: Compact, segments: Iterable[Segment], columns: Sequence[str]
) -> Iterator[_RowGroup]:
    """These columns of the row groups of the segments, in their order."""
    for segment in segments:
        first_row = 0
        with open_input(files, step, segment) as opened:
            for number, rows in enumerate(opened.row_groups):
                yield _RowGroup(segment, first_row, opened.read(number, columns).select(columns))
                first_row += rows


def _joined(row_groups: Iterable[_RowGroup]) -> pa.Table:
    return pa.concat_tables(each.columns.replace_schema_metadata(None) for each in row_groups)


def _all_judged(offsets: Any, judged: Standing) -> pa.Table:
    """Of ``JUDGED_SCHEMA``; offsets are int64, in any order."""
    return pa.table([offsets, np.full(len(offsets), judged, np.int8)], schema=JUDGED_SCHEMA)


def _judged_only(judged: pa.Table) -> Comparison:
    """What is known of dirty segments, in which nothing is a rival; ``judged`` is of ``JUDGED_SCHEMA``."""
    return Comparison(judged, _RIVALS.empty_table(), _MARKS.empty_table())
