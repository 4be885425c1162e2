"""Finds the keys that are here and are gone at their source, and deletes them here.

A tombstone that the source's cleaner has removed before it was read (``keptlog.log.lost_deletions``) is nowhere any
more. But what it deleted is gone there too, and that shows: all of the source is read once more, for its offsets alone.

    here, latest of each key   ada@7  bob@9  cat@12        position 20
    there, below 20                   bob@9                7 and 12 are gone
    there, behind it           [20 ... 40): cat@31         25, 26 and 38 are gone

What is gone there was superseded there: by a later value, which is among what is read now (``cat``), or by a tombstone
which is not (``ada``). So ``ada`` gets a tombstone here. It takes an offset that is missing in [20, 40): the lost one
stood at one of them, each lost one at its own, so there always are enough. No record moves, and none of the source will
ever have that offset. Which of them it is does not matter, since nothing else is known of the key behind the position:
the highest are taken, so that little of what was staged is written once more (``insertion``).

All of it is read before what is new. Then the source is asked once more where it begins and ends. Its cleaner has come
no further than that end, so what superseded a record that is gone lay below it. What is new is read up to there, and
the position gets the time of this second look.

A key that vanishes later is deleted by a tombstone among what is new, unless ``delete.retention.ms`` was over before
that was read. Where it was, and offsets are missing in what is new, all is **compared once more**, with what is new. A
cleaner removes what a tombstone deletes before the tombstone. So no tombstone was missed if each record is still there
that would be the latest of its key here, or something newer of its key lies behind; otherwise nothing lands.

What superseded a record may be gone too before it is read, for something newer yet. So the few keys of which nothing
new was read are **looked for behind** what was read, up to where the source ends by then, and again behind that. A
stretch in which no offset is missing ends it: no cleaner was there, so all that is alive was seen. So does a source
that has not grown. Markers of transactions leave gaps wherever there are any: after some stretches no more is looked
for. The cleaner would have to come by in each of them, while it is looked through. A copy does not change, and is asked
once.

What the source removed from its beginning (retention, ``kafka-delete-records``) was deleted by nobody, and stays here.
So the second comparison begins where the log there begins by then. If that lies behind what was read, nobody can tell
which keys came again before it: then none is deleted here, and the next ingest stops because records are lost.

Only what was read whole tells what is gone. A damage that was skipped may hold a key that seems to be gone, or a newer
record of it. So may a segment that a copy lacks, or a part that can't be read and what lies behind it. Then nothing of
the topic-partition lands, unless nothing seems to be gone: what lies before the part has the offsets that tombstones
may need later.

A record that no table can hold is left out too, and hides nothing: it is whole. If the newest one of a key is a value,
the key is alive at the source, and is not deleted here. So where there are such records, the whole log is looked
through once more for the keys that seem to be gone. If it is a tombstone, and it is among what is read now, its key is
deleted here at the tombstone's own offset, whatever is still there of what it deletes. One that an ingest before has
left out has no offset here any more: what it deleted is deleted here by the next reconcile after it has gone there.

    read the source's old offsets --> which of our latest records are not among them
    ask for its end, read to it   --> without those keys that come again
    if that took too long         --> all once more: was a tombstone missed?
    look behind that end          --> without those keys that come again there
                                  --> tombstones at free offsets, staged with what is new, one commit
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.engine.jobs import Jobs, Task, run_each
from keptlog.engine.reconcile_tasks import (
    Longs,
    PresentKeysTask,
    PresentOffsets,
    PresentTask,
    UnfitTombstonesTask,
    alive_among,
    deleted_among,
    hidden_by,
)
from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.ingest.insertion import Insertion, places_for
from keptlog.ingest.result import Intake, without_unfit
from keptlog.log.cut_off import erase_again
from keptlog.log.lost_deletions import missing_offsets
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.source import NO_PARTITION, IngestPlan, OffsetRange, SourceIdentity, SourceLog
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.storage.keys import are_among
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.versions import latest_by_offset

if TYPE_CHECKING:
    from keptlog.engine.ingest_tasks import Part
    from keptlog.ingest.plans import PlannedTopic
    from keptlog.ingest.source import Source
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore


_LOOKS_BEHIND = 10
"""Each looks through what was written during the one before, so they soon take no longer than a moment."""


@dataclass(frozen=True, slots=True)
class _There:
    """What of a log is at its source."""

    from_offset: int
    end_offset: int
    there: PresentOffsets
    broken: list[str]
    """What was left out, and may hold anything."""
    has_unfit: bool
    """Whether there are whole records that no table can hold."""


@dataclass
class Reconciliation:
    """What is gone at a source, by topic-partition: key to the offset that it has here."""

    store: LogStore
    jobs: Jobs
    since_ms: int
    """A time before anything was compared."""
    gone: dict[TopicPartition, dict[bytes, int]] = field(default_factory=dict)
    failed: dict[TopicPartition, KeptlogError] = field(default_factory=dict)
    broken: dict[TopicPartition, list[str]] = field(default_factory=lambda: defaultdict(list))
    """What is broken at the source before the position, and was left out; and what is missing there, wherever."""
    unfit: set[TopicPartition] = field(default_factory=set)
    """The logs that have records before the position which no table can hold."""

    def look(self, source: Source, topics: Sequence[PlannedTopic]) -> None:
        """Compare all logs that were read before with all that is there. One that can't be compared fails alone."""
        for topic in topics:
            for partition, why in topic.lacking.items():
                self.broken[TopicPartition(topic.plan.topic, partition)].append(why)
        for name, found in self._compared(source, [_behind(topic) for topic in topics]).items():
            if isinstance(found, KeptlogError):
                self.failed[name] = found
                continue
            self.broken[name] += found.broken
            if found.has_unfit:
                self.unfit.add(name)
            try:
                self.gone[name] = self._gone(name, found.from_offset, found.end_offset, found.there)
            except KeptlogError as error:
                self.failed[name] = error

    def _compared(self, source: Source, plans: Sequence[IngestPlan]) -> dict[TopicPartition, _There | KeptlogError]:
        """What is there in the ranges of these plans, or why that can't be told."""
        cut = source.cut(plans, self.jobs.cores)
        parts = [part for each in cut for part in each]
        tasks = [PresentTask(part) for part in parts]
        doing = f"comparing with {counted(len(parts), 'part')} of the source"
        outcomes = run_each(self.jobs, tasks, [part.weight for part in parts], doing) if tasks else []
        of_log: dict[TopicPartition, list[tuple[Part, dict[str, Any] | KeptlogError]]] = defaultdict(list)
        for part, outcome in zip(parts, outcomes, strict=True):
            of_log[part.topic_partition].append((part, outcome))
        return {name: _together(found) for name, found in of_log.items()}

    def has_lost_more(self, source: Source, plan: IngestPlan, intake: Intake) -> bool:
        """Whether a record is gone by now that would be the latest of its key here, and nothing newer of it is there.

        All is compared for that.

        Raises:
            KeptlogError: it can't be compared, or could not be before.
        """
        name = intake.topic_partition
        if error := self.failed.get(name):
            raise error
        read, known = intake.range, self.gone.get(name, {})
        _, log = self._log_there(source, name)
        start = log.log_start_offset
        if start >= read.end_offset:
            return False
        whole = replace(plan, ranges=(replace(read, from_offset=start),), stopped={})
        found = self._compared(source, [whole])[name]
        if isinstance(found, KeptlogError):
            raise found
        gone = self._gone(name, start, read.from_offset, found.there)
        lost = self._without_new({key: gone[key] for key in gone if key not in known}, intake.segments)
        lost |= self._values_gone(intake.segments, start, found.there)
        return bool(self._without_newer(source, intake, self._without_unfit(source, intake, lost)))

    def _values_gone(self, segments: Sequence[Segment], from_offset: int, there: PresentOffsets) -> set[bytes]:
        """Keys whose latest record that was read has a value and is gone, where the source has not been cut off."""
        tombstones: list[Longs] = [np.empty(0, np.int64)]

        def read() -> Iterator[pa.Table]:
            for segment in segments:
                for table in read_row_groups(self.store.files, segment, ["key", "offset", "value"]):
                    tombstones.append(table.filter(pc.field("value").is_null())["offset"].to_numpy())
                    yield table.select(["key", "offset"])

        latest = latest_by_offset(read())
        offsets: Longs = latest["offset"].to_numpy()
        is_gone = (offsets >= from_offset) & ~there.has(offsets) & ~np.isin(offsets, np.concatenate(tombstones))
        return set(latest["key"].filter(pa.array(is_gone)).to_pylist())

    def completed(self, source: Source, topic: Topic, intake: Intake, now_ms: int) -> Intake:
        """What was read, with the tombstones that are missing in it.

        Raises:
            InvalidConfig: no offset is free for them.
            LogCorrupt: something that was left out may hold newer records of these keys.
            KeptlogError: the log could not be compared or not be read to its end, what lies behind that can't be read,
                or what was staged can't be read or written.
        """
        if error := self.failed.get(intake.topic_partition):
            raise error
        deleted = self._deleted_by_unfit(source, topic, intake)
        gone = self._without_new(self.gone.get(intake.topic_partition, {}), intake.segments) - deleted.keys()
        if gone:
            gone = self._surely_gone(source, intake, gone)
        if not gone and not deleted:
            return intake
        placed = places_for(self.store.files, intake, gone, deleted)
        room, count = len(placed) - len(deleted), len(gone) + len(deleted)
        if room < len(gone):
            kept = self.store.source_of(topic.name).kept
            raise InvalidConfig(_no_room(topic.name, intake, len(gone), room) + erase_again(topic.name, kept))
        tombstones = [Record(offset=at, key=placed[at], value=None, timestamp_ms=now_ms) for at in sorted(placed)]
        segments = Insertion(self.jobs, self.store.files, topic).segments_with(intake, tombstones)
        return replace(intake, segments=segments, reconciled=count)

    def _surely_gone(self, source: Source, intake: Intake, gone: set[bytes]) -> set[bytes]:
        """Those of some keys that nothing hides, as far as it was read and behind it.

        Raises:
            KeptlogError: as above.
        """
        if intake.cut_short_by:
            raise intake.cut_short_by
        if broken := [*self.broken.get(intake.topic_partition, ()), *intake.broken]:
            raise hidden_by(broken[0])
        return self._without_newer(source, intake, self._without_unfit(source, intake, gone))

    def _gone(self, name: TopicPartition, from_offset: int, end_offset: int, there: PresentOffsets) -> dict[bytes, int]:
        """Keys whose latest record here is not there, of those that lie where the source has not been cut off."""
        reader = self.store.reader(name.topic, name.partition)
        gone: dict[bytes, int] = {}
        for log in reader.logs:
            if log.config.strategy.has_versions:
                raise InvalidConfig(
                    f"{name} keeps the latest version of a key (compaction.strategy), its source the latest offset: "
                    "what is gone there does not say what must go here; go on without (--skip-lost)"
                )
            for table in reader.tables(log, from_offset, latest=True, columns=["key", "offset"]):
                offsets = table["offset"].to_numpy()
                is_missing = (offsets < end_offset) & ~there.has(offsets)
                missing = table.filter(pa.array(is_missing)).filter(pc.field("key").is_valid())
                gone |= zip(missing["key"].to_pylist(), missing["offset"].to_pylist(), strict=True)
        return gone

    def _without_new(self, keys: Mapping[bytes, int], segments: Sequence[Segment]) -> set[bytes]:
        """Keys of which nothing was read behind an offset."""
        left = set(keys)
        for segment in segments:
            for table in read_row_groups(self.store.files, segment, ["key", "offset"]) if left else ():
                found = table.filter(are_among(table["key"], pa.chunked_array([list(left)], pa.binary())))
                pairs = zip(found["key"].to_pylist(), found["offset"].to_pylist(), strict=True)
                left -= {key for key, offset in pairs if offset > keys[key]}
        return left

    def _deleted_by_unfit(self, source: Source, topic: Topic, intake: Intake) -> dict[bytes, int]:
        """Keys whose newest record among what was read is a tombstone that no table can hold, to its offset."""
        if not intake.unfit or topic.config.strategy.has_versions:
            return {}
        name, start = intake.topic_partition, intake.range.from_offset
        identity, _ = self._log_there(source, name)
        read = OffsetRange(name.partition, start, start, intake.range.end_offset)
        plan = IngestPlan(name.topic, identity, name.partition + 1, (read,))
        doing = f"looking for tombstones of {name} that no table can hold"
        offsets = deleted_among(self._looked(source, plan, UnfitTombstonesTask, doing))
        newest = self._without_unfit(source, intake, self._without_new(offsets, intake.segments))
        return {key: offsets[key] for key in newest}

    def _without_unfit(self, source: Source, intake: Intake, keys: set[bytes]) -> set[bytes]:
        """Keys that no value keeps alive there which only no table can hold, up to where it was read."""
        name, end_offset = intake.topic_partition, intake.range.end_offset
        if not keys or not (intake.unfit or name in self.unfit):
            return keys
        identity, log = self._log_there(source, name)
        start = log.log_start_offset
        if start >= end_offset:
            return keys
        read = OffsetRange(name.partition, start, start, end_offset)
        plan = IngestPlan(name.topic, identity, name.partition + 1, (read,))
        wanted = sorted(keys)
        return keys - alive_among(wanted, self._looked_for(source, plan, wanted, "records that no table can hold"))

    def _without_newer(self, source: Source, intake: Intake, keys: set[bytes]) -> set[bytes]:
        """Keys of which nothing lies behind what was read, as far as the source has come by now.

        None if its beginning has come past what was read: what was removed there was deleted by nobody.
        """
        name, end_offset = intake.topic_partition, intake.range.end_offset
        left = set(keys)
        for _ in range(0 if source.is_copy else _LOOKS_BEHIND):
            if not left:
                break
            identity, log = self._log_there(source, name)
            if log.log_start_offset > end_offset:
                return set()
            if log.end_offset <= end_offset:
                break
            stretch = OffsetRange(name.partition, end_offset, end_offset, log.end_offset)
            plan = IngestPlan(name.topic, identity, name.partition + 1, (stretch,))
            found, records = self._found(source, plan, sorted(left))
            left -= found
            if not missing_offsets(stretch, records):
                break
            end_offset = log.end_offset
        return left

    def _log_there(self, source: Source, name: TopicPartition) -> tuple[SourceIdentity, SourceLog]:
        """A log as it is at its source by now.

        Raises:
            KeptlogError: it can't be looked at.
        """
        survey = source.survey({name.topic: self.store.source_of(name.topic)})
        if error := survey.why_unseen(name.topic) or survey.failed.get(str(name)):
            raise error
        for topic in survey.topics:
            for log in topic.there.logs:
                if TopicPartition(topic.topic, log.partition) == name:
                    return topic.there.source, log
        raise InvalidConfig(NO_PARTITION)

    def _found(self, source: Source, plan: IngestPlan, keys: Sequence[bytes]) -> tuple[set[bytes], int]:
        """Which of these keys are in what a plan reads, and how many records there are."""
        outcomes = list(self._looked_for(source, plan, keys, "what was written meanwhile"))
        found = alive_among(keys, outcomes)
        records = 0
        for outcome in outcomes:
            if broken := without_unfit(outcome["skipped"], outcome["unfit"]):
                raise hidden_by(broken[0])
            found.update(keys[index] for index in outcome["found"])
            records += outcome["records"]
        return found, records

    def _looked_for(
        self, source: Source, plan: IngestPlan, keys: Sequence[bytes], where: str
    ) -> Iterator[dict[str, Any]]:
        """What is found of these keys in what a plan reads, part by part."""
        doing = f"looking for {counted(len(keys), 'key')} of {plan.topic} in {where}"
        return self._looked(source, plan, lambda part: PresentKeysTask(part, tuple(keys)), doing)

    def _looked(
        self, source: Source, plan: IngestPlan, task: Callable[[Part], Task], doing: str
    ) -> Iterator[dict[str, Any]]:
        """What a task for each part of what a plan reads has found."""
        parts = [part for each in source.cut([plan], self.jobs.cores) for part in each]
        for outcome in run_each(self.jobs, [task(part) for part in parts], [part.weight for part in parts], doing):
            if isinstance(outcome, KeptlogError):
                raise outcome
            yield outcome


def _together(found: Sequence[tuple[Part, dict[str, Any] | KeptlogError]]) -> _There | KeptlogError:
    """What was found in the parts of one log, or why one of them can't be read."""
    results: list[dict[str, Any]] = []
    for _, outcome in found:
        if isinstance(outcome, KeptlogError):
            return outcome
        results.append(outcome)
    broken = [each for result in results for each in without_unfit(result["skipped"], result["unfit"])]
    has_unfit = any(result["unfit"] for result in results)
    there = PresentOffsets.found_by(results)
    return _There(found[0][0].from_offset, found[-1][0].end_offset, there, broken, has_unfit)


def _behind(topic: PlannedTopic) -> IngestPlan:
    """What of a topic was read before, as far as it is still there, to be read again."""
    ranges = tuple(
        OffsetRange(each.partition, each.position, start, each.position)
        for each in topic.plan.ranges
        if each.position is not None and (start := topic.log_starts.get(each.partition, 0)) < each.position
    )
    return replace(topic.plan, ranges=ranges, stopped={})


def _no_room(topic: str, intake: Intake, gone: int, free: int) -> str:
    there = f"{counted(gone, 'key')} {'is' if gone == 1 else 'are'} gone at its source"
    return (
        f"{there}, and behind offset {intake.range.position} no more than {counted(free, 'offset')} there could have "
        f"held their tombstones: deletions were missed before that; ingest it into another topic "
        f"(--into {topic}-again), or go on without (--skip-lost)"
    )
