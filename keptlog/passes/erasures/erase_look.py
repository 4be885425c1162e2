"""How far the erasures of one topic are: everything that is known without looking files through for keys.

    table        which snapshots are there, and who keeps them           no file is read
    requests     whether a later one has dropped the records              the register
    logs         how far cleans have come                                manifests
    segments     which tombstones are still live                         offsets, of the segments that may have them
    storage      what snapshots and others keep (``kept_records``)        manifests and a listing, if that is waited for
    arrivals     deletions from a source                                 keys, of what came since the last look

Each is looked at only if an erasure waits for it. What follows is decided in ``keptlog.log.erasures.erasure``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from keptlog.log.broker import BrokerConfig
from keptlog.log.erasures.dropped_here import dropped_here
from keptlog.log.erasures.erasure import (
    Erasure,
    ErasureBound,
    ErasureLook,
    ErasureState,
    ErasureWay,
    LookedUntil,
    advanced,
    tombstones_of,
)
from keptlog.log.erasures.erasure_deadline import never_taken, switched_off, why_not_taken
from keptlog.log.erasures.next_time import NextTimes
from keptlog.log.sections import cleaned_to
from keptlog.log.segment import Log
from keptlog.log.words.counted import counted
from keptlog.passes.erasures.erase_topic import first_look
from keptlog.passes.erasures.erasure_request import ErasureRow
from keptlog.passes.erasures.kept_records import KeptRecords
from keptlog.passes.erasures.key_places import KeyPlace, KeyPlaces
from keptlog.storage.erasure_secret import require_secret
from keptlog.storage.segment_reader import open_segment
from keptlog.table.removal.erasure_look import SnapshotAges, current_snapshot_of
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.storage.key_hash import KeyHasher
    from keptlog.table.store import LogStore


@dataclass
class TopicLook:
    """A look at one topic, for all of its open erasures."""

    store: LogStore
    topic: str
    now_ms: int
    hasher: KeyHasher | None = None
    """Needed where deletions may arrive from a source."""

    def look(self, known: Sequence[Erasure]) -> list[ErasureRow]:
        """Each open one of all that the topic remembers, as far as it is now, and what keeps it.

        Raises:
            KeptlogError: the topic can't be read.
        """
        logs = {log.topic_partition.partition: log for log in self.store.logs(self.topic)}
        erasures = [each for each in dropped_here(known) if each.is_open]
        arrived = [self._arrived(each, list(logs.values())) for each in erasures]
        seen = self._seen(arrived, logs)
        found = [advanced(each, seen) if each.is_open else each for each in arrived]
        kept = None
        if any(map(_waits_for_storage, found)):
            # Before the storage is listed: what expires in between is found there.
            oldest_number = self._oldest_sequence_number()
            kept = KeptRecords.look(self.store, self.topic, self.now_ms)
            # What could not be read may be, or may show, a file from before.
            seen = replace(
                seen,
                oldest_sequence_number=oldest_number,
                is_listed=not kept.holdings.unread,
                oldest_left_ms=kept.oldest_left_ms,
            )
            found = [advanced(each, seen) if each.is_open else each for each in found]
        times, waits = NextTimes(logs, self.now_ms), _Waits(logs, self.store.broker_settings)
        rows = []
        for each in found:
            until = times.of(each)
            next_ms, setting, is_by_age = until or (None, None, False)
            blocked = tuple(_blocked(each, waits, kept, is_taken=until is not None))
            rows.append(ErasureRow(self.topic, each, next_ms, blocked, next_setting=setting, is_by_age=is_by_age))
        return rows

    def _seen(self, erasures: Sequence[Erasure], logs: Mapping[int, Log]) -> ErasureLook:
        table = self.store.load_table(self.topic)
        seen = ErasureLook(
            now_ms=self.store.done_ms(self.now_ms),
            logs=logs,
            live_tombstones={},
            current=current_snapshot_of(table),
            oldest_sequence_number=SnapshotAges.of(table).oldest,
        )
        so_far = [advanced(each, seen) for each in erasures]
        compacted = [each for each in so_far if each.state is ErasureState.COMPACTED]
        return replace(seen, live_tombstones=self._live_tombstones(compacted, logs))

    def _oldest_sequence_number(self) -> int:
        table = self.store.load_table(self.topic)
        with reaching(f"snapshots of topic {self.topic} can't be looked at"):
            return SnapshotAges.of(table, looks_inside=True).oldest

    def _live_tombstones(self, erasures: Sequence[Erasure], logs: Mapping[int, Log]) -> dict[int, frozenset[int]]:
        """Of tombstones that are to expire, the offsets of those that are live; each segment is read once."""
        found: dict[int, frozenset[int]] = {}
        for partition, ranges in tombstones_of(erasures).items():
            live: set[int] = set()
            ends = np.array(sorted(ranges), np.int64)
            for segment in logs[partition].segments if partition in logs else ():
                near = ends[(ends[:, 0] <= segment.last_offset) & (ends[:, 1] > segment.base_offset)]
                if not segment.tombstone_count or not len(near):
                    continue
                with reaching(f"segment {segment.path} can't be read"), open_segment(self.store.files, segment) as file:
                    for number in range(len(file.row_groups)):
                        offsets = file.read(number, ["offset"])["offset"].to_numpy()
                        live.update(offsets[_is_within(offsets, near)].tolist())
            found[partition] = frozenset(live)
        return found

    def _arrived(self, erasure: Erasure, logs: Sequence[Log]) -> Erasure:
        """A request by source after a look at what came since, which may hold the deletions that it waits for."""
        hasher = self.hasher
        if erasure.way != ErasureWay.SOURCE or not erasure.waiting or hasher is None:
            return erasure
        require_secret(hasher, erasure.fingerprint, f"topic {self.topic}: request {erasure.id}")
        looked = {each.partition: each.end_offset for each in erasure.looked}
        numbers = {each.partition for each in erasure.waiting}
        waited = [log for log in logs if log.topic_partition.partition in numbers]
        if all(looked.get(log.topic_partition.partition) == log.log_end_offset for log in waited):
            return erasure
        hashes = frozenset(bytes.fromhex(each.key_hash) for each in erasure.waiting)
        places = KeyPlaces(self.store.files, hasher, frozenset(), hashes, waited[0].config.strategy)
        if any(_is_cleaned_behind(log, looked) for log in waited):
            # A deletion may have arrived, been cleaned and expired since: then nothing is left of the key at all.
            found = places.find(logs, {}, None)
            if not places.strategy.has_versions:
                # By version it may have lost to a record that is gone by now; by offset none does.
                erasure = _looked_on(erasure, waited, _hashed(found, hasher))
            return _looked_anew(erasure, logs, found, hasher, self.store.done_ms(self.now_ms))
        found = places.find(waited, looked, None)
        if places.strategy.has_versions and any(each.tombstone for each in found):
            found = places.find(waited, {}, None)  # It may lose to a record of before.
        return _looked_on(erasure, waited, _hashed(found, hasher))


@dataclass(frozen=True)
class _Waits:
    """What a topic's logs and settings keep erasures waiting for: found once, and not for each request."""

    logs: Mapping[int, Log]
    broker_settings: Mapping[str, str]
    _of_ways: dict[ErasureWay, tuple[list[str], list[str], frozenset[int]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def told(self, erasure: Erasure, *, is_taken: bool) -> list[str]:
        """A line for each thing that keeps an erasure from being cleaned, or from going by its age.

        What never goes by its age may be taken by its size, or below the log start.
        """
        way = ErasureWay(erasure.way)
        if way not in self._of_ways:
            self._of_ways[way] = self._of_way(way)
        off, not_taken, unsure = self._of_ways[way]
        ends = [each for each in erasure.bounds if each.partition in unsure]
        never = dict.fromkeys(never_taken(self.logs[each.partition], way, each.end_offset) for each in ends)
        numbers = {each.partition for each in erasure.bounds if each.has_tombstones} if self._uncleanable else set()
        return [
            *off,
            *([] if is_taken else [*not_taken, *(str(why) for why in never if why)]),
            *(text for number, text in self._uncleanable if number in numbers),
        ]

    def _of_way(self, way: ErasureWay) -> tuple[list[str], list[str], frozenset[int]]:
        """What is told of each request of a way, what where nothing takes it, and the logs that may never go by age."""
        off = switched_off(self.logs.values(), way, BrokerConfig.of(self.broker_settings))
        not_taken = dict.fromkeys(why_not_taken(log.config, way) for log in self.logs.values())
        unsure = frozenset(n for n, log in self.logs.items() if never_taken(log, way, log.log_end_offset))
        return [str(why) for why in off], [why for why in not_taken if why], unsure

    @cached_property
    def _uncleanable(self) -> Sequence[tuple[int, str]]:
        return [
            (number, f"{log.topic_partition} is uncleanable: {log.uncleanable.reason}")
            for number, log in self.logs.items()
            if log.uncleanable and log.config.is_compacted
        ]


def _blocked(erasure: Erasure, waits: _Waits, kept: KeptRecords | None, *, is_taken: bool) -> list[str]:
    """What keeps an erasure from its next state, besides time; ``is_taken`` if it is known when that can come."""
    match erasure.state:
        case ErasureState.REQUESTED if erasure.way == ErasureWay.SOURCE and erasure.waiting:
            keys = len({each.key_hash for each in erasure.waiting})
            remedy = "delete there (once more if it came back), or erase --here with another id"
            return [f"waits for the source to delete {counted(keys, 'key')}: {remedy}"]
        case ErasureState.TOMBSTONED if erasure.way == ErasureWay.HERE:
            return ["the pass that drops the records has not ended: ask again with the same id"]
        case ErasureState.TOMBSTONED | ErasureState.COMPACTED if erasure.gone is None:
            return waits.told(erasure, is_taken=is_taken)
        case ErasureState.COMPACTED if erasure.gone and kept:
            return [*kept.in_snapshots(erasure.gone)] or kept.no_purge()
        case ErasureState.UNREFERENCED if erasure.old_files_ms is not None and kept:
            return [*kept.left(erasure.old_files_ms), *kept.not_read()] or kept.no_purge()
        case _:
            return []


def _is_within(offsets: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Which offsets lie in one of these ranges, sorted, which may overlap: the furthest end before each tells."""
    furthest = np.maximum.accumulate(ranges[:, 1])
    before = np.searchsorted(ranges[:, 0], offsets, side="right")
    return (before > 0) & (furthest[before - 1] > offsets)


def _waits_for_storage(erasure: Erasure) -> bool:
    """Whether something that is not live may be what keeps it."""
    return erasure.state is ErasureState.UNREFERENCED or (
        erasure.state is ErasureState.COMPACTED and erasure.gone is not None
    )


def _is_cleaned_behind(log: Log, looked: Mapping[int, int]) -> bool:
    """Whether records that came since the last look may be gone already."""
    return max(log.log_start_offset, cleaned_to(log)) > looked.get(log.topic_partition.partition, 0)


def _looked_on(erasure: Erasure, logs: Sequence[Log], places: Sequence[tuple[KeyPlace, str]]) -> Erasure:
    """An erasure after a look at what came since the last one: each tombstone there is one that was seen to arrive."""
    waited = {(each.partition, each.key_hash) for each in erasure.waiting}
    bounds = list(erasure.bounds)
    looked = {each.partition: each.end_offset for each in erasure.looked}
    for place, key_hash in places:
        deleted_at = place.tombstone[-1] if place.tombstone else -1
        if (place.partition, key_hash) in waited and deleted_at >= looked.get(place.partition, 0):
            bounds.append(ErasureBound(place.partition, deleted_at, deleted_at + 1, key_hash))
    answered = {(each.partition, each.key_hash) for each in bounds}
    waiting = tuple(each for each in erasure.waiting if (each.partition, each.key_hash) not in answered)
    looked |= {log.topic_partition.partition: log.log_end_offset for log in logs}
    until = tuple(LookedUntil(*each) for each in sorted(looked.items()))
    return replace(erasure, bounds=tuple(bounds), waiting=waiting, looked=until)


def _looked_anew(
    erasure: Erasure, logs: Sequence[Log], places: Sequence[KeyPlace], hasher: KeyHasher, now_ms: int
) -> Erasure:
    """As if it were asked for now, of the keys that are waited for; the bounds that are known stay.

    What is waited for and is not there any more was deleted at its source: it has its bound where the log ends now. A
    key of which only new records are there is waited for still. A clean leaves the same of one that was deleted and
    came back, and of one that was only updated.
    """
    waited = {(each.partition, each.key_hash) for each in erasure.waiting}
    there = [(place, key_hash) for place, key_hash in _hashed(places, hasher) if (place.partition, key_hash) in waited]
    seen = first_look(replace(erasure, bounds=(), waiting=()), logs, [place for place, _ in there], hasher, now_ms)
    ends = {log.topic_partition.partition: log.log_end_offset for log in logs}
    gone = waited - {(place.partition, key_hash) for place, key_hash in there}
    new = [each for each in seen.bounds if each.key_hash]
    new += [ErasureBound(number, ends[number], ends[number], key_hash) for number, key_hash in sorted(gone)]
    return replace(erasure, bounds=(*erasure.bounds, *new), waiting=seen.waiting, looked=seen.looked)


def _hashed(places: Sequence[KeyPlace], hasher: KeyHasher) -> list[tuple[KeyPlace, str]]:
    hashes = hasher.hashes(place.key for place in places)
    return [(place, key_hash.hex()) for place, key_hash in zip(places, hashes, strict=True)]
