"""Where in a topic the records of some keys are: in which logs, up to which offset, with which version.

Whoever appends a tombstone has to know. A key is usually in one log alone, but who appends may choose another; and
where records have versions, a tombstone only wins with one that is not below theirs. The segments are read one after
the other, their keys and, where one of these is met, what tells a version.

Whoever waits for a deletion has to know which tombstone is one. It deletes what is before it if it was the latest of
its key when it came. By offset each is; by version a late one may lose:

    offset   0    1      2      3    4
    version  7    5      9      8    12
    value    x    null   null   y    z       the tombstone at 2 counts: it beats 0 and 3; what came behind it, 4, is new

Keys may be known by their keyed hashes alone. Then every key that is met is hashed, once for each row group. Where a
topic is large, a search on Spark tells first which segments are worth it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.log.segment import Log, Segment
from keptlog.log.strategy import Order, Strategy
from keptlog.storage.keys import are_among, distinct
from keptlog.storage.segment_reader import SegmentFile, open_segment
from keptlog.storage.versions import version_columns, with_versions

if TYPE_CHECKING:
    from keptlog.storage.files import Files
    from keptlog.storage.key_hash import KeyHasher


_NONE: Order = (False, 0, -1)


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The records of one key in one topic-partition."""

    key: bytes = field(repr=False)
    partition: int
    end_offset: int
    """Behind its last record."""
    tombstone: Order | None
    """Of the last tombstone that was the latest record when it came; null if there is none."""
    value: Order | None
    """The highest of the records that are no tombstones; null if there is none."""

    @property
    def highest_version(self) -> int | None:
        """Null if no record has one."""
        has_version, version, _ = max(each for each in (self.tombstone, self.value, _NONE) if each)
        return version if has_version else None

    @property
    def deleted_at(self) -> int | None:
        """The offset of the tombstone that is its latest record; null if another record is."""
        if self.tombstone is None or (self.value and self.value > self.tombstone):
            return None
        return self.tombstone[-1]


@dataclass(frozen=True)
class KeyPlaces:
    """Looks for the records of some keys in logs."""

    files: Files
    hasher: KeyHasher
    keys: frozenset[bytes] = field(repr=False)
    key_hashes: frozenset[bytes] = field(repr=False)
    """Of keys that are known by nothing else."""
    strategy: Strategy = field(default_factory=Strategy)

    def find(self, logs: Iterable[Log], since: Mapping[int, int], segments: frozenset[str] | None) -> list[KeyPlace]:
        """The keys that are in these logs, from the offsets ``since`` on, in these segments (null for all).

        Raises:
            FileNotFoundError: a segment was replaced and purged meanwhile; look anew.
            LogCorrupt: one is damaged.
        """
        found: dict[tuple[int, bytes], KeyPlace] = {}
        for log in logs:
            partition = log.topic_partition.partition
            from_offset = since.get(partition, 0)
            for segment in log.segments:
                if segment.last_offset >= from_offset and (segments is None or segment.path in segments):
                    self._look_through(segment, partition, from_offset, found)
        return list(found.values())

    def _look_through(
        self, segment: Segment, partition: int, from_offset: int, found: dict[tuple[int, bytes], KeyPlace]
    ) -> None:
        with open_segment(self.files, segment) as file:
            for number in range(len(file.row_groups)):
                keys = file.read(number, ["key"])["key"]
                is_wanted = self._is_wanted(keys)
                if pc.any(is_wanted).as_py():
                    for place in self._places(file, number, is_wanted, from_offset):
                        at = partition, place.key
                        there = found.get(at)
                        found[at] = both(there, place) if there else replace(place, partition=partition)

    def _is_wanted(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        wanted = pa.array(sorted(self.keys), pa.binary())
        if self.key_hashes:
            met = distinct(keys)
            hashed = self.hasher.hashes(met.to_pylist())
            known = met.filter(pa.array([each in self.key_hashes for each in hashed], pa.bool_()))
            wanted = distinct(pa.chunked_array([wanted, known]))
        return are_among(keys, pa.chunked_array([wanted]))

    def _places(
        self, file: SegmentFile, number: int, is_wanted: pa.ChunkedArray, from_offset: int
    ) -> Sequence[KeyPlace]:
        columns = ["key", "offset", "value", *version_columns(self.strategy)]
        records = file.read(number, columns).filter(is_wanted)
        records = records.filter(pc.greater_equal(records["offset"], from_offset))
        if self.strategy.has_versions:
            records = with_versions(records, self.strategy)
        versions = records["version"].to_pylist() if self.strategy.has_versions else [None] * records.num_rows
        is_tombstone = np.asarray(records["value"].is_null().to_numpy(), dtype=bool)
        rows = zip(records["key"].to_pylist(), records["offset"].to_pylist(), versions, is_tombstone, strict=True)
        places = []
        for key, offset, version, is_deletion in rows:
            order = version is not None, version or 0, offset
            places.append(KeyPlace(key, -1, offset + 1, order if is_deletion else None, None if is_deletion else order))
        return places


def both(one: KeyPlace, other: KeyPlace) -> KeyPlace:
    """What is known of one key of one log by two looks, the other at what came behind the one."""
    before = max((each for each in (one.tombstone, one.value) if each), default=_NONE)
    is_latest = other.tombstone is not None and other.tombstone > before
    return replace(
        one,
        end_offset=max(one.end_offset, other.end_offset),
        tombstone=other.tombstone if is_latest else one.tombstone,
        value=max((each for each in (one.value, other.value) if each), default=None),
    )
