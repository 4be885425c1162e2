"""Random histories of a topic, on the real table with the real kernels, step by step against the specification.

Two partitions, so that one commit moves several logs. The sizes of segments and the dirty ratio are kept out of it: the
specification knows neither. Besides the plain passes there are the unplain ones: a clean that is staged and committed
later, when it may be stale by then; a commit that is sent again; a purge that sweeps what was staged; a restart;
settings altered while a clean is under way; retention and deletions in between; cleans in legs; cleans that fail and
leave their mark. In some histories the records are not appended but ingested, at a source's offsets with its gaps; and
there all records of a key may be dropped.

Which segments are old is asked of the pure rule, for the specification has no segments; what it leads to is compared.
A failure prints its history as a story (``note``) and how to replay it. ``make test`` makes always the same histories,
``make soak`` new ones.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from keptlog.errors import StalePlan
from keptlog.home import new_id
from keptlog.log.plan import CleanPlan
from keptlog.log.record import NewRecord, Record
from keptlog.log.reference import ReferenceLog, latest_values
from keptlog.log.result import RewriteResult
from keptlog.log.steps import Expire
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Uncleanable, after_failure
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer
from keptlog.table.changes.mark import Failure
from tests.in_process import in_process_engine
from tests.logs import RealTwin, ReferenceTwin, carry_out, open_store
from tests.model import invariants
from tests.model.dropping import Dropping
from tests.model.histories import (
    BACKOFF,
    BEGINNING_MS,
    DAY_MS,
    GAPS,
    PARTITIONS,
    PAUSES_MS,
    RECORDS,
    SETTINGS,
    SOME_PARTITIONS,
    STRATEGIES,
    TOPIC,
    as_at_a_source,
)
from tests.model.in_legs import CleaningInLegs
from tests.profiles import examples, is_soak


@dataclass(frozen=True)
class Staged:
    """A clean that was carried out up to its commit, and what the specification says it leads to."""

    plan: CleanPlan
    outcomes: Sequence[RewriteResult]
    run_id: str
    expected: dict[int, ReferenceLog]
    """The logs as they would be if it were committed at once."""
    batches: dict[int, int]
    """How many batches were not cleaned yet when it was planned."""


class LogMachine(Dropping, CleaningInLegs, RuleBasedStateMachine):
    """Each rule does one thing to the table and to the specification."""

    staged: Bundle[Staged] = Bundle("staged")

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="keptlog-model-"))
        self.now_ms = BEGINNING_MS
        self.expected = {partition: ReferenceTwin() for partition in PARTITIONS}
        self.written: dict[int, list[Record]] = {partition: [] for partition in PARTITIONS}
        self.seen: dict[int, list[Record]] = {partition: [] for partition in PARTITIONS}
        self.changes = dict.fromkeys(PARTITIONS, 0)
        self.starts = dict.fromkeys(PARTITIONS, 0)
        self.gaps: Iterator[int] | None = None
        self.marks: dict[int, Uncleanable | None] = dict.fromkeys(PARTITIONS)
        self.planned_at: dict[str, dict[int, int]] = {}
        self.committed: set[tuple[str, int]] = set()
        self.swept: set[str] = set()
        self._open()

    def teardown(self) -> None:
        shutil.rmtree(self.home)

    @property
    def is_compacted(self) -> bool:
        return self.expected[0].settings.get("cleanup.policy") != "delete"

    @initialize(settings=SETTINGS, strategy=STRATEGIES, gaps=GAPS)
    def create(self, settings: dict[str, str], strategy: dict[str, str], gaps: list[int] | None) -> None:
        own = {"min.cleanable.dirty.ratio": "1", **settings, **strategy}
        note(f"create {own}, gaps {gaps}")
        self.gaps = itertools.cycle(gaps) if gaps else None
        self.store.create_topic(TOPIC, len(PARTITIONS), own)
        for twin in self.expected.values():
            twin.create(own)

    @rule(records=RECORDS, then_ms=PAUSES_MS)
    def append(self, records: list[NewRecord], then_ms: int) -> None:
        batch = [self._dated(record) for record in records]
        note(f"append {batch}")
        if not self.gaps:
            self.store.append(TOPIC, batch, new_id(), self.now_ms)
        for partition, twin in self.expected.items():
            here = [record for record in batch if record.partition == partition]
            if self.gaps:
                self._ingest(partition, here, self.gaps)
            else:
                twin.append(here, self.now_ms)
            if here:
                self.written[partition] += twin.log.batches[-1]
        self.clock(then_ms)

    def _ingest(self, partition: int, records: list[NewRecord], gaps: Iterator[int]) -> None:
        log, is_first = self.expected[partition].log, self.store.source_of(TOPIC).positions[partition] is None
        from_offset = log.log_end_offset + (next(gaps) if is_first else 0)
        if is_first:
            self.starts[partition] = log.first_dirty_offset = from_offset
        placed, end_offset = as_at_a_source(records, from_offset, gaps)
        self._twin(partition).ingest(placed, from_offset, end_offset)
        log.ingest(placed, end_offset)

    @rule(time_ms=PAUSES_MS)
    def clock(self, time_ms: int) -> None:
        note(f"clock +{time_ms} ms")
        self.now_ms += time_ms

    @rule(settings=SETTINGS)
    def alter(self, settings: dict[str, str]) -> None:
        note(f"alter {settings}")
        self.store.alter_topic(TOPIC, settings)
        for twin in self.expected.values():
            twin.alter(settings)

    @rule(target=staged, partitions=SOME_PARTITIONS)
    def stage(self, partitions: tuple[int, ...]) -> Staged:
        """A clean up to its commit."""
        return self._stage(partitions)

    def _stage(self, partitions: tuple[int, ...]) -> Staged:
        names = [f"{TOPIC}-{partition}" for partition in partitions]
        plan = self.cleaner.plan(names, now_ms=self.now_ms, requested=True)
        run_id = new_id()
        note(f"stage {run_id}: {[(str(step.topic_partition), str(step.kind)) for step in plan.steps]}")
        expected = {}
        for partition in partitions:
            log = self._as_it_is_now(partition)
            if self.is_compacted and (log.clean(self.now_ms) or log.expire(self.now_ms)):
                expected[partition] = log
        assert {step.topic_partition.partition for step in plan.steps} == set(expected), plan
        self.planned_at[run_id] = dict(self.changes)
        batches = {partition: len(self.expected[partition].log.batches) for partition in expected}
        return Staged(plan, self.cleaner.rewrite(plan.steps, run_id), run_id, expected, batches)

    @rule(run=staged)
    def commit(self, run: Staged) -> None:
        """At once, late, or again: it lands in the logs that nothing else has changed since it was planned."""
        new = {partition for partition in run.expected if (run.run_id, partition) not in self.committed}
        result = self.result = self.cleaner.commit(Pass(run.run_id, run.plan, tuple(run.outcomes)))
        note(f"commit {run.run_id}: new {new}, failed {result.failed}")
        assert all(isinstance(error, StalePlan) for error in result.failed.values()), result.failed
        landed = {partition for partition in new if self._may_land(run, partition)}
        assert {partition for partition in new if f"{TOPIC}-{partition}" in result.failed} == new - landed, result
        self._landed(run, landed)

    def _may_land(self, run: Staged, partition: int) -> bool:
        is_fresh = self.planned_at[run.run_id][partition] == self.changes[partition]
        of_log = [each for each in run.outcomes if each.step.topic_partition.partition == partition]
        is_swept = run.run_id in self.swept and any(outcome.staged_paths for outcome in of_log)
        return is_fresh and self.is_compacted and not is_swept and not self._is_protected(run, partition)

    @rule(partitions=SOME_PARTITIONS)
    def clean(self, partitions: tuple[int, ...]) -> None:
        """The whole pass, and that it leaves nothing to do."""
        run = self._stage(partitions)
        before = deepcopy(self.seen)
        first_uncleanable = {step.topic_partition.partition: step.end_offset for step in run.plan.steps}
        self.commit(run)
        for partition, offset in first_uncleanable.items():
            after = self._twin(partition).records()
            invariants.g4_the_uncleanable_section_is_untouched(before[partition], after, offset)
        names = [f"{TOPIC}-{partition}" for partition in partitions]
        invariants.g6_cleaning_again_changes_nothing(self.cleaner.plan(names, now_ms=self.now_ms, requested=True))

    @rule(records=RECORDS, partitions=SOME_PARTITIONS)
    def append_and_clean(self, records: list[NewRecord], partitions: tuple[int, ...]) -> None:
        """What happens most often in a topic's life."""
        self.append(records, DAY_MS + 1)
        self.clean(partitions)

    @rule(records=RECORDS, meanwhile=RECORDS)
    def append_during_a_clean(self, records: list[NewRecord], meanwhile: list[NewRecord]) -> None:
        """What comes after the plan was made is behind its end, and disturbs nothing."""
        self.append(records, DAY_MS + 1)
        run = self._stage(PARTITIONS)
        self.append(meanwhile, 1)
        self.commit(run)

    @rule(records=RECORDS)
    def two_cleans_at_once(self, records: list[NewRecord]) -> None:
        """Both are planned from the same log; the first commit wins, whichever it is."""
        self.append(records, DAY_MS + 1)
        one, other = self._stage(PARTITIONS), self._stage(PARTITIONS)
        self.commit(other)
        self.commit(one)
        self.commit(other)

    @rule()
    def expire(self) -> None:
        plan = self.cleaner.plan(now_ms=self.now_ms)
        note(f"expire {[str(step.topic_partition) for step in plan.steps if isinstance(step, Expire)]}")
        result = carry_out(self.cleaner, plan, kinds=[Expire])
        assert not result.failed
        due = {step.topic_partition.partition: step.kind for step in plan.steps}
        for partition, twin in self.expected.items():
            mark = self.marks[partition]
            if due.get(partition) == "expire":
                twin.log = self._as_it_is_now(partition)
                assert twin.log.expire(self.now_ms)
                self._changed(partition)
            elif due.get(partition) is None and self.is_compacted and not (mark and mark.is_waiting(self.now_ms)):
                assert not self._as_it_is_now(partition).expire(self.now_ms)

    @rule(partition=st.sampled_from(PARTITIONS))
    def fail(self, partition: int) -> None:
        """A clean that fails leaves its mark, and is left alone for a while."""
        note(f"a clean of {partition} fails")
        log = self.store.logs(TOPIC)[partition]
        failure = Failure(log.topic_partition, "it failed", log.checkpoint)
        self.store.mark_uncleanable(TOPIC, [failure], self.now_ms, BACKOFF)
        self.marks[partition] = after_failure(self.marks[partition], "it failed", self.now_ms, BACKOFF)
        steps = self.cleaner.plan([f"{TOPIC}-{partition}"], now_ms=self.now_ms).steps
        assert not steps, steps

    @rule(records=RECORDS, settings=SETTINGS)
    def alter_during_a_clean(self, records: list[NewRecord], settings: dict[str, str]) -> None:
        self.append(records, DAY_MS + 1)
        run = self._stage(PARTITIONS)
        self.alter(settings)
        self.commit(run)

    @rule()
    def retain(self) -> None:
        result = Retainer(self.store).retain(named_logs(self.store, [TOPIC]), new_id(), now_ms=self.now_ms)
        assert not result.failed
        note(f"retain {[(step.topic_partition.partition, step.new_log_start_offset) for step in result.committed]}")
        settings = self.expected[0].settings
        assert "delete" in settings["cleanup.policy"] or not result.committed
        for step in result.committed:
            partition, start = step.topic_partition.partition, step.new_log_start_offset
            assert start is not None
            removed = [record for record in self.expected[partition].records() if record.offset < start]
            oldest_ms = self.now_ms - int(settings["retention.ms"])
            assert removed
            assert all(record.timestamp_ms < oldest_ms for record in removed), removed
            self._begins_at(partition, start)

    @rule(partition=st.sampled_from(PARTITIONS), batches=st.integers(0, 3))
    def delete_records(self, partition: int, batches: int) -> None:
        """Before a dirty batch: the metrics of a segment that is cut would count what the specification has no more."""
        log = self.expected[partition].log
        bases = [batch[0].offset for batch in log.batches] + [log.log_end_offset]
        start = bases[min(batches, len(bases) - 1)]
        note(f"delete the records of {partition} before {start}")
        self.store.delete_records(TopicPartition(TOPIC, partition), start, new_id())
        if start != self.starts[partition]:
            self._begins_at(partition, start)

    @rule(sweeps=st.booleans())
    def purge(self, sweeps: bool) -> None:
        """``sweeps`` is a purge with so short a grace that it takes staged files for a dead run's."""
        note(f"purge, sweeping staged files: {sweeps}")
        self.store.purge(TOPIC, self.now_ms, 0 if sweeps else 100 * 365 * DAY_MS)
        if sweeps:
            self.swept.update(self.planned_at)
            logs = self.store.logs(TOPIC)
            live = {segment.path for log in logs for segment in log.segments}
            live |= {log.watermarks_path for log in logs if log.watermarks_path}
            stored = {file.path for file in self.store.files.list(self.store.data_location(TOPIC))}
            assert stored == live

    @rule()
    def restart(self) -> None:
        note("restart")
        self._open()

    @rule(offset=st.integers(0, 30))
    def read(self, offset: int) -> None:
        """Every offset is a valid position, also that of a record which is gone."""
        for partition, twin in self.expected.items():
            found = [record for _, record in self.store.read(TOPIC, partition, offset)]
            assert found == [record for record in twin.records() if record.offset >= offset]
            latest = {record.key: record.value for _, record in self.store.read(TOPIC, partition, latest=True)}
            assert latest == latest_values(twin.records(), twin.log.config, twin.log.remembered)

    @invariant()
    @precondition(lambda self: bool(self.expected[0].settings))
    def is_as_specified(self) -> None:
        for partition, twin in self.expected.items():
            real = self._twin(partition)
            log = real.records()
            start, rank = self.starts[partition], twin.log.config.rank
            assert real.log.log_start_offset == start
            assert real.log.uncleanable == self.marks[partition]
            not_deleted = [record for record in self.written[partition] if record.offset >= start]
            invariants.g1_the_latest_record_of_every_key_is_kept(not_deleted, log, rank)
            invariants.g2_order_never_changes(log)
            invariants.g3_an_offset_never_changes(self.written[partition], log)
            invariants.g5_a_tombstone_stays_until_its_horizon(
                self.written[partition],
                [record for record in self.seen[partition] if record.offset >= start],
                log,
                self.now_ms,
                rank,
            )
            assert log == twin.records()
            if self.is_compacted:
                assert real.positions(self.now_ms) == twin.positions(self.now_ms)
            self.seen[partition] = log

    def _as_it_is_now(self, partition: int) -> ReferenceLog:
        """The specification's log, for a pass to be tried on."""
        return deepcopy(self.expected[partition].log)

    def _open(self) -> None:
        self.store = open_store(self.home)
        self.cleaner = Cleaner(self.store, in_process_engine(self.store.files))

    def _dated(self, record: NewRecord) -> NewRecord:
        """A drawn record as of now; a compacted topic gets no record without a key."""
        key = b"k" if record.key is None and self.is_compacted else record.key
        return replace(record, key=key, timestamp_ms=max(self.now_ms - record.timestamp_ms, -1))

    def _twin(self, partition: int) -> RealTwin:
        return RealTwin(self.store, self.cleaner.engine, TOPIC, partition)

    def _landed(self, run: Staged, partitions: Collection[int]) -> None:
        """What was planned of these holds, with the batches behind it that came since."""
        for partition in partitions:
            self.committed.add((run.run_id, partition))
            planned, twin = run.expected[partition], self.expected[partition]
            since = twin.log.batches[run.batches[partition] :]
            twin.log = replace(
                planned,
                config=twin.log.config,
                clean_records=list(planned.clean_records),
                batches=planned.batches + since,
                first_dirty_offset=planned.first_dirty_offset,
                log_end_offset=twin.log.log_end_offset,
            )
            self._changed(partition)

    def _changed(self, partition: int) -> None:
        """A commit has healed the log, and made plans of it stale."""
        self.changes[partition] += 1
        self.marks[partition] = None

    def _begins_at(self, partition: int, start: int) -> None:
        """The head of the log is gone; whole segments went, or none."""
        log = self.expected[partition].log
        log.clean_records = [record for record in log.clean_records if record.offset >= start]
        log.batches = [batch for batch in log.batches if batch[0].offset >= start]
        log.first_dirty_offset = max(log.first_dirty_offset, start)
        self.starts[partition] = start
        self.changes[partition] += 1
        if not log.batches:
            self.marks[partition] = None

    def _is_protected(self, run: Staged, partition: int) -> bool:
        """Whether the settings as they are now forbid what was cleaned."""
        cleaned = run.batches[partition] - len(run.expected[partition].batches)
        return self.expected[partition].log.cleanable_batches(run.plan.now_ms) < cleaned


TestLog = pytest.mark.timeout(3600)(LogMachine.TestCase)  # a failure takes some minutes to be shrunk
TestLog.settings = settings(
    max_examples=examples(20),
    stateful_step_count=25,
    deadline=None,
    derandomize=not is_soak(),
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
