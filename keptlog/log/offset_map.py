"""How many keys one pass may map, and where it ends if there are more.

Memory for the offset map is given once for all cleaner threads (``log.cleaner.dedupe.buffer.size``). Kafka's map has a
slot of 24 bytes a key (16 of its hash, 8 of its offset; 8 more with a version, KIP-280), and fills to a load factor:

    134217728 bytes / 1 thread / 24 bytes = 5592405 slots, * 0.9 = 5033164 keys

The same arithmetic bounds a pass here, so that the setting means what it means in Kafka; keys are compared as keys.

A dirty section with more keys is cleaned in several passes. Records are mapped in offset order until the map is full;
the pass ends at the next record that has a key, even if the map has that key already:

    offset   3  4  5  6  |  9 10 11            max_keys = 2
    key      a  b  a  c  |  a  d  c            the map is full with b; a at 5 ends the pass: end_offset = 5

A whole segment that was mapped carries the end to the beginning of the next one, across the gap, or a log that ends in
a gap would be cleaned again and again (KAFKA-8764). What lies at the end or behind it is kept as it is, and not
stamped either. ``keptlog.offset.map.overflow=shuffle`` goes beyond memory instead, and ends nothing early.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from keptlog.log.record import Record
from keptlog.log.strategy import Strategy

SLOT_BYTES = 24
_VERSION_BYTES = 8
_LARGEST_MAP_BYTES = 2**31 - 1


class MapOverflow(StrEnum):
    """What happens to keys beyond the map: the values of ``keptlog.offset.map.overflow``."""

    STOP = "stop"
    SHUFFLE = "shuffle"


@dataclass(frozen=True, slots=True)
class MapCapacity:
    """How many keys one pass maps, and what happens beyond."""

    max_keys: int
    overflow: MapOverflow = MapOverflow.STOP


UNBOUNDED = MapCapacity(2**63 - 1)


@dataclass(frozen=True, slots=True)
class MapRange:
    """The dirty range of a pass, ``end_offset`` exclusive, and how many of its keys may be mapped."""

    first_dirty_offset: int
    end_offset: int
    max_keys: int


def slots_in(memory_bytes: int, slot_bytes: int = SLOT_BYTES) -> int:
    """How many slots a map of this size has; Kafka's maps end at 2 GiB."""
    return min(memory_bytes, _LARGEST_MAP_BYTES) // slot_bytes


def keys_in(slots: int, load_factor: float) -> int:
    """How many keys a map with these slots takes."""
    return int(slots * load_factor)


def slot_bytes_for(strategy: Strategy) -> int:
    """Bytes of one key's slot."""
    return SLOT_BYTES + _VERSION_BYTES if strategy.has_versions else SLOT_BYTES


def end_of_mapping(planned: MapRange, records: Iterable[Record], base_offsets: Sequence[int]) -> int:
    """Where a pass ends: ``planned.end_offset``, or earlier where its map is full.

    ``records`` are those of the dirty segments in offset order; what lies outside of the range is passed over.
    ``base_offsets`` are those of the segments.
    """
    keys: set[bytes] = set()
    previous_offset = planned.first_dirty_offset - 1
    for record in records:
        if not planned.first_dirty_offset <= record.offset < planned.end_offset:
            continue
        if record.key is not None:
            if len(keys) == planned.max_keys:
                return end_of_full_map(previous_offset, record.offset, base_offsets)
            keys.add(record.key)
        previous_offset = record.offset
    return planned.end_offset


def end_of_full_map(previous_offset: int, next_keyed_offset: int, base_offsets: Sequence[int]) -> int:
    """Where a pass ends whose map is full.

    ``next_keyed_offset`` is the first record with a key that the map has no room for, ``previous_offset`` the record
    before it (with a key or without), ``base_offsets`` those of the dirty segments.
    """
    base_offset = max(base for base in base_offsets if base <= next_keyed_offset)
    return max(previous_offset + 1, base_offset)
