"""Which record of a key is the latest: KIP-280's three compaction strategies.

By **offset**: the one that was appended last, as Kafka has always done it. By **timestamp**: the one with the highest
timestamp. By **header**: the one with the highest version, an 8-byte big-endian long in a header that the topic names:

    offset  key  version      by offset    by header
    0       a    7                         <- the latest
    1       a    5 (late)     <- the latest

All three are one order: a record with a version is above one without, then the higher version, then the higher offset.
By offset no record has a version, by timestamp every one has.

A header may occur several times: the last one counts. One that is no 8-byte long counts as none, and is reported.

By timestamp and by header the latest record may lie in the clean section, behind a newer arrival with an older version.
So those two are judged over the whole range, from the log start to the end of the clean; Kafka's abandoned patch looked
at the dirty section only, and kept both.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum

from keptlog.log.record import Record

_LONG = struct.Struct(">q")

Order = tuple[bool, int, int]
"""Has a version, the version (0 without one), the offset: the highest of a key is its latest record."""


class StrategyKind(StrEnum):
    """The values of ``compaction.strategy``."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADER = "header"

    @property
    def needs_header(self) -> bool:
        """Whether a record's version is in the header that ``compaction.strategy.header`` names."""
        return self is StrategyKind.HEADER


@dataclass(frozen=True, slots=True)
class Strategy:
    """One topic's strategy. ``header`` is the name of the version's header, empty unless the kind is header."""

    kind: StrategyKind = StrategyKind.OFFSET
    header: str = ""

    def __str__(self) -> str:
        """What tells it from any other; watermarks are stored under it, and count for no other strategy."""
        return f"{self.kind}:{self.header}" if self.kind.needs_header else str(self.kind)

    @property
    def has_versions(self) -> bool:
        """Whether a record may lose against an older one, so that the clean section has to be looked at too."""
        return self.kind is not StrategyKind.OFFSET

    def version_of(self, record: Record) -> int | None:
        """The record's version; null if it has none."""
        match self.kind:
            case StrategyKind.OFFSET:
                return None
            case StrategyKind.TIMESTAMP:
                return record.timestamp_ms
            case StrategyKind.HEADER:
                return version_in(self._header_value(record))

    def order_of(self, record: Record) -> Order:
        """Where the record stands among those of its key."""
        version = self.version_of(record)
        return version is not None, version or 0, record.offset

    def is_malformed(self, record: Record) -> bool:
        """Whether the record has the header, but no version in it."""
        if not self.kind.needs_header:
            return False
        return any(name == self.header for name, _ in record.headers) and self.version_of(record) is None

    def _header_value(self, record: Record) -> bytes | None:
        return next((value for name, value in reversed(record.headers) if name == self.header), None)


def version_in(value: bytes | None) -> int | None:
    """The version in a header's value: an 8-byte big-endian long; null for anything else."""
    if value is None or len(value) != _LONG.size:
        return None
    version: int = _LONG.unpack(value)[0]
    return version
