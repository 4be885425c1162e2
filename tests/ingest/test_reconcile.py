"""What was deleted at the source while nobody looked is deleted here too, once somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from keptlog.engine.ingest_tasks import Skip
from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.result import IngestResult
from keptlog.ingest.source import Survey, TopicSurvey
from keptlog.log.record import Record
from keptlog.log.source import IngestPlan, OffsetRange, SourceIdentity, SourceLog, SourceTopic, StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.verify import verify_log
from keptlog.storage.schema import to_arrow
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.directories import COMPACT
from tests.logs import open_store

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000


@dataclass(frozen=True)
class KeyedPart:
    """Some of what is left of a log."""

    topic_partition: TopicPartition
    from_offset: int
    end_offset: int
    records: tuple[Record, ...]
    is_broken: bool

    @property
    def weight(self) -> int:
        return self.end_offset - self.from_offset

    def read(self, _skip: Skip) -> Iterator[pa.Table]:
        if self.is_broken:
            raise LogCorrupt(f"{self.topic_partition} is broken")
        for record in self.records:
            yield to_arrow(self.topic_partition.partition, [record])


@dataclass
class CompactedTopic:
    """One log that its broker appends to and cleans; a source of the topic ``t``."""

    records: list[Record] = field(default_factory=list)
    end: int = 0
    log_start: int = 0
    part_offsets: int = 4
    broken: Collection[int] = ()
    """Beginnings of parts that can't be read."""
    topics: Sequence[str] = ("t",)

    def put(self, **values: str | None) -> None:
        for key, value in values.items():
            self.records.append(Record(self.end, key.encode(), None if value is None else value.encode(), NOW_MS))
            self.end += 1

    def clean(self, *, drop_tombstones: bool) -> None:
        """As a cleaner does that has come to the end, twice and a day apart if tombstones go."""
        latest = {record.key: record.offset for record in self.records}
        kept = [record for record in self.records if latest[record.key] == record.offset]
        self.records = [record for record in kept if record.value or not drop_tombstones]

    def state(self) -> dict[str, str]:
        state = {record.key.decode(): record.value for record in self.records if record.key}
        return {key: value.decode() for key, value in state.items() if value}

    @property
    def is_copy(self) -> bool:
        return False

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        there = SourceTopic(SourceIdentity("t", "id"), (SourceLog(0, self.log_start, self.end),))
        return Survey(tuple(TopicSurvey(name, there, COMPACT) for name in stored), {})

    def ends_of_epochs(
        self, _plans: Sequence[IngestPlan]
    ) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, KeptlogError]]:
        """Nobody leads there."""
        return {}, {}

    def cut(self, plans: Sequence[IngestPlan], _cores: int) -> list[list[KeyedPart]]:
        return [[part for each in plan.ranges for part in self._parts(each)] for plan in plans]

    def tombstones_kept_ms(self, _plan: IngestPlan, partitions: Collection[int]) -> dict[int, int | None]:
        return dict.fromkeys(partitions, DAY_MS)

    def confirm(self, plan: IngestPlan) -> None:
        """It stays what it is."""

    def _parts(self, read: OffsetRange) -> Iterator[KeyedPart]:
        for low in range(read.from_offset, read.end_offset, self.part_offsets):
            high = min(low + self.part_offsets, read.end_offset)
            records = tuple(record for record in self.records if low <= record.offset < high)
            yield KeyedPart(TopicPartition("t", 0), low, high, records, low in self.broken)


@dataclass
class Scene:
    """The topic here."""

    store: LogStore
    now_ms: int = NOW_MS
    runs: int = 0

    def bring(self, source: CompactedTopic, *, skip_lost: bool = False, reconcile: bool = False) -> IngestResult:
        self.runs += 1
        self.now_ms += 1
        ingest = Ingest(self.store, in_process_engine(self.store.files), lambda: self.now_ms)
        plans = ingest.plan(source, skip_lost=skip_lost, reconcile=reconcile)
        return ingest.carry_out(plans, f"run-{self.runs}")

    def state(self) -> dict[str, str]:
        reader = self.store.reader("t")
        return {r.key.decode(): r.value.decode() for _, r in reader.records(0, latest=True) if r.key and r.value}

    def records(self) -> list[Record]:
        return [record for _, record in self.store.read("t")]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(open_store(tmp_path))


def lost(scene: Scene) -> CompactedTopic:
    """A topic of which one deletion is gone before it was read: that of ada, at 5."""
    source = CompactedTopic()
    source.put(ada="1", bob="1", cat="1")
    source.put(bob="2")
    assert not scene.bring(source).failed
    source.put(dan="1", ada=None, cat="2", eve="1")
    source.clean(drop_tombstones=True)
    scene.now_ms += 2 * DAY_MS
    return source


def test_a_key_that_is_gone_there_gets_a_tombstone_where_the_lost_one_stood(scene: Scene) -> None:
    source = lost(scene)
    assert "--reconcile" in str(scene.bring(source).failed["t-0"])
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert scene.state() == source.state() == {"bob": "2", "cat": "2", "dan": "1", "eve": "1"}
    [intake] = result.committed
    assert (intake.reconciled, intake.tombstones, intake.records) == (1, 1, 4)
    [tombstone] = [record for record in scene.records() if record.value is None]
    assert tombstone == Record(5, b"ada", None, scene.now_ms)
    assert [record for record in scene.records() if record.offset >= 4 and record.value] == source.records[1:]
    [log] = scene.store.logs("t")
    assert all(each.passed for each in verify_log(scene.store, log, scene.now_ms))
    assert not scene.bring(source).failed


def test_nothing_is_deleted_that_is_there(scene: Scene) -> None:
    source = CompactedTopic()
    source.put(ada="1", bob="1", cat="1")
    scene.bring(source)
    source.put(bob="2", ada=None, dan=None)
    source.clean(drop_tombstones=False)
    [intake] = scene.bring(source, reconcile=True).committed
    assert intake.reconciled == 0
    assert scene.state() == source.state() == {"bob": "2", "cat": "1"}


def test_what_the_source_has_cut_off_at_its_beginning_stays(scene: Scene) -> None:
    source = CompactedTopic()
    source.put(ada="1", bob="1", cat="1")
    scene.bring(source)
    source.put(bob=None, dan="1", eve="1")
    source.clean(drop_tombstones=True)
    source.records, source.log_start = [r for r in source.records if r.offset >= 1], 1
    [intake] = scene.bring(source, reconcile=True).committed
    assert intake.reconciled == 1
    assert scene.state() == {"ada": "1", "cat": "1", "dan": "1", "eve": "1"}


def test_where_no_offset_is_free_it_says_so_and_changes_nothing(scene: Scene) -> None:
    source = lost(scene)
    scene.bring(source, skip_lost=True)
    before = scene.store.metadata_locations()
    [error] = scene.bring(source, reconcile=True).failed.values()
    assert isinstance(error, InvalidConfig)
    assert "1 key is gone at its source, and behind offset 8 no more than 0 offsets there could" in str(error)
    assert "ingest it into another topic (--into t-again)" in str(error)
    assert scene.store.metadata_locations() == before


def test_a_source_that_can_not_be_read_from_its_beginning_brings_nothing(scene: Scene) -> None:
    source = lost(scene)
    source.broken = [0]
    [error] = scene.bring(source, reconcile=True).failed.values()
    assert isinstance(error, LogCorrupt)
    assert scene.state() == {"ada": "1", "bob": "2", "cat": "1"}


def test_a_key_whose_newer_record_lies_behind_a_part_that_can_not_be_read_is_not_gone(scene: Scene) -> None:
    source = CompactedTopic()
    source.put(ada="1", bob="1", cat="1", dan="1")
    scene.bring(source)
    source.put(eve="1", fay="1", gus="1", hal="1")
    source.put(hal="2", ida="1", ada="2")
    source.clean(drop_tombstones=False)
    source.broken = [8]
    result = scene.bring(source, reconcile=True)
    assert scene.state()["ada"] == "1"
    assert not [record for record in scene.records() if record.value is None]
    assert [type(error) for error in result.failed.values()] == [LogCorrupt]
    source.broken = []
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()


def test_what_lies_before_a_part_that_can_not_be_read_lands_where_nothing_is_gone(scene: Scene) -> None:
    source = CompactedTopic()
    source.put(ada="1", bob="1", cat="1", dan="1")
    scene.bring(source)
    source.put(eve="1", fay="1", ada="2", gus="1", hal="1")
    source.clean(drop_tombstones=False)
    source.broken = [8]
    result = scene.bring(source, reconcile=True)
    assert [(each.range.end_offset, each.reconciled) for each in result.committed] == [(8, 0)]
    assert scene.state()["ada"] == "2"


def test_both_choices_at_once_are_refused(scene: Scene) -> None:
    with pytest.raises(InvalidConfig, match="give one of the two"):
        scene.bring(CompactedTopic(), skip_lost=True, reconcile=True)


@pytest.mark.parametrize("seed", range(16))
def test_after_any_history_the_state_is_that_of_the_source(
    dice: Callable[[int], Random], scene: Scene, seed: int
) -> None:
    chance = dice(seed)
    source = CompactedTopic(part_offsets=chance.randint(1, 7))
    for _ in range(4):
        position = source.end
        for _ in range(chance.randint(1, 12)):
            source.put(**{chance.choice("abcdefgh"): chance.choice([None, str(source.end)])})
        if chance.random() < 0.7:
            source.clean(drop_tombstones=chance.random() < 0.8)
        # Something new is behind what is gone, or its offset would have been no one's.
        source.put(end=str(source.end))
        if chance.random() < 0.5:
            _bring_with_broken_parts(scene, source, chance.randint(position, source.end))
        assert not scene.bring(source, reconcile=True).failed
        assert scene.state() == source.state()
        assert [log.log_end_offset for log in scene.store.logs("t")] == [source.end]
        offsets = [record.offset for record in scene.records()]
        assert offsets == sorted(set(offsets))


def _bring_with_broken_parts(scene: Scene, source: CompactedTopic, from_offset: int) -> None:
    """Nothing is deleted then that is alive there; what lies before them may land."""
    before = _own_tombstones(scene)
    source.broken = range(from_offset, source.end)
    scene.bring(source, reconcile=True)
    source.broken = []
    deleted = {record.key.decode() for record in _own_tombstones(scene) - before if record.key}
    assert not deleted & source.state().keys()


def _own_tombstones(scene: Scene) -> set[Record]:
    """Those that the source never had: they are younger than all of its records."""
    return {record for record in scene.records() if record.timestamp_ms > NOW_MS} if scene.store.topics() else set()
