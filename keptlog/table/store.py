"""``LogStore``: all topics of one catalog, and everything that can be done to them.

It holds no state but a cache of immutable manifests: two stores over one catalog, wherever, are as good as one. What
has a module of its own takes what it needs from here: the table, the files, and what commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from keptlog.log.broker import purge_interval_ms
from keptlog.log.config import settled
from keptlog.log.drop import StagedOutcome
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.log.record import NewRecord, Record
from keptlog.log.segment import Log
from keptlog.log.source import Arrival, SourceIdentity, StoredSource
from keptlog.log.steps import Retain
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.catalogs.catalog import files_of
from keptlog.table.chain.sealed_deletions import SealedDeletions
from keptlog.table.changes.alteration import Alteration
from keptlog.table.changes.append import Append, AppendResult
from keptlog.table.changes.arrival import Ingestion
from keptlog.table.changes.mark import Failure, Marks, mark_uncleanable
from keptlog.table.changes.partition_writers import SegmentPaths
from keptlog.table.changes.repair import Repair, RepairPlan
from keptlog.table.changes.retain import DeleteRecords, DeletionResult, SegmentRemoval
from keptlog.table.changes.swap import Swap
from keptlog.table.commits.commit import Committer
from keptlog.table.commits.loading import all_topics, id_to_delete, load_topic_table
from keptlog.table.commits.locations import LocationLook
from keptlog.table.commits.topics import Topic, TopicCreation, require_partition, snapshot_of, topic_of
from keptlog.table.io.file_io import metadata_read_once
from keptlog.table.io.files import TableFiles
from keptlog.table.io.read_only import read_only, require_writable
from keptlog.table.metadata.lineage import require_own, same_topic
from keptlog.table.metadata.logs import Locations, ObservedTopic
from keptlog.table.metadata.metadata_reading import looked_at
from keptlog.table.metadata.state import read_source
from keptlog.table.purging.clock_guard import ClockGuard
from keptlog.table.purging.purge import Purge
from keptlog.table.purging.purge_receipt import PurgeReceipt
from keptlog.table.purging.quiet import PurgeTimes
from keptlog.table.purging.watermark_expiry import WatermarkExpiry
from keptlog.table.reading.cache import TopicCache
from keptlog.table.reading.lost import LostFiles
from keptlog.table.reading.read import Reader
from keptlog.table.reading.readers import observed_with_holds, with_holds
from keptlog.table.removal.deletion import Deletion, being_deleted
from keptlog.table.removal.drafts import Seal
from keptlog.table.removal.topic_deletion import TopicDeletion
from keptlog.table.topic_memory import TopicMemory
from keptlog.table.waiting.reaching import reaching
from keptlog.table.waiting.side_by_side import Patience


class LogStore:
    """The topics of one catalog.

    ``broker_settings`` gives the defaults of topic settings; ``sleep`` waits between commit attempts, in seconds;
    ``new_id`` returns a text that was never returned before, anywhere; ``cache`` puts aside what ``observe`` has read.

    Every method raises StorageUnavailable if catalog or storage can't be reached, and those that name a topic raise
    UnknownTopic if there is none, UnsupportedFormat if a newer keptlog has written it. ``topic_id`` is that of the
    topic which is meant, for whoever has looked at it before: a later one of its name is StalePlan. By default any is.
    """

    def __init__(
        self,
        catalog: Catalog,
        broker_settings: Mapping[str, str],
        sleep: Callable[[float], None],
        new_id: Callable[[], str],
        cache: TopicCache | None = None,
    ) -> None:
        self._catalog = catalog
        self.broker_settings = broker_settings
        self._new_id = new_id
        self._sleep = sleep
        self._memory = TopicMemory()
        self._cache = cache
        self._locations = LocationLook(catalog)
        self.seal: Seal | None = None  # takes receipts into their chain
        self.forgets: list[Callable[[str], None]] = [self._memory.forget, *([cache.forget] if cache else [])]
        self.clock_guard = ClockGuard(broker_settings, self.load_table, self.metadata_locations, self)
        self.done_ms = self.clock_guard.done_ms

    @property
    def files(self) -> TableFiles:
        """The storage behind the catalog; pickles, so that tasks can take it along."""
        return files_of(self._catalog)

    @property
    def read_only(self) -> str | None:
        """Why nothing may be changed here, in one line: the home is a copy, or was moved. Null if all may be."""
        return read_only(self._catalog.properties.items())

    def require_writable(self) -> None:
        """Refuse a pass over a home that is a copy, or was moved, with InvalidConfig; each change refuses it too."""
        require_writable(self._catalog.properties.items())

    @cached_property
    def committer(self) -> Committer:
        """What lands changes that have a module of their own."""
        return Committer(self._catalog, self._sleep, self.files)

    def topics(self) -> list[str]:
        """Names of all topics, sorted."""
        with reaching("topics can't be listed"):
            return all_topics(self._catalog)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> Topic:
        """Create a topic; ``config`` holds its own settings under Kafka's names.

        Raises:
            InvalidConfig: name, partitions or a setting is not allowed, or the topic exists.
        """
        stored = settled(config, self.broker_settings)
        with reaching(f"topic {name} can't be created"):
            table = TopicCreation(name, partitions, config, stored).carry_out(self._catalog, self.files, self._new_id)
            return topic_of(table, self.broker_settings)

    def describe_topic(self, name: str, topic_id: str | None = None) -> Topic:
        """A topic with its configuration resolved."""
        return topic_of(same_topic(self.load_table(name), topic_id), self.broker_settings)

    def alter_topic(self, name: str, to_set: Mapping[str, str], unset: Sequence[str] = ()) -> Topic:
        """Change a topic's settings; all of them or, if one is refused, none.

        Raises:
            InvalidConfig: the configuration would not be valid.
        """
        table = Alteration(name, to_set, unset, self._new_id()).commit(self.committer, self.broker_settings)
        return topic_of(table or self.load_table(name), self.broker_settings)

    def delete_topic(self, name: str, now_ms: int, topic_id: str | None = None) -> TopicDeletion:
        """Delete a topic and all its records for good: it leaves the catalog first, then its files the storage.

        Runs at work on it lose their commit. Killed on its way, the same call again finishes it.
        """
        there = id_to_delete(self._catalog, name)
        return replace(self.deletion(name, now_ms), topic_id=topic_id or there).delete()

    def deletion(self, name: str, now_ms: int) -> Deletion:
        """The deletion of a topic, for whoever finishes one that was begun, and begins none."""
        how = self.seal, self.done_ms, self.forgets, SealedDeletions(self._catalog)
        return Deletion(self._catalog, self.files, name, now_ms, *how)

    def being_deleted(self) -> list[str]:
        """Topics whose deletion was begun and is not finished, sorted; somebody may be at it just now."""
        with reaching("topics can't be listed"):
            return being_deleted(self._catalog)

    def logs(self, topic: str, topic_id: str | None = None) -> list[Log]:
        """The logs of a topic, one for each partition, from file metrics alone: to be judged, and changed.

        Whoever only reads records finds them in ``reader``, whatever somebody else has done to the table.

        Raises:
            LogCorrupt: what is stored contradicts itself, or its snapshot is not the one that its state belongs to.
        """

        def look(table: Table) -> list[Log]:
            require_own(table)
            logs = self._memory.live_files.logs(table, topic_of(table, self.broker_settings).config)
            interval_ms = purge_interval_ms(self.broker_settings)
            return with_holds(self.files, logs, table.properties, table.metadata_location, interval_ms)

        with reaching(f"topic {topic} can't be read"):
            return looked_at(lambda: same_topic(self.load_table(topic), topic_id), look)

    def observe(self, topic: str, location: str | None = None) -> ObservedTopic:
        """The logs of a topic and what their last cleans cost, for those who only look.

        ``location`` is where the topic's metadata lies (``metadata_locations``), by default where it does now; what is
        known of that is not read again.

        Raises:
            LogCorrupt: as for ``logs``.
            InvalidConfig: the topic's configuration can't be resolved over the broker's.
        """
        first = [] if location else [self.load_table(topic)]
        location = location or first[0].metadata_location
        stored = self._cache.get(topic, location) if self._cache else None
        if stored is None:
            with reaching(f"topic {topic} can't be read"):
                stored = looked_at(lambda: first.pop() if first else self.load_table(topic), self._memory.table_look.at)
            if self._cache:
                self._cache.put(stored)
        return observed_with_holds(self.files, stored, stored.observed(self.broker_settings), self.load_table)

    def data_location(self, topic: str) -> str:
        """The folder in which a topic's segments lie, without a slash at its end."""
        return self.describe_topic(topic).data_location

    def metadata_locations(self, patience: Patience | None = None) -> Locations:
        """Topic to the location of its current metadata, which every commit moves; empty where it can't be had."""
        with reaching("topics can't be listed"):
            return self._memory.forgetting_gone(self._locations.now(patience))

    def append(self, topic: str, records: Iterable[NewRecord], run_id: str | None, now_ms: int) -> AppendResult:
        """Append a batch atomically; a ``run_id`` that was appended before is not appended again.

        What it brought then is the result (``is_repeated``); with null it is a new run. A record without a partition
        goes where Kafka's default partitioner puts its key; those without a key go all to one. Memory is bounded,
        however many ``records`` there are; if it raises, nothing is appended.

        Raises:
            InvalidConfig: the topic has a source; its records are ingested. Or the run id is no name.
            InvalidRecord: one can't be appended; says which, counted from 1. Nothing of the batch was.
            StalePlan, CommitStateUnknown: the commit lost every race, or got no answer.
        """
        with metadata_read_once():
            described = topic_of(table := self.load_table(topic), self.broker_settings)
            paths = SegmentPaths(described.data_location, self._new_id() if run_id is None else run_id, self._new_id)
            batch = Append(described, self.committer, self.files, paths, now_ms, is_new_run=run_id is None)
            return batch.append(table, records)

    def source_of(self, topic: str) -> StoredSource:
        """Where a topic's records come from, if not from appends, and how far each partition was read there.

        Raises:
            LogCorrupt: what is stored contradicts itself.
        """
        return read_source(topic, self.load_table(topic).properties)

    def ingest(
        self, topic: Topic | str, arrivals: Sequence[Arrival], source: SourceIdentity, partitions: int, run_id: str
    ) -> None:
        """Make live what was read from a source: all topic-partitions of the topic in one commit.

        ``arrivals`` has at most one range for each partition, each from the position as it is stored; ``partitions`` is
        how many the topic has from now on. The same ranges of the same run are not ingested twice. A topic that was
        described, not named alone, is not taken for a later one of its name.

        Raises:
            StalePlan: a position or the source moved meanwhile, or a staged file is gone; nothing landed.
            CommitStateUnknown: the catalog did not say whether it landed; the same call again finds out.
            InvariantViolated: segments that do not belong to their range; nothing landed.
        """
        name, topic_id = (topic, None) if isinstance(topic, str) else (topic.name, topic.id)
        Ingestion(name, arrivals, source, partitions, run_id, topic_id).commit(self.committer, self.files)

    def swap(
        self,
        topic: str,
        rewritten: Sequence[StagedOutcome],
        run_id: str,
        last_passes: Mapping[TopicPartition, LastPass] | None = None,
    ) -> None:
        """Make the outcomes of a run live: all topic-partitions of the topic in one commit.

        ``last_passes`` is what the run cost, stored with the logs. A clean clears the mark of an earlier failure.

        Raises:
            StalePlan: a log (its ``logs``) is no longer what the plan was made from; nothing landed, nothing is lost.
            CommitStateUnknown: the catalog did not say whether it landed; the same call again finds out.
            InvariantViolated: the commit would break an invariant; nothing landed.
        """
        guarded = self.clock_guard.over(self.committer, (outcome.step.now_ms for outcome in rewritten))
        swap = Swap(topic, rewritten, run_id, last_passes or {})
        swap.commit(guarded, self.files, self._memory.live_files, self.broker_settings)

    def retain(self, topic: str, steps: Sequence[Retain], run_id: str) -> None:
        """Carry out what retention has planned for the logs of a topic, in one commit.

        Raises:
            StalePlan, CommitStateUnknown: as for ``swap``; a plan is stale too if retention was set otherwise since.
        """
        guarded = self.clock_guard.over(self.committer, (step.now_ms for step in steps))
        with reaching(f"topic {topic} can't be read"):
            SegmentRemoval(topic, steps, run_id).commit(guarded, self._memory.live_files, self.broker_settings)

    def delete_records(
        self, topic_partition: TopicPartition, before_offset: int, run_id: str | None, topic_id: str | None = None
    ) -> DeletionResult:
        """Delete the records of a log below an offset, -1 for all: Kafka's ``DeleteRecords``.

        No reader sees them from now on. Segments that lie below it go at once; what is left of one goes with it. A
        ``run_id`` that has deleted before deletes no more (``is_repeated``); with null it is a new run.

        Raises:
            InvalidConfig: the offset lies outside of the log.
            CommitStateUnknown: the catalog did not say whether it landed; the same call again finds out.
        """
        name = self._new_id() if run_id is None else run_id
        with reaching(f"topic {topic_partition.topic} can't be read"):
            deletion = DeleteRecords(topic_partition, before_offset, name, is_new_run=run_id is None, topic_id=topic_id)
            return deletion.commit(self.committer, self._memory.live_files, self.broker_settings)

    def lost_files(self, topic: str) -> LostFiles:
        """What is live in the topic now: which of the files that were missed before are lost."""
        with reaching(f"files of topic {topic} can't be looked for"):
            look = partial(self._memory.lost_files, files=self.files, broker_settings=self.broker_settings)
            return looked_at(lambda: self.load_table(topic), look)

    def mark_uncleanable(self, topic: str, failures: Iterable[Failure], now_ms: int, backoff: Backoff) -> Marks:
        """Remember that cleans of logs of a topic failed, and tell which; one that was cleaned meanwhile is not marked.

        Raises:
            StalePlan: others kept committing first; nothing is marked.
        """
        guarded = self.clock_guard.over(self.committer, [now_ms])  # it would wait for a time that never comes
        return mark_uncleanable(guarded, topic, failures, now_ms, backoff)

    def plan_repair(self, topic: str, *, is_adoption: bool) -> RepairPlan | None:
        """What would bring state and snapshot together again; null where they are. Changes nothing.

        Raises:
            LogCorrupt: it can't be done this way; says why, and what can be.
        """
        with reaching(f"topic {topic} can't be read"):
            return self._repair(topic, is_adoption=is_adoption).plan(self.load_table(topic))

    def repair(self, plan: RepairPlan, run_id: str) -> None:
        """Carry out the plan of a repair, in one commit; nothing if it was done already.

        Raises:
            StalePlan: the table is no longer what it was planned from; nothing landed.
            CommitStateUnknown: the catalog did not say whether it landed; plan again, which finds out.
        """
        with reaching(f"topic {plan.topic} can't be read"):
            self._repair(plan.topic, is_adoption=plan.is_adoption).commit(self.committer, plan, run_id)

    def _repair(self, topic: str, *, is_adoption: bool) -> Repair:
        return Repair(topic, is_adoption, self.files, self._memory.live_files, self.broker_settings)

    def read(
        self,
        topic: str,
        partition: int | None = None,
        from_offset: int = 0,
        *,
        latest: bool = False,
        snapshot_id: int | None = None,
    ) -> Iterator[tuple[int, Record]]:
        """Partition and record, by partition and offset, all of one snapshot (default: the current one).

        Raises:
            UnknownTopic, InvalidConfig: no such topic or partition; no such snapshot, or no longer.
            StorageUnavailable: while iterating: a purge deleted a segment of this snapshot.
            LogCorrupt: while iterating: a file is damaged, or is lost.
        """
        return self.reader(topic, partition, snapshot_id=snapshot_id).records(from_offset, latest=latest)

    def reader(
        self,
        topic: str,
        partition: int | None = None,
        *,
        snapshot_id: int | None = None,
        own: bool = False,
        topic_id: str | None = None,
    ) -> Reader:
        """The logs of one snapshot (default: the current one), and a way to read them; ``own``: as ``require_own``.

        Raises:
            UnknownTopic, InvalidConfig: no such topic or partition; no such snapshot, or no longer.
        """

        def look(table: Table) -> Reader:
            if own:
                require_own(table)
            require_partition(described := topic_of(table, self.broker_settings), partition)
            logs = self._memory.live_files.logs(table, described.config, snapshot_of(table, snapshot_id))
            read = [log for log in logs if partition in {None, log.topic_partition.partition}]
            return Reader(self.files, read, lambda: self.logs(topic), snapshot_id or table.metadata.current_snapshot_id)

        with reaching(f"topic {topic} can't be read"):
            return looked_at(lambda: same_topic(self.load_table(topic), topic_id), look)

    def purge(self, topic: str, now_ms: int, orphan_grace_ms: int = ORPHAN_GRACE_MS) -> PurgeReceipt:
        """Delete what was replaced ``file.delete.delay.ms`` ago, orphans older than a grace time, old watermarks.

        ``now_ms`` is compared with snapshot and file times, which are the wall clock's.

        Raises:
            StalePlan, CommitStateUnknown: the commit lost every race, or got no answer; the next purge goes on with it.
        """
        described = topic_of(table := self.load_table(topic), self.broker_settings)
        self.require_writable()
        self.clock_guard.require_plausible(now_ms, table)
        times = PurgeTimes.of(self.clock_guard, now_ms, described.config.file_delete_delay_ms, orphan_grace_ms)
        with reaching(f"topic {topic} can't be purged"):
            old = WatermarkExpiry(topic, self.committer, self.files, self._new_id, self.broker_settings, now_ms)
            table, times = old.expire(table, times)
            return Purge(described, table, self.committer, self.files, self._new_id, times, self.seal).purge()

    def load_table(self, topic: str) -> Table:
        """The table of a topic, as it is now."""
        with reaching(f"topic {topic} can't be loaded"):
            return load_topic_table(self._catalog, topic)
