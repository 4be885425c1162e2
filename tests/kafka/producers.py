"""What Kafka remembers of producers, by which a script's log is laid out; keptlog's sources bring none of it (ADR 15).

    a transaction    open  --marker-->  decided, not replicated  --high watermark passes the marker-->  decided

Until then nothing at or beyond its first offset is stable. Of each producer Kafka also keeps the last batch, empty if
need be, for its sequence number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


class SenselessScript(ValueError):
    """A script that nobody would write; what is left of one while it is made small may be like that."""


@dataclass
class Transaction:
    """One transaction; ``batches`` are the offsets of each of its batches."""

    producer: int
    batches: list[range] = field(default_factory=list)
    marker_offset: int | None = None
    is_aborted: bool = False

    @property
    def first_offset(self) -> int:
        return self.batches[0].start

    def is_forgotten(self, log_start_offset: int) -> bool:
        """Whether Kafka takes what was aborted for committed: from its end on it lies below the log start."""
        return self.is_aborted and self.marker_offset is not None and self.marker_offset < log_start_offset

    @property
    def offsets(self) -> set[int]:
        return {offset for offsets in self.batches for offset in offsets}


@dataclass
class Producers:
    """All producers of one log."""

    open: dict[int, Transaction] = field(default_factory=dict)
    decided: list[Transaction] = field(default_factory=list)
    last_data_offsets: set[int] = field(default_factory=set)
    """Of each producer the last offset of its last batch."""
    _last_data_offset: dict[int, int] = field(default_factory=dict)

    def append(self, producer: int, batches: Iterable[range], *, is_transactional: bool) -> Transaction | None:
        """Take note of batches; returns the transaction that they are part of."""
        appended = list(batches)
        self._last_data_offset[producer] = appended[-1].stop - 1
        self.last_data_offsets = set(self._last_data_offset.values())
        if not is_transactional:
            return None
        transaction = self.open.setdefault(producer, Transaction(producer))
        transaction.batches += appended
        return transaction

    def end(self, producer: int, marker_offset: int, *, commit: bool) -> Transaction:
        """Take note of a marker.

        Raises:
            SenselessScript: the producer has no open transaction.
        """
        if producer not in self.open:
            raise SenselessScript(f"producer {producer} ends a transaction that it has not begun")
        transaction = self.open.pop(producer)
        transaction.marker_offset, transaction.is_aborted = marker_offset, not commit
        self.decided.append(transaction)
        return transaction

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the first transaction begins whose end is not there, or may be taken back."""
        waiting = [each for each in self.decided if (each.marker_offset or 0) >= high_watermark]
        return min((each.first_offset for each in (*self.open.values(), *waiting)), default=None)

    @property
    def undecided(self) -> set[int]:
        """Offsets in transactions that are open."""
        return {offset for each in self.open.values() for offset in each.offsets}

    @property
    def aborted(self) -> set[int]:
        """Offsets of all that was aborted."""
        return {offset for each in self.decided if each.is_aborted for offset in each.offsets}
