"""What was done to a topic, commit by commit: what it read, wrote and took, why, and what that adds up to a day.

Each commit of keptlog is one entry. What it brought and took away Iceberg counts in every snapshot, whoever made it. Of
a clean there is more to tell, log by log: why it was cleaned, what was judged, and which records went for which reason.
Of very many logs in one commit, those that read most are told one by one, and the others together.

No key and no value is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from keptlog.log.drop import DropResult, StagedOutcome
from keptlog.log.segment import total_bytes
from keptlog.log.words.iso_time import iso_time

DELETE_RECORDS = "delete-records"
"""The operation of a commit that has moved a log start, and perhaps nothing else."""
OTHERS = -1
"""Takes the place of a partition where several logs are told together."""
_MOST_LOGS = 50


@dataclass(frozen=True, slots=True)
class LogCost:
    """What one pass did to one log."""

    partition: int
    trigger: str
    """Why: the name of a ``Trigger``; of several logs all that occur, with commas between."""
    records_read: int
    bytes_read: int
    """Of the segments that were judged."""
    bytes_written: int
    superseded: int
    expired: int
    unkeyed: int
    map_keys: int
    dropped: int = 0
    """Because an erasure asked for it."""
    logs: int = 1


@dataclass(frozen=True, slots=True)
class PassCost:
    """What one commit of a clean or a drop cost."""

    logs: tuple[LogCost, ...]
    duration_ms: int | None = None
    """Of the rewrite, with all logs that were done beside these; null if nobody measured it."""

    @property
    def bytes_read(self) -> int:
        return sum(each.bytes_read for each in self.logs)

    @property
    def log_count(self) -> int:
        return sum(each.logs for each in self.logs)

    @property
    def triggers(self) -> list[str]:
        """Why the logs were done, each reason once."""
        return sorted({reason for each in self.logs for reason in each.trigger.split(",")})


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit to a topic."""

    snapshot_id: int
    at_ms: int
    operation: str
    """keptlog's own (``clean``, ``append``, ``retain`` …); of another program's commit Iceberg's."""
    is_own: bool = True
    run_id: str | None = None
    records_added: int = 0
    records_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    files_added: int = 0
    files_removed: int = 0
    cost: PassCost | None = None
    """Null of a commit that judged no record, or that an older keptlog has made."""

    @property
    def moves_records(self) -> bool:
        """Whether a segment came or went, or readers see less: a log may begin within a segment."""
        return bool(self.files_added or self.files_removed) or (self.is_own and self.operation == DELETE_RECORDS)


@dataclass(frozen=True, slots=True)
class DayCost:
    """What the commits of one day add up to."""

    day: str
    """In UTC, such as 2026-11-23."""
    commits: int
    cleans: int
    bytes_read: int
    bytes_written: int
    records_arrived: int
    records_removed: int
    """For good: what a clean brings back is not among them."""
    duration_ms: int


_SUMMED = tuple(each.name for each in fields(LogCost) if each.name not in {"partition", "trigger"})


def cost_of(outcomes: Sequence[StagedOutcome], duration_ms: int | None) -> PassCost:
    """What a swap is to say of itself."""
    costs = sorted(map(_log_cost, outcomes), key=lambda each: (-each.bytes_read, each.partition))
    told, others = costs[:_MOST_LOGS], costs[_MOST_LOGS:]
    return PassCost((*sorted(told, key=lambda each: each.partition), *_together(others)), duration_ms)


def _log_cost(outcome: StagedOutcome) -> LogCost:
    step = outcome.step
    if isinstance(outcome, DropResult):
        read = step.segments
        return LogCost(
            step.topic_partition.partition,
            str(step.trigger),
            sum(segment.record_count for segment in read),
            total_bytes(read),
            total_bytes(outcome.added),
            superseded=0,
            expired=0,
            unkeyed=0,
            map_keys=0,
            dropped=outcome.dropped,
        )
    return LogCost(
        step.topic_partition.partition,
        str(step.trigger),
        sum(segment.record_count for segment in outcome.inputs),
        total_bytes(outcome.inputs),
        outcome.bytes_written,
        outcome.counts.superseded,
        outcome.counts.expired,
        outcome.counts.unkeyed,
        outcome.map_keys,
    )


def _together(costs: Sequence[LogCost]) -> Iterable[LogCost]:
    if not costs:
        return
    triggers = ",".join(sorted({each.trigger for each in costs}))
    sums = {name: sum(getattr(each, name) for each in costs) for name in _SUMMED}
    yield LogCost(OTHERS, triggers, **sums)


def cost_by_day(entries: Iterable[HistoryEntry]) -> list[DayCost]:
    """What these commits add up to, day by day, earliest first."""
    by_day: dict[str, list[HistoryEntry]] = {}
    for each in sorted(entries, key=lambda entry: entry.at_ms):
        by_day.setdefault(iso_time(each.at_ms)[:10], []).append(each)
    return [_day(day, of_day) for day, of_day in by_day.items()]


def _day(day: str, entries: Sequence[HistoryEntry]) -> DayCost:
    costs = [each.cost for each in entries if each.cost]
    return DayCost(
        day,
        commits=len(entries),
        cleans=sum(each.operation == "clean" for each in entries),
        bytes_read=sum(each.bytes_read for each in costs),
        bytes_written=sum(each.bytes_added for each in entries),
        records_arrived=sum(max(each.records_added - each.records_removed, 0) for each in entries),
        records_removed=sum(max(each.records_removed - each.records_added, 0) for each in entries),
        duration_ms=sum(each.duration_ms or 0 for each in costs),
    )
