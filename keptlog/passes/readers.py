"""Registered readers, as whoever reads calls it: register, read on, say how far one has come (``keptlog.log.holds``).

    add       from now on tombstones wait, at most so long
    read      what has come since the positions; they move when all of it was taken
    commit    for those who read by other means: they say where they stand

What a reader gets is right as long as he applies it to what he had. So whoever was too slow gets an error instead, and
starts over: he throws his state away and is registered anew (``add`` with ``start_over``), from the beginning.

The order of looking matters. The records are those of one snapshot; whether something was missed is asked of the table
as it is after that: a clean that took a tombstone out of the snapshot is seen for certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, KeptlogError, TombstonesMissed, UnknownTopic
from keptlog.log.assessment import assess
from keptlog.log.given.given import texts, whole_number
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.holds import DEFAULT_HOLD_MAX_MS, valid_hold_max_ms, valid_reader_name
from keptlog.log.record import Record
from keptlog.log.segment import Log
from keptlog.log.words.counted import counted
from keptlog.passes.names import require_topics
from keptlog.passes.reader_position import missed_before, truncated_below
from keptlog.table.metadata.lineage import require_own, same_topic
from keptlog.table.metadata.prefixes import READER_PREFIX
from keptlog.table.metadata.state import LogState
from keptlog.table.reading.readers import (
    PositionFiles,
    ReaderPosition,
    ReaderPositions,
    Registration,
    TopicReaders,
    registration_in,
)
from keptlog.table.waiting.reaching import parted
from keptlog.table.waiting.side_by_side import each_apart

if TYPE_CHECKING:
    from keptlog.table.changes.reader_register import ReaderRegister
    from keptlog.table.io.files import TableFiles
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore


@dataclass(frozen=True, slots=True)
class ReaderStanding:
    """Where a reader stands in one topic-partition. Times are ms."""

    topic: str
    reader: str
    partition: int
    position: int | None
    """The next offset to be read; null if nothing was committed."""
    log_end_offset: int
    lag: int
    """How many offsets are still to be read."""
    hold_max_ms: int
    holds_since_ms: int | None
    """The earliest delete horizon of those tombstones that wait for him now; null if none does."""
    holds_until_ms: int | None
    """When the first of them goes, whether he has read it or not."""
    missed: str | None
    """What he has missed, in words; null if nothing."""
    problem: str | None
    """Why his position can't be believed; null if it can."""


class ReaderStandings(list[ReaderStanding]):
    """Where readers stand, as far as their topics can be read."""

    def __init__(self, standings: Iterable[ReaderStanding], failed: Mapping[str, KeptlogError]) -> None:
        super().__init__(standings)
        self.failed = failed
        """Topic to why it can't be."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The registered readers of the topics of one store. ``new_id`` returns a text that was never returned before.

    Every method raises UnknownTopic, StorageUnavailable, and what a ``LogStore`` raises of a topic that can't be read.
    Who stores a position of a topic that was made anew meanwhile gets StalePlan.
    """

    store: LogStore
    new_id: Callable[[], str]
    topic_id: str | None = None
    """Of the one topic that is meant, for whoever has looked at it before; null for whichever has the name."""

    def add(
        self, topic: str, name: str, hold_max_ms: int | None = None, *, now_ms: int, start_over: bool = False
    ) -> Registration:
        """Register a reader; who is registered keeps his positions, and gets ``hold_max_ms`` if it is given.

        ``start_over`` forgets how far he has come and what he missed: he begins anew with an empty state.

        Raises:
            InvalidConfig: the name, or the time, is not allowed.
        """
        valid_reader_name(name)
        wanted_ms = None if hold_max_ms is None else valid_hold_max_ms(hold_max_ms)
        now_ms = passed_now_ms(now_ms)

        def changed(before: Registration | None) -> Registration:
            hold_ms = before.hold_max_ms if before and wanted_ms is None else wanted_ms
            hold_ms = DEFAULT_HOLD_MAX_MS if hold_ms is None else hold_ms
            if before and not start_over:
                return replace(before, hold_max_ms=hold_ms)
            return Registration(run_id, hold_ms, now_ms)

        run_id = self.new_id()
        found = self._register.change(topic, name, changed, run_id)
        if found.id == run_id:
            self._forget(topic, name)
        return found

    def require(self, topic: str, name: str) -> Registration:
        """The registration of a reader.

        Raises:
            InvalidConfig: there is none.
        """
        found = self._look(topic).registrations.get(name)
        if found is None:
            raise _unknown(topic, name)
        return found

    def remove(self, topic: str, name: str) -> None:
        """Remove a reader: nothing waits for him any more. One that was removed half-way is removed to the end.

        What is stored of him may be damaged: then this is what mends it.

        Raises:
            InvalidConfig: there is no such reader.
        """
        valid_reader_name(name)
        is_registered = READER_PREFIX + name in same_topic(self.store.load_table(topic), self.topic_id).properties
        if is_registered:
            self._register.remove(topic, name, self.new_id())
        if not self._forget(topic, name) and not is_registered:
            raise InvalidConfig(f"topic {topic} has no reader {name!r}: see keptlog reader list {topic}")

    def commit(self, topic: str, name: str, positions: Mapping[int, int]) -> None:
        """Say how far a reader has come: the next offset to be read, by partition.

        Raises:
            InvalidConfig: no such reader or partition; an offset lies outside of the log, or before his position.
            LogCorrupt: somebody else has changed the log, so that nobody knows which of its records he has read.
            TombstonesMissed: he has missed some, or the log was truncated below the offset since he committed before,
                so that nobody knows which records he has read; nothing was committed.
        """
        whose = f"reader {name} of topic {topic}"
        positions = _whole_numbers(positions, whose)
        require_own(table := same_topic(self.store.load_table(topic), self.topic_id))
        seen = TopicReaders.of(self.store.files, table)
        registration, stored = _standing_in(seen, name)
        reached: dict[int, ReaderPosition] = {}
        for partition, offset in positions.items():
            state = seen.states.get(partition)
            if state is None:
                raise InvalidConfig(f"topic {topic} has {counted(len(seen.states), 'partition')}, and no {partition}")
            before = stored.found.get(partition, registration.beginning(partition))
            reached[partition] = replace(before, offset=offset)
            self._require_same_log(topic, name, {partition: (state, reached[partition])})
            self._require_nothing_missed(topic, name, registration, {partition: (state, before)})
            if not before.offset <= offset <= state.log_end_offset:
                raise InvalidConfig(
                    f"reader {name} is at offset {before.offset} of {topic}-{partition}, which ends at "
                    f"{state.log_end_offset}: {offset} lies outside of that; a position never goes back: to start "
                    f"over, {_start_over(topic, name)}"
                )
        self._write(seen, name, registration, reached)

    def standing(self, topic: str, name: str) -> tuple[Registration, ReaderPositions] | None:
        """What is registered under a name, and how far it has come, as it is now; null if nobody is.

        For a reader who has a guard of his own: what he missed is not asked here.
        """
        seen = self._look(topic)
        registration = seen.registrations.get(name)
        return (registration, seen.positions({name: registration})[name]) if registration else None

    def move(self, topic: str, name: str, registration: Registration, positions: Mapping[int, ReaderPosition]) -> None:
        """Store positions of such a reader."""
        self._write(self._look(topic), name, registration, positions)

    def read(
        self, topic: str, name: str, partition: int | None = None, *, taken: Callable[[], object] = lambda: None
    ) -> Iterator[tuple[int, Record]]:
        """Partition and record, from the reader's positions on, tombstones included; all partitions, or one.

        The positions move when the last record was taken, and not before: who stops gets the same again. So does who
        keeps records back, and can't have them all taken: ``taken`` is called before the positions move. That somebody
        has begun, where he has no position, is stored before he gets anything.

        Raises:
            InvalidConfig: there is no such reader.
            TombstonesMissed: he has missed some, or has read what was truncated since. Nothing is read.
            LogCorrupt: somebody else has changed the log; what it lacks for now would be passed over for good.
            StorageUnavailable, LogCorrupt: while iterating, as ``LogStore.read``.
        """
        from keptlog.storage.schema import from_arrow  # noqa: PLC0415  # who lists readers needs no Arrow

        reader = self.store.reader(topic, partition, own=True, topic_id=self.topic_id)
        # Of the same topic: the ends of its logs become positions.
        seen = self._look(topic, reader.topic_id)
        registration, stored = _standing_in(seen, name)
        logs = {log.topic_partition.partition: log for log in reader.logs}
        # Who has neither begun nor committed anything has no state that could be wrong.
        stands = {number: (seen.states[number], stored.found[number]) for number in logs if number in stored.found}
        self._require_same_log(topic, name, stands)
        self._require_nothing_missed(topic, name, registration, stands)

        def records() -> Iterator[tuple[int, Record]]:
            # Who stops at his first read has a state too: so that he begins is told before he gets anything.
            new = [number for number, log in logs.items() if log.segments and number not in stored.found]
            begun = {n: ReaderPosition(0, logs[n].truncations.count, has_begun=True) for n in new}
            self._write(seen, name, registration, begun)
            for number, log in logs.items():
                for read in reader.tables(log, stored.of(number)):
                    for record in from_arrow(read.to_batches()):
                        yield number, record
            taken()
            # As often as the snapshot says that was read: the log may have been truncated meanwhile.
            ends = {n: ReaderPosition(log.log_end_offset, log.truncations.count) for n, log in logs.items()}
            # Who asks often mostly gets nothing new.
            moved = {n: position for n, position in ends.items() if position != stored.found.get(n)}
            self._write(seen, name, registration, moved)

        return records()

    def list(self, names: Iterable[str] = (), *, now_ms: int) -> ReaderStandings:
        """Where the readers of these topics stand, of all topics if none is named; a broken one costs only itself.

        Raises:
            UnknownTopic: a name is no topic's.
        """
        return reader_standings(self.store, names, now_ms=now_ms)

    @property
    def _register(self) -> ReaderRegister:
        from keptlog.table.changes.reader_register import ReaderRegister  # noqa: PLC0415  # who only looks commits nothing

        return ReaderRegister(self.store.committer, self.topic_id)

    def _forget(self, topic: str, name: str) -> int:
        """Delete what is stored of a reader's earlier registrations, also where what is stored of others is damaged."""

        def standing() -> Registration | None:
            return registration_in(topic, same_topic(self.store.load_table(topic), self.topic_id).properties, name)

        return PositionFiles(
            self.store.files, same_topic(self.store.load_table(topic), self.topic_id).location()
        ).forget(name, standing)

    def _write(
        self, seen: TopicReaders, name: str, registration: Registration, positions: Mapping[int, ReaderPosition]
    ) -> None:
        """Store positions; UnknownTopic or StalePlan if the topic was deleted, and maybe made anew, meanwhile."""
        from keptlog.table.commits.taken_back import write_unless_gone  # noqa: PLC0415  # who lists readers needs none

        def write(files: TableFiles) -> None:
            for partition, position in positions.items():
                replace(seen.files, files=files).write(name, registration, partition, position)

        write_unless_gone(self.store.committer.catalog, self.store.files, seen.table, write)

    def _look(self, topic: str, topic_id: str | None = None) -> TopicReaders:
        return TopicReaders.of(self.store.files, same_topic(self.store.load_table(topic), topic_id or self.topic_id))

    def _require_same_log(self, topic: str, name: str, stands: Mapping[int, tuple[LogState, ReaderPosition]]) -> None:
        """Refuse to go on with a state that has other records than the log.

        Raises:
            TombstonesMissed: naming where the log was truncated.
        """
        told = [
            text
            for partition, (state, position) in sorted(stands.items())
            if (text := truncated_below(f"{topic}-{partition}", position, state))
        ]
        if told:
            raise TombstonesMissed(
                f"reader {name} of topic {topic} has records that are gone: {'; '.join(told)}; its state may have "
                "them, and lack what came in their place: empty it, and start over from the beginning: "
                f"{_start_over(topic, name)}"
            )

    def _require_nothing_missed(
        self, topic: str, name: str, registration: Registration, stands: Mapping[int, tuple[LogState, ReaderPosition]]
    ) -> None:
        """Refuse to go on with a state that lacks deletions.

        Raises:
            TombstonesMissed: naming the offsets.
        """
        told = [
            text
            for partition, (state, position) in sorted(stands.items())
            if (text := missed_before(f"{topic}-{partition}", registration, partition, position, state))
        ]
        if told:
            raise TombstonesMissed(
                f"reader {name} of topic {topic} was too slow: {'; '.join(told)}; its state may still have keys that "
                f"are deleted here: empty it, and start over from the beginning: {_start_over(topic, name)}"
            )


def _whole_numbers(positions: object, whose: str) -> dict[int, int]:
    """Positions by partition as they are stored.

    Raises:
        InvalidConfig: they are something else.
    """
    if not isinstance(positions, Mapping):
        raise InvalidConfig(f"{whose}: positions are of type {type(positions).__name__}: give offsets by partition")
    return {
        whole_number(number, f"{whose}: a partition"): whole_number(offset, f"{whose}: the offset in {number}")
        for number, offset in positions.items()
    }


def reader_standings(store: LogStore | UnopenedStore, names: Iterable[str], *, now_ms: int) -> ReaderStandings:
    """As ``Readers.list``, also of a home that nobody has opened."""
    now_ms = passed_now_ms(now_ms)
    names, topics = texts(names, "the topics of readers"), store.topics()
    require_topics(names, topics)

    looks, failed = parted(each_apart(lambda topic: _standings(store, topic, now_ms), names or topics))
    # One that was deleted just now is simply not there, unless somebody named it.
    told = {topic: error for topic, error in failed.items() if names or not isinstance(error, UnknownTopic)}
    return ReaderStandings([each for look in looks.values() for each in look], told)


def _standings(store: LogStore | UnopenedStore, topic: str, now_ms: int) -> Sequence[ReaderStanding]:
    seen = TopicReaders.of(store.files, store.load_table(topic))
    logs = store.logs(topic) if seen.registrations else []
    positions = seen.positions(seen.registrations) if logs else {}
    return [
        _standing(log, name, registration, positions[name], now_ms)
        for name, registration in seen.registrations.items()
        for log in logs
    ]


def _standing_in(seen: TopicReaders, name: str) -> tuple[Registration, ReaderPositions]:
    registration = seen.registrations.get(name)
    if registration is None:
        raise _unknown(seen.topic, name)
    stored = seen.positions({name: registration})[name]
    if stored.problem:
        raise TombstonesMissed(
            f"reader {name} of topic {seen.topic}, {stored.problem}, or start over with an empty state: "
            f"{_start_over(seen.topic, name)}"
        )
    return registration, stored


def _standing(log: Log, name: str, registration: Registration, stored: ReaderPositions, now_ms: int) -> ReaderStanding:
    partition = log.topic_partition.partition
    position = None if stored.problem else stored.found.get(partition)
    holdings = [each for each in assess(log, now_ms).holdings if each.hold.reader == name]
    holding = holdings[0] if holdings else None
    state = LogState(log.log_start_offset, log.log_end_offset, log.checkpoint, truncations=log.truncations)
    offset, where = stored.of(partition), str(log.topic_partition)
    stands = position or registration.beginning(partition)
    return ReaderStanding(
        topic=log.topic_partition.topic,
        reader=name,
        partition=partition,
        position=position.offset if position else None,
        log_end_offset=log.log_end_offset,
        lag=max(log.log_end_offset - max(offset, log.log_start_offset), 0),
        hold_max_ms=registration.hold_max_ms,
        holds_since_ms=holding.since_ms if holding else None,
        holds_until_ms=holding.until_ms if holding else None,
        missed=truncated_below(where, stands, state) or missed_before(where, registration, partition, stands, state),
        problem=stored.problem,
    )


def _start_over(topic: str, name: str) -> str:
    return f"keptlog reader add {topic} {name} --start-over"


def _unknown(topic: str, name: str) -> InvalidConfig:
    return InvalidConfig(f"topic {topic} has no reader {name!r}: keptlog reader add {topic} {name}")
