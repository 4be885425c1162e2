"""Where a log is clean, where it may be cleaned now, and where it may not.

    log start          first dirty          first uncleanable              log end
        |     clean         |     cleanable         |    uncleanable   active |
        [ one record a key ][ anything; this is what is cleaned ][ too young ][ newest ]

*First dirty* is the checkpoint: below it, every key occurs once. A checkpoint outside of the log (the log start has
passed it, or the table was restored to before it) is worth nothing, and all is judged from the log start again.
*First uncleanable* is the smallest of three bounds, rounded down to a segment: the active segment, the first segment
with a record younger than ``min.compaction.lag.ms``, and the last stable offset, where the first open transaction
begins. All after the first such segment waits with it, so that one record with a timestamp in the future holds back
what follows: Kafka's rule, ``LogCleanerManager.cleanableOffsets``.

First dirty may lie inside of a segment: the log start can, and a pass whose offset map was full ends at any record.
Such a segment is clean and dirty, and its bytes count as both, as in Kafka.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from keptlog.log.roll import active_segments
from keptlog.log.segment import Log, Segment, total_bytes

GIVEN_UP = 2**63 - 1
"""A checkpoint outside of every log, where nobody can tell any more which section is clean: all is judged again."""

_BASE_OFFSET, _LAST_OFFSET = attrgetter("base_offset"), attrgetter("last_offset")


@dataclass(frozen=True, slots=True)
class Sections:
    """The sections of one log at one time; segments in offset order."""

    clean: tuple[Segment, ...]
    cleanable: tuple[Segment, ...]
    uncleanable: tuple[Segment, ...]
    """Closed, but younger than the minimum lag, or behind such a segment."""
    active: tuple[Segment, ...]
    first_dirty_offset: int
    first_uncleanable_offset: int
    """Where a clean would end: the base of a segment, or the log end."""
    first_uncleanable_dirty_offset: int
    """The same before it is rounded down to a segment, and never below first dirty; Kafka reports this one."""
    checkpoint_reset: str | None = None
    """Why the stored checkpoint was not used."""

    @property
    def dirty(self) -> tuple[Segment, ...]:
        """All that was never cleaned: cleanable, uncleanable and active."""
        return self.cleanable + self.uncleanable + self.active

    @property
    def cleanable_ratio(self) -> float:
        """Cleanable bytes over clean plus cleanable bytes, 0 for an empty log (KIP-58)."""
        cleanable_bytes = total_bytes(self.cleanable)
        both_bytes = total_bytes(self.clean) + cleanable_bytes
        return cleanable_bytes / both_bytes if both_bytes else 0.0


def sections_of(log: Log, now_ms: int, active: Sequence[Segment] | None = None) -> Sections:
    """Divide a log as it may be cleaned at ``now_ms``.

    Which segments are active ``roll`` says. Who compares with a broker, where other things close a segment too, names
    them as ``active``: the tests do that, and nobody else.
    """
    first_dirty_offset, reset = first_dirty_of(log)
    # A home has very many logs, and a log very many segments: its order says where the sections lie.
    dirty = log.segments[bisect_left(log.segments, first_dirty_offset, key=_LAST_OFFSET) :]
    if active is None:
        active = _active(log, dirty, first_dirty_offset, now_ms)
    elif active:
        in_dirty = set(dirty)
        active = tuple(segment for segment in active if segment in in_dirty)
    closed = dirty[: len(dirty) - len(active)]
    young = _first_young(closed, log.config.min_compaction_lag_ms, now_ms)
    waits = min(young, first_undecided(closed, active, log))
    return Sections(
        clean=log.segments[: bisect_left(log.segments, first_dirty_offset, key=_BASE_OFFSET)],
        cleanable=closed[:waits],
        uncleanable=closed[waits:],
        active=tuple(active),
        first_dirty_offset=first_dirty_offset,
        first_uncleanable_offset=dirty[waits].base_offset if waits < len(dirty) else log.log_end_offset,
        first_uncleanable_dirty_offset=max(first_dirty_offset, _unrounded(log, dirty, young, len(closed))),
        checkpoint_reset=reset,
    )


def expirable(log: Log, sections: Sections) -> tuple[Segment, ...]:
    """The clean segments whose delete horizons are all of clean tombstones.

    One that first dirty lies in has others too, where cleans have reached beyond it before. Those tombstones are not to
    be expired: they go by being compacted, and the clean ones of that segment with them.
    """
    clean, first_dirty_offset = sections.clean, sections.first_dirty_offset
    was_clean_beyond = sections.checkpoint_reset is not None or (log.cleaning_to or 0) > first_dirty_offset
    if was_clean_beyond and clean and clean[-1].last_offset >= first_dirty_offset:
        return clean[:-1]
    return clean


def appended_from(log: Log, sections: Sections) -> int:
    """Where the dirty section begins, but for what cleans have removed records from beyond the checkpoint."""
    return max(sections.first_dirty_offset, log.cleaning_to or 0)


def missing_offsets(log: Log, sections: Sections) -> list[tuple[int, int]]:
    """First and last of the offsets of the dirty section that lie in no segment, range by range.

    An append takes the next offsets, and nothing but a clean takes a record out of the middle of a log. A source has
    gaps, and so may have what was adopted, or was clean before a repair: there nobody can tell.
    """
    if log.is_ingested or log.was_adopted or sections.checkpoint_reset is not None:
        return []
    return between_segments(log.segments, appended_from(log, sections), log.log_end_offset)


def between_segments(segments: Sequence[Segment], from_offset: int, end_offset: int) -> list[tuple[int, int]]:
    """First and last of the offsets in [from, end) that lie in none of a log's segments, range by range."""
    missing, expected = [], from_offset
    for segment in segments[bisect_left(segments, expected, key=_LAST_OFFSET) :]:
        if segment.base_offset > expected:
            missing.append((expected, segment.base_offset - 1))
        expected = segment.last_offset + 1
    return missing + ([(expected, end_offset - 1)] if expected < end_offset else [])


def cleaned_to(log: Log) -> int:
    """Up to where cleans may have removed records, superseded ones and tombstones; 0 if none has been there.

    A clean that was broken off may have gone beyond the checkpoint, and a repair may have given that up since. What an
    older keptlog repaired does not tell how far it was: of a log that is compacted, or was cleaned before, that may be
    all.
    """
    is_known = log.checkpoint != GIVEN_UP or log.cleaning_to is not None
    if not is_known and (log.config.is_compacted or log.was_cleaned):
        return log.log_end_offset
    return known_cleaned_to(log.checkpoint, log.cleaning_to, log.log_end_offset)


def known_cleaned_to(checkpoint: int | None, cleaning_to: int | None, log_end_offset: int) -> int:
    """The same, as far as what is stored tells it without the topic's settings."""
    to_checkpoint = 0 if checkpoint == GIVEN_UP else min(checkpoint or 0, log_end_offset)
    return max(cleaning_to or 0, to_checkpoint)


def _active(log: Log, dirty: Sequence[Segment], first_dirty_offset: int, now_ms: int) -> tuple[Segment, ...]:
    """The dirty segments that Kafka would not have closed yet.

    One that a pass has cleaned in part was closed by then, however small it has become. So was what a clean in legs has
    begun with, and what lay below a checkpoint that a repair gave up. A checkpoint at the log start says nothing of a
    pass: a deletion of records may have moved it there.
    """
    was_cleaned_in_part = log.checkpoint == first_dirty_offset > log.log_start_offset
    appended = [s for s in dirty if s.base_offset >= first_dirty_offset] if was_cleaned_in_part else dirty
    if log.cleaning_to is not None:
        appended = [segment for segment in appended if segment.base_offset >= log.cleaning_to]
    return active_segments(appended, log.config, now_ms)


def _unrounded(log: Log, dirty: Sequence[Segment], young: int, closed: int) -> int:
    """The smallest of the bounds of a clean, before it is rounded down to a segment.

    ``young`` is the index of the first dirty segment that is too young, ``closed`` that of the first active one.
    """
    bounds = [dirty[index].base_offset for index in (young, closed) if index < len(dirty)]
    bounds += [offset for offset in (log.last_stable_offset, log.log_end_offset) if offset is not None]
    return min(bounds)


def first_dirty_of(log: Log) -> tuple[int, str | None]:
    """Where the dirty section begins, and why that is not the stored checkpoint."""
    checkpoint = log.checkpoint
    if checkpoint is None:
        return log.log_start_offset, None
    if log.log_start_offset <= checkpoint <= log.log_end_offset:
        return checkpoint, None
    if checkpoint == GIVEN_UP:
        return log.log_start_offset, f"a repair gave up the checkpoint; judged from {log.log_start_offset} again"
    reset = (
        f"the checkpoint {checkpoint} lies outside of the log [{log.log_start_offset}, {log.log_end_offset}]; "
        f"judged from {log.log_start_offset} again"
    )
    return log.log_start_offset, reset


def _first_young(closed: Sequence[Segment], min_compaction_lag_ms: int, now_ms: int) -> int:
    """Index of the first segment with a record younger than the lag; all of them are old enough without a lag."""
    if min_compaction_lag_ms > 0:
        for index, segment in enumerate(closed):
            if segment.largest_timestamp_ms > now_ms - min_compaction_lag_ms:
                return index
    return len(closed)


def first_undecided(closed: Sequence[Segment], active: Sequence[Segment], log: Log) -> int:
    """Index of the first segment that reaches beyond the last stable offset."""
    if log.last_stable_offset is None:
        return len(closed)
    ends = [segment.base_offset for segment in (*closed, *active)[1:]] + [log.log_end_offset]
    decided = sum(end <= log.last_stable_offset for end in ends)
    return min(decided, len(closed))
