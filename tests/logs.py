"""One log, twice: the specification and the real thing, behind one interface, so that a test can put both through the
same history and compare.

    ReferenceTwin    keptlog.log.reference, plain Python
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from keptlog.log.config import TopicConfig
from keptlog.log.record import NewRecord, Record
from keptlog.log.reference import ReferenceConfig, ReferenceLog


@dataclass(frozen=True, slots=True)
class Positions:
    """Where the sections of a log begin and end."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    log_end_offset: int


class Twin(Protocol):
    """A log with one partition. ``clean`` is by request, so that neither sizes nor ratios matter."""

    def create(self, settings: Mapping[str, str]) -> None: ...

    def alter(self, settings: Mapping[str, str]) -> None: ...

    def append(self, records: Sequence[NewRecord], now_ms: int) -> None: ...

    def clean(self, now_ms: int) -> None:
        """Clean what may be cleaned; if that is nothing, remove the tombstones whose horizon has passed."""

    def expire(self, now_ms: int) -> None:
        """Only remove the tombstones whose horizon has passed."""

    def records(self) -> list[Record]: ...

    def positions(self, now_ms: int) -> Positions: ...


@dataclass
class ReferenceTwin:
    """The specification."""

    log: ReferenceLog = field(default_factory=ReferenceLog)
    settings: dict[str, str] = field(default_factory=dict)

    def create(self, settings: Mapping[str, str]) -> None:
        self.log = ReferenceLog()
        self.settings = {}
        self.alter(settings)

    def alter(self, settings: Mapping[str, str]) -> None:
        self.settings |= settings
        config = TopicConfig.of(self.settings)
        self.log.config = ReferenceConfig(
            min_compaction_lag_ms=config.min_compaction_lag_ms,
            max_compaction_lag_ms=config.max_compaction_lag_ms,
            segment_ms=config.segment_ms,
            delete_retention_ms=config.delete_retention_ms,
        )

    def append(self, records: Sequence[NewRecord], now_ms: int) -> None:
        self.log.append([Record(0, new.key, new.value, new.timestamp_ms, headers=new.headers) for new in records])

    def clean(self, now_ms: int) -> None:
        if not self.log.clean(now_ms):
            self.log.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        self.log.expire(now_ms)

    def records(self) -> list[Record]:
        return self.log.records

    def positions(self, now_ms: int) -> Positions:
        count = self.log.cleanable_batches(now_ms)
        waiting = self.log.batches[count:]
        first_uncleanable_offset = waiting[0][0].offset if waiting else self.log.log_end_offset
        return Positions(self.log.first_dirty_offset, first_uncleanable_offset, self.log.log_end_offset)
