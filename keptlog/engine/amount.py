"""How much a task reads: what people are told while they wait for a job.

A task that reads whole segments names them (``inputs``). Of others it is not known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from keptlog.log.segment import Segment, total_bytes


class Amount(NamedTuple):
    """What segments hold together."""

    records: int = 0
    bytes: int = 0


@runtime_checkable
class ReadsSegments(Protocol):
    """A task that knows what it will read."""

    @property
    def inputs(self) -> Sequence[Segment]: ...


def amount_of(task: object) -> Amount | None:
    """What a task reads; null if it does not know."""
    if not isinstance(task, ReadsSegments):
        return None
    return Amount(sum(segment.record_count for segment in task.inputs), total_bytes(task.inputs))


def added(amounts: Iterable[Amount]) -> Amount:
    """All of them together."""
    each = list(amounts)
    return Amount(sum(one.records for one in each), sum(one.bytes for one in each))
