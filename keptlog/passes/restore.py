"""State out: the log as it is here, into a topic of a Kafka broker; ``restore_to_file`` does files.

A topic gets every record, in order, in the partition of its number, exactly once however often a restore is killed and
run again. How far it has got is committed with the records (``sinks.kafka_broker.transactions``), as an offset here:

    first run       [ 0 ............ 80 ) killed            sent from the log as it was then
    cleaned             [  .  . .  .  .  .  .  . 120 )      neither order nor offsets change, so 80 stays a position
    second run                       [ 80 . . .. 120 )      sent from the log as it is now

So what arrives is a log that was never here at one moment: below 80 it may have records that were superseded
meanwhile. Its state is right all the same, because a later record of each such key follows: a clean removes nothing
but what a later record supersedes. One thing it removes without a successor, tombstones. If one went between two runs,
an older record of its key, sent by the first, would stay for ever.

So a restore is a registered reader (``keptlog.log.holds``), under a name made from its target: tombstones that its
position is not beyond wait for the next run, for a week, until somebody removes the reader. What goes all the same is
written into the registration, and the next run asks. Before it was registered, and where nobody is, time decides: a
tombstone goes ``delete.retention.ms`` after the clean that first met it, at the soonest, and only from the clean
section. Nothing was lost if that time had not passed, or if nothing behind the position was cleaned. That is Kafka's
rule for consumers of compacted topics, held instead of hoped for.

    as of the position            registered              now
    |---- no longer than that ----|--- what it missed ----|

A target that was set back has a position before that of its reader, who has held nothing for it there. Then time
decides alone, and the reader starts over. A restore that is complete may be run again for what came since, under the
same rules. It asks too if the head of the log went meanwhile.

A truncation (``keptlog.table.changes.truncate``) does change what offsets mean. So a position says how many there had
been, and one that lies beyond a later one is refused.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, StorageUnavailable, first_line
from keptlog.kafka_client.topic_ids import NO_ID
from keptlog.log.broker_addresses import share_a_broker
from keptlog.log.holds import RESTORE_READER
from keptlog.log.record import Record
from keptlog.log.segment import Log
from keptlog.log.topic_partition import valid_topic_name
from keptlog.log.words.counted import counted
from keptlog.passes.readers import Readers
from keptlog.passes.restore_position import Standing, is_ahead, is_outdated, require_not_lost, require_ours
from keptlog.progress import Progress
from keptlog.sinks.kafka_broker.acceptance import COLUMNS, Acceptance
from keptlog.sinks.kafka_broker.position import Pair, Position, Trail
from keptlog.sinks.kafka_broker.target import Target, Targets, of_one_cluster
from keptlog.sinks.kafka_broker.writer import Writer, open_writer
from keptlog.storage.schema import from_arrow
from keptlog.table.reading.readers import ReaderPosition

if TYPE_CHECKING:
    import pyarrow as pa

    from keptlog.kafka_client.settings import ClientSettings
    from keptlog.table.reading.read import Reader
    from keptlog.table.store import LogStore

_logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 10_000
_LOOKED_AT_EVERY = 100_000
"""Records, from one line of progress to the next while nothing is sent yet."""
_LONGEST_IN_NAME = 100
_TRIES = 4
"""With a client of its own each, after what was being written to was lost; a broker needs some seconds to start."""


@dataclass(frozen=True, slots=True)
class RestoredLog:
    """What a topic-partition got: those records of [from_offset, end_offset) here that are still here."""

    partition: int
    from_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What a topic got."""

    topic: str
    target: str
    is_created: bool
    """Whether there was no such topic before."""
    logs: tuple[RestoredLog, ...]
    zero_timestamps: int
    """Records with timestamp 0, which was sent as 1."""

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)


@dataclass(frozen=True, slots=True)
class Restore:
    """Restores topics of a store to a broker. ``clock`` gives the time in ms, ``new_id`` a text that never was."""

    store: LogStore
    settings: ClientSettings
    clock: Callable[[], int]
    progress: Progress
    new_id: Callable[[], str]

    def to_broker(
        self, topic: str, name: str, *, append_to_existing: bool = False, skip_lost: bool = False
    ) -> RestoreResult:
        """Bring the topic ``name`` at the broker to what the topic here holds now; creates it if there is none.

        ``append_to_existing`` begins although it has records; ``skip_lost`` goes on although records, or tombstones,
        behind the position may be gone.

        Raises:
            InvalidConfig: the topic there can't take the log as it is; or a setting, or a permission, is wrong.
            InvalidRecord: it does not take a record.
            StalePlan: another restore of the same pair has begun, or the topic here is another one of its name by now.
            StorageUnavailable: storage or broker can't be reached. All that raise leave a restore that goes on from
                where it was when it is run again.
        """
        valid_topic_name(name)
        run = replace(self, settings=of_one_cluster(self.settings))
        done = _Done()
        tries_left = 0
        while True:
            commits = done.commits
            try:
                run._go_on(  # noqa: SLF001  # this same restore
                    topic, name, done, append_to_existing=append_to_existing, skip_lost=skip_lost
                )
            except StorageUnavailable as error:
                tries_left = _TRIES if done.commits > commits else tries_left - 1
                if tries_left < 0 or not done.commits:
                    raise
                text = "%s; going on from where it was with a new client, %d more follow if need be"
                _logger.warning(text, first_line(error), tries_left)
            else:
                logs = tuple(replace(log, records=done.records[log.partition]) for log in done.logs)
                return RestoreResult(topic, name, done.is_created, logs, done.zero_timestamps)

    def _go_on(self, topic: str, name: str, done: _Done, *, append_to_existing: bool, skip_lost: bool) -> None:
        """Send what is not there yet, with one writer."""
        started_ms = self.clock()
        # What a log has lost for now would be passed over for good, once the position is behind it.
        reader = self.store.reader(topic, own=True)
        seen_ms = self.clock()
        target, is_created = self._target(topic, name, reader)
        done.is_created |= is_created
        # By now the name may be another topic's, whose offsets are others: the position is that of what was looked at.
        pair = Pair(topic, self.store.describe_topic(topic, reader.topic_id).id, target)
        with open_writer(self.settings, pair, done.trail) as writer:
            stored = writer.positions()
            if is_outdated(reader.logs, stored):
                reader, seen_ms = self.store.reader(topic, own=True, topic_id=pair.topic_id), self.clock()
                _require_as_many(topic, len(reader.logs), target)
            new = [partition for partition, position in stored.items() if position is None]
            if self._may_be_the_source(topic, target):
                self._require_not_its_own(topic, target, new)
            if not append_to_existing:
                self._require_empty(target, new)
            positions = {
                partition: Position(log.log_start_offset, None, log.truncations.count) if position is None else position
                for partition, (log, position) in enumerate(zip(reader.logs, stored.values(), strict=True))
            }
            # After the look at the log: a clean that took a tombstone out of it has written that down by then.
            reader_name, standing = self._standing(pair)
            # It says where it begins before anything is sent, and moves on only once all is there.
            begun = [number for number in new if standing and standing[1].may_have_begun(number)]
            self._require_not_forgotten(topic, target, reader_name, begun)
            if reader_name != reader_name_of(target) and not any(each and each.as_of_ms for each in stored.values()):
                # Nothing that was sent says that it is this target's: it may be of a topic of this name elsewhere.
                reader_name, standing = reader_name_of(target), None
            for log, position in zip(reader.logs, positions.values(), strict=True):
                require_ours(log, position)
                if not skip_lost:
                    require_not_lost(log, position, seen_ms, standing)
            if not (is_created or done.commits):
                offsets = {number: each.offset for number, each in positions.items()}
                self._require_taken(topic, reader, offsets, target)
            ahead = any(is_ahead(standing, number, position) for number, position in positions.items())
            # To start over is to speak for the target: only a commit with an offset in it tells whether one still may.
            writer.commit(positions if ahead else {partition: positions[partition] for partition in new})
            done.begin(reader.logs, positions)
            move = self._registered(pair, reader_name, start_over=ahead)
            move({number: ReaderPosition(each.offset, each.truncations) for number, each in positions.items()})
            self._copy(reader, writer, positions, done, started_ms)
            logs = {log.topic_partition.partition: log for log in reader.logs}
            move({number: ReaderPosition(log.log_end_offset, log.truncations.count) for number, log in logs.items()})

    def _readers(self, pair: Pair) -> Readers:
        """Those of the topic that is restored, and of no later one of its name."""
        return Readers(self.store, self.new_id, pair.topic_id)

    def _standing(self, pair: Pair) -> tuple[str, Standing | None]:
        """The reader that this restore is, also if it became one before its target had an id; null if none yet."""
        readers, name = self._readers(pair), reader_name_of(pair.target)
        for each in dict.fromkeys((name, reader_name_of(replace(pair.target, id=NO_ID)))):
            if standing := readers.standing(pair.topic, each):
                return each, standing
        return name, None

    def _registered(self, pair: Pair, name: str, *, start_over: bool) -> Callable[[Mapping[int, ReaderPosition]], None]:
        """Register the restore as a reader; gives what says how far it has come."""
        if self.store.read_only:
            return lambda _: None
        readers, topic = self._readers(pair), pair.topic
        # The time of now: what went between the look at the log and this was held by nobody.
        registration = readers.add(topic, name, now_ms=self.clock(), start_over=start_over)
        return lambda positions: readers.move(topic, name, registration, positions)

    def _require_taken(self, topic: str, reader: Reader, from_offsets: Mapping[int, int], target: Target) -> None:
        """Refuse what the target does not take, before anything is sent.

        Raises:
            InvalidRecord: the first record that it does not take, as far as its settings tell.
            StalePlan: the topic became another one of its name meanwhile.
        """
        acceptance = Acceptance(target, self.clock(), self.settings.compresses)
        starts = [(log, from_offsets.get(log.topic_partition.partition, 0)) for log in reader.logs]
        looked_at, most = 0, sum(_records_from(*start) for start in starts)
        for log, from_offset in starts:
            for table in reader.tables(log, from_offset, columns=COLUMNS):
                if refused := acceptance.refused(table):
                    offset, error = refused
                    raise error(f"{log.topic_partition} can't be restored beyond offset {offset}", target)
                before, looked_at = looked_at, looked_at + table.num_rows
                if before // _LOOKED_AT_EVERY < looked_at // _LOOKED_AT_EVERY:
                    told = f"looked at {counted(looked_at, 'record')} of at most {most} ({looked_at / most:.0%})"
                    self.progress(f"{told}, whether {target.name} takes them; nothing is sent yet")
        # A long log takes minutes. For another topic there is no target to be made from this one, and no position.
        self.store.describe_topic(topic, reader.topic_id)

    def _target(self, topic: str, name: str, reader: Reader) -> tuple[Target, bool]:
        """The topic to restore to, and whether it was created for that; it is not, if it would not take all records."""
        targets, described = Targets(self.settings), self.store.describe_topic(topic, reader.topic_id)
        found = targets.find(name)
        if found is None:
            planned = targets.as_created(name, described.partitions, described.config.of_the_topic)
            self._require_taken(topic, reader, {}, planned)
            with open_writer(self.settings, Pair(topic, described.id, planned)):
                pass  # whoever may not write in transactions leaves no empty topic there
            targets.create(name, described.partitions, described.config.of_the_topic)
            self.progress(f"created topic {name} with {counted(described.partitions, 'partition')}")
        target = found or targets.find(name)
        if target is None:
            raise InvalidConfig(f"topic {name} was deleted while it was being created: leave it alone, and try again")
        _require_as_many(topic, described.partitions, target)
        if target.replaces_timestamps:
            raise InvalidConfig(
                f"topic {name} has message.timestamp.type=LogAppendTime, which would replace every timestamp: set it "
                "to CreateTime while restoring"
            )
        source = self.store.source_of(topic).source
        if source and source.topic_id == target.id:
            raise InvalidConfig(f"{topic} comes from topic {name} there: choose another one (--topic)")
        return target, found is None

    def _may_be_the_source(self, topic: str, target: Target) -> bool:
        """Whether only an id could tell that the topic does not come from there, and one of the two has none."""
        source = self.store.source_of(topic).source
        if source is None or source.topic != target.name or (source.topic_id and target.has_id):
            return False
        there = source.bootstrap
        if not there:
            return False
        return share_a_broker(there, self.settings.bootstrap or "") or Targets(self.settings).are_at(there)

    def _require_not_its_own(self, topic: str, target: Target, new: Iterable[int]) -> None:
        """Refuse to add a topic to its source; one that was lost there, and made anew by a restore, has begun empty."""
        used = sorted({*new} & {*Targets(self.settings).with_records(target, ever=True)})
        if used:
            raise InvalidConfig(
                f"{topic} comes from topic {target.name} there, whose {target.name}-{used[0]} has, or had, records "
                "that no restore has written: they would be there twice; choose another topic (--topic)"
            )

    def _require_empty(self, target: Target, partitions: Iterable[int]) -> None:
        used = sorted({*partitions} & {*Targets(self.settings).with_records(target)})
        if used:
            raise InvalidConfig(
                f"{target.name}-{used[0]} has records that no restore of this topic has written, or none of the last "
                "days (brokers forget positions after offsets.retention.minutes): choose another topic (--topic), or "
                "add to what is there (--append-to-existing)"
            )

    def _require_not_forgotten(self, topic: str, target: Target, reader_name: str, begun: Iterable[int]) -> None:
        """Refuse to send twice, of partitions that have no position there, and that the reader has begun with."""
        begun = {*begun}
        used = sorted(begun & {*Targets(self.settings).with_records(target)}) if begun else []
        if used:
            raise InvalidConfig(
                f"{target.name}-{used[0]} has records of an earlier restore of {topic}, whose position is gone there "
                "(brokers forget positions after offsets.retention.minutes), so they would come twice: choose another "
                f"topic (--topic), or begin again if that is meant (keptlog reader remove {topic} "
                f"{reader_name}, and then --append-to-existing)"
            )

    def _copy(
        self, reader: Reader, writer: Writer, positions: Mapping[int, Position], done: _Done, started_ms: int
    ) -> None:
        """Send what lies behind the positions, committing from time to time."""
        reached: dict[int, Position] = {}
        sent: Counter[int] = Counter()
        zero_timestamps = done.zero_timestamps
        for log in reader.logs:
            partition = log.topic_partition.partition
            position = positions[partition]
            as_of_ms = started_ms if position.as_of_ms is None else position.as_of_ms
            known = log.truncations.count
            for record in _records(reader.tables(log, position.offset)):
                writer.write(partition, record)
                sent[partition] += 1
                if writer.is_full:
                    writer.commit(reached | {partition: Position(record.offset + 1, as_of_ms, known)})
                    reached = {}
                    done.commit(sent, zero_timestamps + writer.zero_timestamps)
                    total, left = done.records.total(), _left(reader, log, record.offset)
                    where = f"up to offset {record.offset} of {log.topic_partition}"
                    self.progress(f"restored {counted(total, 'record')}, {where}; at most {left} are left")
            reached[partition] = Position(log.log_end_offset, started_ms, known)
        writer.commit(reached)
        done.commit(sent, zero_timestamps + writer.zero_timestamps)


def _require_as_many(topic: str, partitions: int, target: Target) -> None:
    if target.partitions != partitions:
        raise InvalidConfig(
            f"topic {target.name} has {counted(target.partitions, 'partition')} and {topic} here has {partitions}: "
            "records keep their partitions, so choose another topic (--topic), or give it as many"
        )


def _left(reader: Reader, current: Log, offset: int) -> int:
    """How many records there can be behind an offset of one log, and in the logs after it."""
    after = [log for log in reader.logs if log.topic_partition > current.topic_partition]
    return _records_from(current, offset + 1) + sum(segment.record_count for log in after for segment in log.segments)


def _records_from(log: Log, offset: int) -> int:
    """How many records there can be in one log from an offset on."""
    here = [segment for segment in log.segments if segment.last_offset >= offset]
    return sum(min(each.record_count, each.last_offset + 1 - offset) for each in here)


@dataclass
class _Done:
    """What was committed, by one writer after the other."""

    logs: list[RestoredLog] = field(default_factory=list)
    records: Counter[int] = field(default_factory=Counter)
    zero_timestamps: int = 0
    is_created: bool = False
    commits: int = 0
    trail: Trail = field(default_factory=Trail)

    def begin(self, logs: Sequence[Log], positions: Mapping[int, Position]) -> None:
        """A writer goes on; it is where the first one began that is told."""
        first = {log.partition: log.from_offset for log in self.logs}
        self.logs = [
            RestoredLog(partition, first.get(partition, positions[partition].offset), log.log_end_offset, 0)
            for partition, log in enumerate(logs)
        ]

    def commit(self, sent: Counter[int], zero_timestamps: int) -> None:
        """What was sent since the last commit is there."""
        self.records += sent
        sent.clear()
        self.zero_timestamps = zero_timestamps
        self.commits += 1


def reader_name_of(target: Target) -> str:
    """The name of the reader that a restore to this topic is."""
    return f"{RESTORE_READER}{target.name[:_LONGEST_IN_NAME]}-{target.id}"


def _records(tables: Iterable[pa.Table]) -> Iterator[Record]:
    """Record objects of some rows at a time, so that there are never many of them."""
    for table in tables:
        for start in range(0, table.num_rows, _ROWS_AT_ONCE):
            yield from from_arrow(table.slice(start, _ROWS_AT_ONCE).to_batches())
