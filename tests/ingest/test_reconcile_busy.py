"""A source that is written to and cleaned while it is compared: its live keys stay, its deleted keys go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from keptlog.engine.ingest_tasks import Skip
from keptlog.errors import IngestStopped, KeptlogError, StalePlan, StorageUnavailable
from keptlog.ingest import ingest_pass
from keptlog.ingest.source import Survey
from keptlog.log.record import Record
from keptlog.log.source import IngestPlan, StoredSource
from keptlog.table.metadata.state import read_source
from tests.ingest.test_reconcile import DAY_MS, CompactedTopic, KeyedPart, Scene
from tests.logs import open_store

Meanwhile = Callable[[], None]


@dataclass(frozen=True)
class PartOfThen(KeyedPart):
    """What is there once it is read."""

    def read(self, skip: Skip) -> Iterator[pa.Table]:
        if self.from_offset in _sources[0].before_part:
            _sources[0].before_part.pop(self.from_offset)()
        if self.from_offset < _sources[0].log_start:
            raise StalePlan(f"{self.topic_partition} does not have offset {self.from_offset} any more")
        there = _sources[0].records
        records = tuple(record for record in there if self.from_offset <= record.offset < self.end_offset)
        return KeyedPart(self.topic_partition, self.from_offset, self.end_offset, records, False).read(skip)


_sources: list[BusyTopic] = []
"""Parts are pickled, and the source is not to be."""


@dataclass
class BusyTopic(CompactedTopic):
    """One log to which something happens."""

    before_the_look: Meanwhile | None = None
    after_the_look: Meanwhile | None = None
    failing: KeptlogError | None = None
    """What the second survey says."""
    surveys: int = 0
    before_part: dict[int, Meanwhile] = field(default_factory=dict)
    """What happens before the part that begins at an offset is read."""

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        self.surveys += 1
        if self.surveys % 2 or not self.failing:
            return super().survey(stored)
        return Survey((), dict.fromkeys(stored, self.failing))

    def cut(self, plans: Sequence[IngestPlan], cores: int) -> list[list[KeyedPart]]:
        _sources[:] = [self]
        is_look = all(each.end_offset == each.position for plan in plans for each in plan.ranges)
        if happens := self.before_the_look if is_look else self.after_the_look:
            happens()
        parts = super().cut(plans, cores)
        return [[PartOfThen(p.topic_partition, p.from_offset, p.end_offset, (), False) for p in each] for each in parts]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(open_store(tmp_path))


@pytest.fixture
def source(scene: Scene) -> BusyTopic:
    source = BusyTopic()
    source.put(ada="1", bob="1", cat="1")
    assert not scene.bring(source).failed
    source.surveys = 0
    return source


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_key_that_gets_a_new_value_while_its_old_one_is_compared_stays(
    scene: Scene, source: BusyTopic, is_behind: bool
) -> None:
    if is_behind:
        source.put(dan="1", bob="2", eve="1")
        source.clean(drop_tombstones=False)

    def happens() -> None:
        source.put(cat="2", fay="1")
        source.clean(drop_tombstones=False)

    source.before_the_look = happens
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [0]
    assert scene.state() == source.state()
    assert scene.store.source_of("t").as_of_ms == {0: scene.now_ms}


def test_where_comparing_takes_longer_than_tombstones_stay_nothing_lands_and_it_says_why(
    scene: Scene, source: BusyTopic
) -> None:
    source.put(dan="1", ada=None, eve="1")

    def happens() -> None:
        source.clean(drop_tombstones=True)
        scene.now_ms += DAY_MS + 1

    source.after_the_look = happens
    result = scene.bring(source, reconcile=True)
    assert not result.committed
    [(name, error)] = result.failed.items()
    assert (name, type(error)) == ("t-0", IngestStopped)
    assert str(error).startswith(
        "to compare it with all that is there, and to read what is new, took longer than delete.retention.ms=86400000 "
        "at its source, offsets are missing in what is new, and keys that were there have gone meanwhile"
    )
    source.after_the_look = None
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state() == {"bob": "1", "cat": "1", "dan": "1", "eve": "1"}


def test_what_lacks_offsets_lands_however_long_it_took_if_no_more_keys_have_gone(
    scene: Scene, source: BusyTopic
) -> None:
    """A topic whose tombstones go at once could never be compared otherwise."""
    source.put(dan="1", ada=None, eve="1")
    source.clean(drop_tombstones=True)

    def happens() -> None:
        scene.now_ms += DAY_MS + 1

    source.after_the_look = happens
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    assert scene.state() == source.state() == {"bob": "1", "cat": "1", "dan": "1", "eve": "1"}


def test_a_deletion_of_what_is_new_that_was_missed_stops_it_too(scene: Scene, source: BusyTopic) -> None:
    """A key comes and goes in what is new, and only its value is read."""
    source.put(dan="1", eve="1", fay="1", gil="1")
    source.put(dan=None, hal="1")

    def happens() -> None:
        source.clean(drop_tombstones=True)
        scene.now_ms += DAY_MS + 1

    source.before_part[7] = happens
    result = scene.bring(source, reconcile=True)
    assert not result.committed
    assert "keys that were there have gone meanwhile" in str(result.failed["t-0"])
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()


def test_what_a_tombstone_that_was_read_deletes_may_go_while_it_is_read(scene: Scene, source: BusyTopic) -> None:
    source.put(dan="1")
    source.put(dan="2", ada=None, eve="1", fay="1")
    source.clean(drop_tombstones=False)
    source.records.insert(0, Record(0, b"ada", b"1", scene.now_ms))  # where the cleaner has not come to yet

    def happens() -> None:
        source.clean(drop_tombstones=False)
        scene.now_ms += DAY_MS + 1

    source.before_part[7] = happens
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state() == {"bob": "1", "cat": "1", "dan": "2", "eve": "1", "fay": "1"}


def test_a_second_comparison_that_fails_stops_its_topic_partition(scene: Scene, source: BusyTopic) -> None:
    source.put(dan="1", ada=None, eve="1")
    source.clean(drop_tombstones=True)
    busy = StorageUnavailable("the broker is away")

    def is_away() -> None:
        raise busy

    def happens() -> None:
        scene.now_ms += DAY_MS + 1
        source.after_the_look = is_away

    source.after_the_look = happens
    result = scene.bring(source, reconcile=True)
    assert (result.failed, result.committed) == ({"t-0": busy}, ())


def test_what_lacks_no_offset_lands_however_long_it_took(scene: Scene, source: BusyTopic) -> None:
    source.put(dan="1", ada=None, eve="1")

    def happens() -> None:
        scene.now_ms += 9 * DAY_MS

    source.after_the_look = happens
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()


def test_a_source_that_can_not_be_asked_again_brings_nothing(scene: Scene, source: BusyTopic) -> None:
    source.put(dan="1")
    source.failing = StorageUnavailable("it is away")
    result = scene.bring(source, reconcile=True)
    assert (result.failed, result.committed) == ({"t": source.failing}, ())
    source.failing = None
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()


def test_a_topic_here_that_can_not_be_read_again_gets_nothing(
    scene: Scene, source: BusyTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to an earlier end a key looks as if it were gone that has only got a new value."""
    source.put(dan="1", bob="2", eve="1")
    source.put(dan="2")
    source.clean(drop_tombstones=False)
    here, busy, really = scene.state(), StorageUnavailable("catalog busy"), read_source

    def happens() -> None:
        source.before_the_look = None
        source.put(cat="2", fay="1")
        source.clean(drop_tombstones=False)
        monkeypatch.setattr(ingest_pass, "read_source", busy_once)

    def busy_once(_topic: str, _properties: Mapping[str, str]) -> StoredSource:
        monkeypatch.setattr(ingest_pass, "read_source", really)
        raise busy

    source.before_the_look = happens
    result = scene.bring(source, reconcile=True)
    assert (result.failed, result.committed, scene.state()) == ({"t": busy}, (), here)
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()
