"""One request in one topic: which way it goes, what is in its way, and how it is asked for.

    records are appended    a tombstone of each key, behind all of its records and of no lower version than theirs
    ... and not compacted   by retention: a tombstone would remove nothing
    records are ingested    what its source deletes; or, here, a pass that drops them

A tombstone is right only as long as nothing of its key was appended since the log was read: another partition may have
got the key meanwhile, or a record a higher version. What was read of an ingested topic is right no longer than that:
the key may have come meanwhile, and its source has not deleted it. So the log ends are compared with those that were
read, in the commit, and what came is read if they have moved. By offset, in a topic of one partition, a key alone tells
everything that a tombstone needs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keptlog.engine.search_tasks import KeySearch
from keptlog.errors import Action, InvalidConfig, KeptlogError, StalePlan, StorageUnavailable, first_line
from keptlog.log.broker import BrokerConfig
from keptlog.log.erasures.erasure import (
    Erasure,
    ErasureBound,
    ErasureState,
    ErasureWay,
    LookedUntil,
    ReachedState,
    Waiting,
    bound,
)
from keptlog.log.erasures.erasure_deadline import (
    Hindrance,
    default_deadline_ms,
    earliest_ms,
    impossible,
    latest_ms,
    passed_ms,
    refuse_endless,
    switched_off,
    why_no_promise,
)
from keptlog.log.erasures.key_logs import KeyLogs, all_of, key_logs
from keptlog.log.given.partitioner import partition_for_key
from keptlog.log.record import NewRecord
from keptlog.log.search import SearchedFile
from keptlog.log.segment import Log, total_bytes
from keptlog.log.strategy import StrategyKind
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.erasures.erasure_request import ErasureRequest, TopicProposal, require_keys
from keptlog.passes.erasures.key_places import KeyPlace, KeyPlaces, both
from keptlog.storage.erasure_secret import require_secret
from keptlog.storage.watermark_file import last_end_ms
from keptlog.table.changes.erasures import RegisterChange, Require
from keptlog.table.removal.erasure_look import SnapshotAges, register_and_table, without_segments_since
from keptlog.table.waiting.reaching import apart, reaching

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.storage.key_hash import KeyHasher
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore

MOST_READS = 20
"""How often a log is read again because somebody else has appended to it meanwhile."""
LARGE_BYTES = 2**30
"""From this size on it is worth the start of Spark to learn which segments have the keys."""
_LONG = struct.Struct(">q")
_Land = Callable[[Sequence[Log], Sequence[KeyPlace], Require], Erasure]


@dataclass(frozen=True)
class TopicErasure:
    """A request on its way into one topic."""

    store: LogStore
    request: ErasureRequest
    hasher: KeyHasher
    topic: Topic
    new_id: Callable[[], str]
    now_ms: int
    purge_interval_ms: int
    engine: Engine

    def propose(self) -> TopicProposal:
        """What would be done.

        Raises:
            InvalidConfig: it can't be done in this topic; says what could be.
            KeptlogError: the topic can't be read.
        """
        logs = self.store.logs(self.topic.name)
        known, table = register_and_table(self.store.files, lambda: self.store.load_table(self.topic.name))
        repeated = next((each for each in known if each.id == self.request.id), None)
        if repeated:
            self._same(repeated)
        for each in known:
            if each.is_open:
                require_secret(self.hasher, each.fingerprint, f"topic {self.topic.name}: request {each.id}")
        way = ErasureWay(repeated.way) if repeated else self._way(logs)
        config = self.topic.config
        deadline_ms = self.request.deadline_ms
        no_promise = None
        if deadline_ms is None:
            deadline_ms = default_deadline_ms(config, way, self.now_ms, self.purge_interval_ms)
            no_promise = why_no_promise(config, way) if deadline_ms is None else None
        if repeated:
            deadline_ms = repeated.deadline_ms
        ages = SnapshotAges.of(table)
        found = self._key_logs(logs, way, ages)
        return TopicProposal(
            topic=self.topic.name,
            way=way,
            deadline_ms=deadline_ms,
            no_promise=no_promise,
            earliest_ms=earliest_ms(found, way, self.now_ms),
            latest_ms=latest_ms(found, way, self.now_ms),
            hindrances=(
                *switched_off(logs, way, BrokerConfig.of(self.store.broker_settings)),
                *impossible(found, way, self.now_ms, deadline_ms),
                *self._kept(ages),
            ),
            is_repeated=repeated is not None,
        )

    def _key_logs(self, logs: Sequence[Log], way: ErasureWay, ages: SnapshotAges) -> KeyLogs:
        if way in {ErasureWay.HERE, ErasureWay.RETENTION}:
            found = all_of(logs)
        else:
            # Into an ingested topic nobody appends a tombstone: a key there is where it is, as one known by its hash.
            keys = self.request.keys if way is ErasureWay.TOMBSTONE else ()
            put_in = (partition_for_key(key, len(logs)) for key in keys)
            found = key_logs(logs, put_in, has_hashes=bool(self.request.key_hashes) or way is ErasureWay.SOURCE)
        remembering = found.remembering if way is not ErasureWay.HERE else ()  # what a drop takes, it takes at once
        ends = {log.topic_partition.partition: self._watermarks_end_ms(log) for log in remembering}
        return replace(
            found,
            retired_until_ms=0 if any(log.segments for log in logs) else self._retired_until_ms(ages),
            stored_ms={number: end for number, end in ends.items() if isinstance(end, int)},
            unread={number: first_line(why) for number, why in ends.items() if isinstance(why, KeptlogError)},
        )

    def _watermarks_end_ms(self, log: Log) -> int | KeptlogError:
        """When the last of its watermarks ends, 0 if it has none; or why their file can't be read.

        A request has to be possible, whatever is wrong with a file that tells of its deadline alone.

        Raises:
            StorageUnavailable: its store does not answer.
        """

        def read() -> int:
            with reaching(f"the watermarks of {log.topic_partition} can't be read"):
                try:
                    return last_end_ms(self.store.files, log.watermarks_path or "", self.topic.name)
                except FileNotFoundError:
                    return 0  # it has no key; verify and repair tell of it

        end = apart(self.topic.name, read)
        if isinstance(end, StorageUnavailable) and end.action is Action.RETRY:
            raise end
        return end

    def _retired_until_ms(self, ages: SnapshotAges) -> int:
        """Until when files are kept that a topic had, which has no segments by now; 0 if there are none."""
        gone = without_segments_since(ages.table)
        if gone is None or ages.oldest >= gone.sequence_number:
            return 0
        return gone.at_ms + self.topic.config.file_delete_delay_ms

    def ask(self, proposal: TopicProposal) -> Erasure:
        """Ask for it, in one commit; the same again gives what is known of it.

        Raises:
            InvalidConfig: it is of no key; nothing was asked for.
            StalePlan: others kept appending first; nothing landed.
            KeptlogError: the topic can't be read, or the commit did not land.
        """
        require_keys(self.request)
        if proposal.is_repeated:
            return self._same(self._change.repeated(self.request.id))
        erasure = Erasure(
            id=self.request.id,
            way=proposal.way.value,
            requested_ms=self.now_ms,
            deadline_ms=proposal.deadline_ms,
            reason=self.request.reason,
            fingerprint=self.hasher.fingerprint,
            key_hashes=self.key_hashes,
            reached=(ReachedState(ErasureState.REQUESTED.value, self.now_ms),),
        )
        match proposal.way:
            case ErasureWay.TOMBSTONE:
                landed = self._with_tombstones(erasure)
            case ErasureWay.SOURCE:
                landed = self._seen_at_source(erasure)
            case ErasureWay.HERE | ErasureWay.RETENTION:
                landed = self._change.request(erasure, self.now_ms)
        return self._same(landed)

    @property
    def key_hashes(self) -> tuple[str, ...]:
        """Of all keys, sorted, as hex."""
        hashes = {*self.request.hashes, *self.hasher.hashes(self.request.keys)}
        return tuple(sorted(each.hex() for each in hashes))

    @property
    def _change(self) -> RegisterChange:
        store = self.store
        return RegisterChange(self.topic, store.committer, store.files, self.new_id, self.now_ms, store.done_ms)

    def _way(self, logs: Sequence[Log]) -> ErasureWay:
        topic, config = self.topic.name, self.topic.config
        is_ingested = any(log.is_ingested for log in logs)
        if self.request.is_here:
            if not is_ingested:
                if not config.is_compacted:
                    refuse_endless(topic, config)
                instead = (
                    "tombstones are appended, and cleans remove the records"
                    if config.is_compacted
                    else "the records go with their age"
                )
                raise InvalidConfig(
                    f"topic {topic} has no source, so nothing is dropped --here: leave it out, and {instead}"
                )
            return ErasureWay.HERE
        if not config.is_compacted:
            refuse_endless(topic, config)
            return ErasureWay.RETENTION
        return ErasureWay.SOURCE if is_ingested else ErasureWay.TOMBSTONE

    def _same(self, erasure: Erasure) -> Erasure:
        require_secret(self.hasher, erasure.fingerprint, f"topic {self.topic.name}: request {erasure.id}")
        if erasure.key_hashes != self.key_hashes:
            raise InvalidConfig(
                f"topic {self.topic.name}: request {erasure.id} was made for other keys; give this one another id"
            )
        if self.request.is_here and erasure.way != ErasureWay.HERE:
            raise InvalidConfig(
                f"topic {self.topic.name}: request {erasure.id} was not made to erase here; give this one another id"
            )
        return erasure

    def _kept(self, ages: SnapshotAges) -> list[Hindrance]:
        """Tags and branches that keep what there is now, whatever becomes of it."""
        return [
            Hindrance(f"{each} keeps what {self.topic.name} has now", None, f"drop the {each}")
            for each in ages.keepers(ages.table.last_sequence_number + 1)
        ]

    def _places(self, logs: Sequence[Log], since: Mapping[int, int]) -> list[KeyPlace]:
        places = KeyPlaces(
            self.store.files,
            self.hasher,
            frozenset(self.request.keys),
            self.request.hashes,
            self.topic.config.strategy,
        )
        return places.find(logs, since, self._segments_with_keys(logs, since))

    def _segments_with_keys(self, logs: Sequence[Log], since: Mapping[int, int]) -> frozenset[str] | None:
        """The live segments that have one of the keys, or could not be looked through; null where that is not asked."""
        segments = [
            segment
            for log in logs
            for segment in log.segments
            if segment.last_offset >= since.get(log.topic_partition.partition, 0)
        ]
        if total_bytes(segments) < LARGE_BYTES:
            return None
        wanted = frozenset(bytes.fromhex(each) for each in self.key_hashes)
        files = [SearchedFile(segment.path, segment.size_bytes) for segment in segments]
        findings = self.engine.search(KeySearch(files, wanted, self.hasher), self.request.id)
        return frozenset(each.file.path for each in findings if not each.is_clear)

    def _with_tombstones(self, erasure: Erasure) -> Erasure:
        def land(logs: Sequence[Log], places: Sequence[KeyPlace], require: Require) -> Erasure:
            # It may have more partitions by now than when it was described.
            topic = replace(self.topic, partitions=len(logs))
            return replace(self, topic=topic).land(erasure, logs, places, require)

        return self._read_and_landed(land, self._is_told_by_key)

    def _seen_at_source(self, erasure: Erasure) -> Erasure:
        """With what is known of an ingested topic's keys at once: deletions may have arrived before the request."""

        def land(logs: Sequence[Log], places: Sequence[KeyPlace], require: Require) -> Erasure:
            seen = first_look(erasure, logs, places, self.hasher, self.now_ms)
            return self._change.request(seen, self.now_ms, require)

        return self._read_and_landed(land, lambda _: False)

    def _read_and_landed(self, land: _Land, is_told: Callable[[Sequence[Log]], bool]) -> Erasure:
        """Read where the keys are, unless all is told without, and land what follows, as long as it is right."""
        places: dict[tuple[int, bytes], KeyPlace] = {}
        read_to: Mapping[int, int] = {}
        for _ in range(MOST_READS):
            logs = self.store.logs(self.topic.name)
            is_told_by_key = is_told(logs)
            try:
                found = [] if is_told_by_key else self._places(logs, read_to)
            except FileNotFoundError:
                continue  # a clean and a purge were faster
            for place in found:
                at = place.partition, place.key
                places[at] = both(places[at], place) if at in places else place
            seen = {log.topic_partition.partition: log.log_end_offset for log in logs}
            read_to = read_to if is_told_by_key else seen
            has_moved = False

            def require(
                ends: Mapping[int, int], was: Mapping[int, int] = seen, *, is_by_key: bool = is_told_by_key
            ) -> None:
                nonlocal has_moved
                has_moved = ends.keys() != was.keys() if is_by_key else ends != was
                if has_moved:
                    raise StalePlan(
                        f"topic {self.topic.name}: it got records or partitions while it was read; read again"
                    )

            try:
                return land(logs, list(places.values()), require)
            except StalePlan:
                if not has_moved:
                    raise
        raise StalePlan(
            f"topic {self.topic.name}: it changed {MOST_READS} times while it was read for the keys; nothing "
            "landed, ask again with the same id"
        )

    def land(self, erasure: Erasure, logs: Sequence[Log], places: Sequence[KeyPlace], require: Require) -> Erasure:
        """Commit a request with the tombstones of its keys, wherever these are."""
        tombstones = self._tombstones(places)
        numbers = {each.partition for each in tombstones}
        passed = [passed_ms(log, self.now_ms) for log in logs if log.topic_partition.partition in numbers]
        next_ms = max(passed, default=self.now_ms)
        if not tombstones:
            return self._change.request(erasure, next_ms, require)
        return self._change.append(erasure, tombstones, next_ms, require)

    def _is_told_by_key(self, logs: Sequence[Log]) -> bool:
        """Whether the key alone tells where its tombstone goes, and of which version it is: nothing has to be read."""
        return len(logs) == 1 and not self.request.key_hashes and not self.topic.config.strategy.has_versions

    def _tombstones(self, places: Sequence[KeyPlace]) -> list[NewRecord]:
        """One for each log that has the key; for a key that is nowhere, one where its records would be."""
        wanted = [(place.key, place.partition, place.highest_version) for place in places]
        found = {place.key for place in places}
        partitions = self.topic.partitions
        wanted += [(key, partition_for_key(key, partitions), None) for key in self.request.keys if key not in found]
        return [self._tombstone(*each) for each in sorted(set(wanted), key=lambda each: (each[1], each[0]))]

    def _tombstone(self, key: bytes, partition: int, version: int | None) -> NewRecord:
        """It wins: of two records of one version the later one is the latest."""
        strategy, config = self.topic.config.strategy, self.topic.config
        timestamp_ms, headers = self.now_ms, ()
        if strategy.kind is StrategyKind.HEADER and version is not None:
            return NewRecord(key, None, timestamp_ms, partition, ((strategy.header, _LONG.pack(version)),))
        if strategy.kind is StrategyKind.TIMESTAMP and version is not None and version > self.now_ms:
            where = f"topic {self.topic.name}: a key's newest record is of {iso_time(version)}, after the clock"
            if config.message_timestamp_type != "CreateTime":
                raise InvalidConfig(
                    f"{where}, and with message.timestamp.type=LogAppendTime no tombstone can be newer: ask again then"
                )
            if version - self.now_ms > config.message_timestamp_after_max_ms:
                raise InvalidConfig(
                    f"{where}, and a tombstone of that time is refused by message.timestamp.after.max.ms="
                    f"{config.message_timestamp_after_max_ms}: raise that for the request, or ask again later"
                )
            timestamp_ms = version
        return NewRecord(key, None, timestamp_ms, partition, headers)


def first_look(
    erasure: Erasure, logs: Sequence[Log], places: Sequence[KeyPlace], hasher: KeyHasher, now_ms: int
) -> Erasure:
    """An erasure by source after the whole of its logs was read: which keys are deleted already, which are waited for.

    A key without records in a log has its bound there at the log end: what comes of it from now on is new. What came
    behind a deletion before the request, and loses to it, is not new, and has to go as well.
    """
    ends = {log.topic_partition.partition: log.log_end_offset for log in logs}
    hashes = [each.hex() for each in hasher.hashes(place.key for place in places)]
    bounds = [ErasureBound(number, end, end) for number, end in ends.items()]
    waiting = []
    for place, key_hash in zip(places, hashes, strict=True):
        deleted_at, end = place.deleted_at, place.end_offset
        if deleted_at is None:
            waiting.append(Waiting(place.partition, key_hash))
            continue
        bounds.append(ErasureBound(place.partition, deleted_at, deleted_at + 1, key_hash))
        if end > deleted_at + 1:
            bounds.append(ErasureBound(place.partition, end, end, key_hash))
    looked = tuple(LookedUntil(number, end) for number, end in ends.items())
    seen = replace(erasure, looked=looked)
    return replace(seen, bounds=tuple(bounds), waiting=tuple(waiting)) if waiting else bound(seen, bounds, now_ms)
