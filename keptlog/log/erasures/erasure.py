"""An erasure: a request that no record of some keys, as it stands now, is anywhere in a topic from a deadline on.

    requested      somebody asked for it
    tombstoned     it is known up to which offset records of the keys are to go: their **bound**
    compacted      a clean has passed the bound: of the keys, the tombstones alone are live
    unreferenced   the tombstones have expired as well, and no snapshot shows a file from before
    deleted        after a purge, a listing shows no file from before
    verified       every file was looked through, and none has a record of the keys below the bound

The tombstone holds the key, so it must go too. What comes behind the bound is new, and nothing to this request:

    offset   0   1   2   3 | 4        a's tombstone is at 3, the bound is 4; the record at 4 stays
    key      a   b   a   a | a

How the bound comes about is the request's **way**. By ``tombstone``, where records are appended: one is, at once. By
``source``, where offsets belong to a broker: a tombstone arrives from there, some day. ``here`` drops every record
below the log end of the moment, whatever the source still has. By ``retention``, where nothing is compacted: the bound
is the log end of the moment, and all below it goes with its age.

A state that was reached is kept, with the time at which it was first seen. A time that is still to come says nothing:
the clock that gave it was ahead, and the next look dates that state by its own (``keptlog.log.given.past``).

What was seen of a topic at one time is a ``ErasureLook``; what follows from it for an erasure is decided here and
nowhere else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from keptlog.log.given.past import is_past
from keptlog.log.sections import first_dirty_of
from keptlog.log.segment import Log


class ErasureWay(StrEnum):
    """How the records of a request come to go."""

    TOMBSTONE = "tombstone"
    SOURCE = "source"
    HERE = "here"
    RETENTION = "retention"


class ErasureState(StrEnum):
    """How far an erasure is; in this order."""

    REQUESTED = "requested"
    TOMBSTONED = "tombstoned"
    COMPACTED = "compacted"
    UNREFERENCED = "unreferenced"
    DELETED = "deleted"
    VERIFIED = "verified"


@dataclass(frozen=True, slots=True)
class ErasureBound:
    """Records of one topic-partition below ``end_offset`` are to go; those from ``base_offset`` on are tombstones.

    Of several of one key the highest ``end_offset`` counts: records with versions may lose to a tombstone before them.
    """

    partition: int
    base_offset: int
    end_offset: int
    key_hash: str = ""
    """As hex; empty for all keys of the request that have no bound of their own here."""

    @property
    def has_tombstones(self) -> bool:
        return self.base_offset < self.end_offset


@dataclass(frozen=True, slots=True)
class Waiting:
    """A key with records in a topic-partition, for whose deletion its source is waited."""

    partition: int
    key_hash: str


@dataclass(frozen=True, slots=True)
class LookedUntil:
    """To where in a log it was looked for deletions that arrive; exclusive."""

    partition: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class ReachedState:
    """A state, and when it was first seen."""

    state: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class GoneSince:
    """The first snapshot that is known to show no record of the keys any more, tombstones included."""

    sequence_number: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Erasure:
    """A request as one topic remembers it. No key is in it: ``key_hashes`` are keyed hashes, as hex."""

    id: str
    way: str
    requested_ms: int
    deadline_ms: int | None
    """Null: the topic promises none, and nobody gave one."""
    reason: str
    fingerprint: str
    """Of the secret that the hashes are made with."""
    key_hashes: tuple[str, ...] = field(repr=False)
    bounds: tuple[ErasureBound, ...] = field(default=(), repr=False)
    waiting: tuple[Waiting, ...] = field(default=(), repr=False)
    looked: tuple[LookedUntil, ...] = ()
    gone: GoneSince | None = None
    reached: tuple[ReachedState, ...] = ()
    dropped_by: tuple[str, ...] = ()
    """The later requests ``here`` that have dropped what it waited for (``dropped_here``)."""

    @property
    def state(self) -> ErasureState:
        return ErasureState(self.reached[-1].state) if self.reached else ErasureState.REQUESTED

    @property
    def is_open(self) -> bool:
        """Whether somebody waits for it. Of no key nobody does: it promises nothing, and is never proved."""
        return self.state is not ErasureState.VERIFIED and bool(self.key_hashes)

    @property
    def ended_ms(self) -> int | None:
        """When it was verified; null if it never was."""
        return self.reached[-1].at_ms if self.state is ErasureState.VERIFIED else None

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it is open although its deadline has passed."""
        return self.delay_ms(now_ms) > 0

    def delay_ms(self, now_ms: int) -> int:
        """By how much an open request is later than its deadline; 0 if it is in time."""
        if not self.is_open or self.deadline_ms is None:
            return 0
        return max(now_ms - self.deadline_ms, 0)

    def has_reached(self, state: ErasureState) -> bool:
        return any(each.state == state for each in self.reached)

    def is_same_request(self, other: Erasure) -> bool:
        """Whether both are one request: in a topic that was created again the id of one from before is free."""
        wanted = other.id, other.requested_ms, other.fingerprint, other.key_hashes
        return (self.id, self.requested_ms, self.fingerprint, self.key_hashes) == wanted

    def end_offset_of(self, partition: int, key_hash: str) -> int | None:
        """The bound of a key in a topic-partition; null while there is none."""
        bounds = [each for each in self.bounds if each.partition == partition]
        ends = [each.end_offset for each in bounds if each.key_hash == key_hash]
        return max(ends or [each.end_offset for each in bounds if not each.key_hash], default=None)

    @property
    def old_files_ms(self) -> int | None:
        """Files of until then that no snapshot shows may have its records; null while these are not gone.

        What a killed writer left was in no snapshot: it may be of after them, and from before the request.
        """
        if self.gone is None:
            return None
        first_ms = self.reached[0].at_ms if self.reached else self.requested_ms
        return max(self.gone.at_ms, min(self.requested_ms, first_ms))  # a look dates states alone

    @property
    def tombstone_count(self) -> int:
        """How many tombstones it is by; a key that several logs have takes one in each."""
        return sum(each.end_offset - each.base_offset for each in self.bounds if each.has_tombstones)

    @property
    def to_be_cleaned(self) -> tuple[ErasureBound, ...]:
        """The bounds that a clean has to pass: of tombstones, and of records behind them that lose to them."""
        tombstoned = {(each.partition, each.key_hash) for each in self.bounds if each.has_tombstones}
        return tuple(each for each in self.bounds if (each.partition, each.key_hash) in tombstoned)


@dataclass(frozen=True, slots=True)
class ErasureLook:
    """What was seen of a topic at one time, for all of its erasures.

    What follows from it alone is found once, however many they are.
    """

    now_ms: int
    """By the clock: whoever judges as of another time has looked now."""
    logs: Mapping[int, Log]
    """By partition."""
    live_tombstones: Mapping[int, frozenset[int]]
    """By partition, which of the offsets that were asked for are still live; of a partition that is not there nobody
    has looked."""
    current: GoneSince
    """The current snapshot."""
    oldest_sequence_number: int
    """Of all snapshots that are there, tags and branches included."""
    is_listed: bool = False
    """Whether the storage was listed."""
    oldest_left_ms: int | None = None
    """When the oldest file was written that the storage keeps and no snapshot shows; null if there is none."""
    _passed: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _in_order: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def passed_to(self, partition: int) -> int:
        """Up to where a clean has passed in a partition that is there."""
        if partition not in self._passed:
            self._passed[partition] = passed_to(self.logs[partition])
        return self._passed[partition]

    def may_have_live(self, bound: ErasureBound) -> bool:
        """Whether a tombstone of a bound is live, or nobody has looked."""
        number = bound.partition
        if number not in self.live_tombstones:
            return True
        if number not in self._in_order:
            self._in_order[number] = sorted(self.live_tombstones[number])
        live = self._in_order[number]
        return bisect_left(live, bound.base_offset) < bisect_left(live, bound.end_offset)


def reached(erasure: Erasure, state: ErasureState, at_ms: int) -> Erasure:
    """The erasure in a state that it was not in before."""
    return replace(erasure, reached=(*erasure.reached, ReachedState(state, at_ms)))


def dated_by(erasure: Erasure, now_ms: int) -> Erasure:
    """The erasure without a time that is still to come: what a clock that was ahead has dated was reached by now."""
    if all(is_past(each.at_ms, now_ms) for each in erasure.reached):
        return erasure
    return replace(erasure, reached=tuple(replace(each, at_ms=min(each.at_ms, now_ms)) for each in erasure.reached))


def bound(erasure: Erasure, bounds: Iterable[ErasureBound], at_ms: int) -> Erasure:
    """The erasure once all of its bounds are known."""
    return reached(replace(erasure, bounds=tuple(bounds), waiting=()), ErasureState.TOMBSTONED, at_ms)


def further(one: Erasure, other: Erasure) -> Erasure:
    """Of one request as two looks have found it, the one that is further; the first if neither is, or if it is two."""
    return max(one, other, key=_distance) if one.is_same_request(other) else one


def _distance(erasure: Erasure) -> tuple[int, bool, int, int, int, int]:
    looked = sum(each.end_offset for each in erasure.looked)
    return (
        len(erasure.reached),
        erasure.gone is not None,
        len(erasure.bounds),
        -len(erasure.waiting),
        looked,
        -sum(each.at_ms for each in erasure.reached),  # a time that was still to come gives way
    )


def advanced(erasure: Erasure, look: ErasureLook) -> Erasure:
    """As far as it is after a look; the same if nothing has come of it. Nobody is ``verified`` by a look alone."""
    erasure = dated_by(erasure, look.now_ms)
    if erasure.state is ErasureState.REQUESTED and erasure.bounds and not erasure.waiting:
        erasure = reached(erasure, ErasureState.TOMBSTONED, look.now_ms)
    if erasure.state is ErasureState.TOMBSTONED and is_compacted(erasure, look):
        erasure = reached(erasure, ErasureState.COMPACTED, look.now_ms)
    if erasure.state is not ErasureState.COMPACTED and erasure.state is not ErasureState.UNREFERENCED:
        return erasure
    if erasure.gone is None and not _may_have_tombstones(erasure, look):
        erasure = replace(erasure, gone=look.current)
    if erasure.gone is None:
        return erasure
    if erasure.state is ErasureState.COMPACTED and look.oldest_sequence_number >= erasure.gone.sequence_number:
        erasure = reached(erasure, ErasureState.UNREFERENCED, look.now_ms)
    if erasure.state is ErasureState.UNREFERENCED and look.is_listed and not is_left_behind(erasure, look):
        erasure = reached(erasure, ErasureState.DELETED, look.now_ms)
    return erasure


def is_compacted(erasure: Erasure, look: ErasureLook) -> bool:
    """Whether a clean has passed every bound; by retention, whether all segments below it have gone."""
    if erasure.way == ErasureWay.HERE:
        return False  # the pass that drops says so itself
    if erasure.way == ErasureWay.RETENTION:
        return all(first_base(look.logs[each.partition]) >= each.end_offset for each in erasure.bounds)
    return all(look.passed_to(each.partition) >= each.end_offset for each in erasure.to_be_cleaned)


def is_left_behind(erasure: Erasure, look: ErasureLook) -> bool:
    """Whether storage has a file that no snapshot shows, and that may have the records."""
    until_ms = erasure.old_files_ms
    if until_ms is None:
        return True
    return look.oldest_left_ms is not None and look.oldest_left_ms <= until_ms


def tombstones_of(erasures: Iterable[Erasure]) -> dict[int, list[tuple[int, int]]]:
    """By partition, the offset ranges of tombstones that are waited for to expire; ends are exclusive."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for erasure in erasures:
        if erasure.state is ErasureState.VERIFIED or erasure.gone:
            continue
        for bound in erasure.bounds:
            if bound.has_tombstones:
                ranges.setdefault(bound.partition, []).append((bound.base_offset, bound.end_offset))
    return ranges


def _may_have_tombstones(erasure: Erasure, look: ErasureLook) -> bool:
    """Whether a tombstone of it is live, or nobody has looked."""
    return any(look.may_have_live(bound) for bound in erasure.bounds if bound.has_tombstones)


def passed_to(log: Log) -> int:
    """Up to where a clean has passed; at least what lies before the first segment.

    A log start that was moved into a segment hides records there, and takes none of them.
    """
    first_dirty_offset, _ = first_dirty_of(log)
    return first_dirty_offset if first_dirty_offset > log.log_start_offset else first_base(log)


def first_base(log: Log) -> int:
    """Where the first segment begins; the log end if there is none."""
    return log.segments[0].base_offset if log.segments else log.log_end_offset
