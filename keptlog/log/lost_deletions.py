"""Whether a deletion at a compacted source can have been missed between two ingests.

Kafka's cleaner removes a tombstone in two steps. The first clean that meets it removes what it deletes, and stamps it;
``delete.retention.ms`` later another one removes it too. Whoever reads in time meets it. Whoever comes later does not,
and keeps what was deleted there for ever:

    Monday 12:00     ada=1 at 7 is read, and all that is there       position 120, as of Monday 12:00
    Monday 13:00     there: a tombstone of ada, at 150
    Monday 14:00     its cleaner removes ada=1, and stamps the tombstone
    Tuesday 15:00    its cleaner removes the tombstone               (delete.retention.ms is a day)
    Tuesday 16:00    [120, 200) is read: nothing says that ada is gone

So a topic-partition remembers of which time its position is: **as of** then all that was there is here, so that what
lies behind it was stamped later. Nothing of it can be missing before that time and ``delete.retention.ms``. Later it
can, but only if offsets are missing in what was read: a log without gaps has lost nothing. Kafka leaves gaps for other
reasons too (older values, markers of transactions), so a gap is no proof: the topic-partition is **stopped**, with the
choice. Who reads more often than ``delete.retention.ms`` never sees this.

Whether it was compacted at that time is remembered too: if it is not any more, its cleaner may have been there before.

If a part can't be read, the position lies before the end, and what is behind it may be older. Then it keeps the time
that it had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from keptlog.log.source import IngestPlan, OffsetRange, SourceTopic, StoredSource
from keptlog.log.words.iso_time import iso_time


@dataclass(frozen=True, slots=True)
class TombstoneRetention:
    """How long a cleaner keeps a tombstone that it has met."""

    ms: int
    is_known: bool = True
    """Or else its source does not say it, and the setting here is taken."""

    def __str__(self) -> str:
        told = f"delete.retention.ms={self.ms}"
        return f"{told} at its source" if self.is_known else f"{told}, as it is here and may be at its source"


CONFIRMED_EVERY_MS = 3_600_000
"""An ingest that finds nothing new says so in the table, too, but no more often than this."""


def with_times(
    plan: IngestPlan, stored: StoredSource, found: SourceTopic, now_ms: int, *, confirm_all: bool = False
) -> IngestPlan:
    """The plan with the times of its positions. What is not behind gets an empty range, if its time is old or for all.

    Where the source is asked about a later leader, that one is remembered with it: from then on nobody asks any more.

    For all, the time that a copy says counts, also if it is older. ``now_ms`` is no later than the look at the source.
    """
    logs = {log.partition: log for log in found.logs}
    later_epochs = {each.partition: each.end_epoch for each in plan.unsure}

    def timed(each: OffsetRange) -> OffsetRange:
        as_of_ms = logs[each.partition].ends_as_of_ms(now_ms)
        since_ms = now_ms if each.is_first else stored.as_of_ms.get(each.partition)
        was_compacted = each.partition in stored.compacted
        return replace(each, position_as_of_ms=since_ms, end_as_of_ms=as_of_ms, was_compacted=was_compacted)

    planned = {each.partition: timed(each) for each in plan.ranges}
    for partition, log in logs.items():
        position = stored.position(partition)
        if partition in planned or partition in plan.stopped or position is None or position != log.end_offset:
            continue
        end_epoch = later_epochs.get(partition)
        confirmed = timed(OffsetRange(partition, position, position, position, end_epoch=end_epoch))
        before_ms, as_of_ms = confirmed.position_as_of_ms, confirmed.end_as_of_ms
        is_older = log.as_of_ms is not None and before_ms is not None and log.as_of_ms < before_ms <= now_ms
        if is_older and not confirm_all:
            # An old copy: what has been seen since is so all the same. Who compares puts a false time right.
            as_of_ms = before_ms
            confirmed = replace(confirmed, end_as_of_ms=before_ms)
        is_old = before_ms is None or as_of_ms is None or abs(as_of_ms - before_ms) >= CONFIRMED_EVERY_MS
        if is_old or confirm_all:
            planned[partition] = confirmed
    return replace(plan, ranges=tuple(planned[partition] for partition in sorted(planned)))


def cut_short(read: OffsetRange, end_offset: int) -> OffsetRange:
    """A range of which only the beginning can be had: what is behind its end is no newer than it was."""
    as_of_ms = read.end_as_of_ms if read.is_first else read.position_as_of_ms
    return replace(read, end_offset=end_offset, end_as_of_ms=as_of_ms)


def why_deletions_may_lack(topic: str, read: OffsetRange, kept: TombstoneRetention, now_ms: int) -> str | None:
    """Why a range that has gaps must not be gone on with; null if no tombstone of it can be gone.

    ``now_ms`` is no earlier than the end of the reading.
    """
    if read.is_first or read.position_as_of_ms is None or now_ms - read.position_as_of_ms <= kept.ms:
        return None
    return (
        f"it was read up to offset {read.position} as of {iso_time(read.position_as_of_ms)}, longer ago than "
        f"{kept}, and offsets are missing there since: tombstones may be gone, and what they deleted would stay here: "
        f"compare with all that is there and delete here what is gone (--reconcile), go on without (--skip-lost), or "
        f"ingest it into another topic (--into {topic}-again)"
    )


def why_compared_too_slowly(topic: str, since_ms: int, kept: TombstoneRetention, now_ms: int) -> str | None:
    """Why a range that has gaps must not be gone on with after all was compared from ``since_ms`` on; null as above.

    A key that was there then may have been deleted since: this says that one has gone.
    """
    if now_ms - since_ms <= kept.ms:
        return None
    return (
        f"to compare it with all that is there, and to read what is new, took longer than {kept}, offsets are missing "
        "in what is new, and keys that were there have gone meanwhile: their tombstones may be gone too, and what they "
        "deleted would stay here: make delete.retention.ms longer there and compare again, go on without "
        f"(--skip-lost), or ingest it into another topic (--into {topic}-again)"
    )


def warning_of_deletions(topic: str, read: OffsetRange, kept: TombstoneRetention, now_ms: int) -> str | None:
    """What is to be known of a range that has gaps and is taken all the same; null if nothing is."""
    where = f"{topic}-{read.partition}"
    if read.is_first:
        if read.position_as_of_ms is None or now_ms - read.position_as_of_ms <= kept.ms:
            return None
        return (
            f"{where}: reading it took longer than {kept}: tombstones may be gone that were there when it began, and "
            "what they deleted is here (--reconcile finds it)"
        )
    if read.position_as_of_ms is None or now_ms < read.position_as_of_ms:
        known_ms = read.position_as_of_ms
        when = "at a time that is not known" if known_ms is None else f"as of {iso_time(known_ms)}, which is to come"
        return (
            f"{where}: it was read {when}, up to offset {read.position}, and offsets are missing there since: if it "
            f"was longer ago than {kept}, keys may be here that are deleted there (--reconcile finds them)"
        )
    return None


def missing_offsets(read: OffsetRange, records: int) -> int:
    """How many offsets of a range have no record."""
    return read.end_offset - read.from_offset - records


@dataclass(frozen=True, slots=True)
class SeenCurrent:
    """A look at a source, at which a topic-partition lacked nothing."""

    position: int
    """As it was then. Behind another one, of a log that was truncated since, there was something."""
    at_ms: int


def seen_current(stored: StoredSource, topic: str, seen: Mapping[str, SeenCurrent]) -> StoredSource:
    """What is stored, with times at which somebody has seen since that a topic-partition lacked nothing.

    ``seen`` has the looks by topic-partition (``orders-0``).
    """
    as_of_ms = dict(stored.as_of_ms)
    for partition, position in enumerate(stored.positions):
        look = seen.get(f"{topic}-{partition}")
        if look is not None and look.position == position:
            as_of_ms[partition] = max(look.at_ms, as_of_ms.get(partition, look.at_ms))
    return replace(stored, as_of_ms=as_of_ms)
