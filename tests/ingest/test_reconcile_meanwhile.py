"""What is written and cleaned at the source between its last look and the reading costs no key that is alive there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.log.source import IngestPlan
from tests.ingest.directories import COMPACT
from tests.ingest.test_reconcile import DAY_MS, Scene
from tests.ingest.test_reconcile_busy import BusyTopic, Meanwhile
from tests.logs import open_store


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(open_store(tmp_path))


@pytest.fixture
def source(scene: Scene) -> BusyTopic:
    """Dan was deleted before what is new was read, and that is forgotten; cat's value of then is gone there."""
    source = BusyTopic()
    source.put(ada="1", bob="1", cat="1", dan="1")
    assert not scene.bring(source).failed
    source.surveys = 0
    source.put(cat="2", dan=None, eve="1", fay="1")
    source.clean(drop_tombstones=True)
    return source


def each_time(source: BusyTopic, *happenings: Meanwhile) -> None:
    """One after the other happens between a survey and the reading of what it has seen."""
    left = iter(happenings)

    def happens() -> None:
        if happening := next(left, None):
            happening()

    source.after_the_look = happens


def cat_moves_on(source: BusyTopic, value: str) -> Meanwhile:
    def happens() -> None:
        source.put(cat=value)
        source.clean(drop_tombstones=False)

    return happens


@pytest.mark.parametrize("times", [1, 2, 4])
def test_a_key_whose_new_value_makes_way_for_a_newer_one_before_it_is_read_stays(
    scene: Scene, source: BusyTopic, times: int
) -> None:
    each_time(source, *(cat_moves_on(source, f"{number}") for number in range(times)))
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    assert scene.state() == {"ada": "1", "bob": "1", "cat": "1", "eve": "1", "fay": "1"}
    source.after_the_look = None
    assert not scene.bring(source).failed
    assert scene.state() == source.state()


def test_a_source_that_is_written_to_and_not_cleaned_is_looked_through_once(scene: Scene, source: BusyTopic) -> None:
    source.after_the_look = lambda: source.put(gus="1", hal="1")
    source.put(cat=None)
    source.clean(drop_tombstones=True)
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [2]
    assert source.surveys == 3


def test_a_source_whose_every_stretch_has_gaps_is_compared_all_the_same(scene: Scene, source: BusyTopic) -> None:
    def a_transaction() -> None:
        source.put(gus="1")
        source.end += 1  # its marker

    source.after_the_look = a_transaction
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    source.after_the_look = None
    assert not scene.bring(source).failed
    assert scene.state() == source.state()


@pytest.mark.parametrize("is_survey", [False, True])
def test_what_lies_behind_and_can_not_be_looked_at_stops_it(scene: Scene, source: BusyTopic, is_survey: bool) -> None:
    def is_away() -> None:
        raise StorageUnavailable("the broker is away")

    def happens() -> None:
        source.put(cat="3")
        if is_survey:
            source.failing, source.surveys = StorageUnavailable("the broker is away"), 1
        else:
            source.before_part[source.end - 1] = is_away

    each_time(source, happens)
    here = scene.state()
    result = scene.bring(source, reconcile=True)
    assert (str(result.failed["t-0"]), result.committed, scene.state()) == ("the broker is away", (), here)
    source.failing, source.surveys = None, 0
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()


def test_a_key_that_comes_again_behind_a_deletion_that_was_forgotten_is_not_deleted_here(
    scene: Scene, source: BusyTopic
) -> None:
    """What is new of it is read by the next ingest."""
    each_time(source, lambda: source.put(dan="2"))
    result = scene.bring(source, reconcile=True)
    assert [each.reconciled for each in result.committed] == [0]
    assert not scene.bring(source).failed
    assert scene.state() == source.state()


@pytest.mark.parametrize("key", ["bob", "eve"])
def test_a_value_that_makes_way_for_a_newer_one_in_a_long_comparison_has_lost_nothing(
    scene: Scene, source: BusyTopic, key: str
) -> None:
    """Bob's was read before, eve's is new."""

    def is_compared() -> None:
        scene.now_ms += DAY_MS + 1

    def moves_on() -> None:
        source.put(**{key: "2"})
        source.clean(drop_tombstones=True)

    each_time(source, is_compared, moves_on)
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    source.after_the_look = None
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()


def test_after_a_long_comparison_an_ingest_goes_on_without_another(scene: Scene, source: BusyTopic) -> None:
    """All that was there when it ended is here; what comes while the rest is read is not."""

    def an_hour_goes_by() -> None:
        scene.now_ms += DAY_MS // 24

    def a_day_goes_by() -> None:
        scene.now_ms += DAY_MS + 1
        source.after_the_look = an_hour_goes_by

    source.before_the_look = a_day_goes_by
    before_ms = scene.now_ms
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    assert scene.store.source_of("t").as_of_ms == {0: before_ms + 1 + DAY_MS + 1}
    source.after_the_look = None
    source.put(bob="2", gus="1", hal="1")
    source.put(bob="3")
    source.clean(drop_tombstones=True)
    assert not scene.bring(source).failed
    assert scene.state() == source.state()


@pytest.mark.parametrize("is_here", [False, True])
def test_what_is_read_for_the_first_time_after_a_long_comparison_was_not_read_for_long(
    scene: Scene, is_here: bool
) -> None:
    if is_here:
        scene.store.create_topic("t", 1, COMPACT)
    source = BusyTopic()
    source.put(ada="1", bob="1", cat="1")
    source.put(bob="2")
    source.clean(drop_tombstones=True)

    def a_day_goes_by() -> None:
        scene.now_ms += DAY_MS + 1

    source.before_the_look = a_day_goes_by
    result = scene.bring(source, reconcile=True)
    assert (result.failed, result.warnings) == ({}, ())
    source.put(cat="2", ada="2")
    source.put(cat="3")
    source.clean(drop_tombstones=True)
    assert not scene.bring(source).failed
    assert scene.state() == source.state()


@pytest.mark.parametrize("key", ["bob", "eve"])
def test_a_key_that_is_deleted_in_a_long_comparison_stops_it_whatever_else_is_written(
    scene: Scene, source: BusyTopic, key: str
) -> None:
    def is_compared() -> None:
        scene.now_ms += DAY_MS + 1

    def is_deleted() -> None:
        source.put(ada="2", **{key: None}, fay="2")
        source.clean(drop_tombstones=True)

    each_time(source, is_compared, is_deleted)
    result = scene.bring(source, reconcile=True)
    assert not result.committed
    assert "keys that were there have gone meanwhile" in str(result.failed["t-0"])
    source.after_the_look = None
    assert not scene.bring(source, reconcile=True).failed
    assert scene.state() == source.state()


@dataclass
class SlowTopic(BusyTopic):
    """A day goes by between the reading and the question how long tombstones stay."""

    meanwhile: Meanwhile | None = None
    pass_a_day: Meanwhile | None = None

    def tombstones_kept_ms(self, plan: IngestPlan, partitions: Collection[int]) -> dict[int, int | None]:
        for happens in filter(None, (self.pass_a_day, self.meanwhile)):
            happens()
        return super().tombstones_kept_ms(plan, partitions)

    def retain(self, log_start: int) -> None:
        self.log_start = log_start
        self.records = [record for record in self.records if record.offset >= log_start]


@pytest.fixture
def slow(scene: Scene, source: BusyTopic) -> SlowTopic:
    def pass_a_day() -> None:
        scene.now_ms += DAY_MS + 1

    return SlowTopic(source.records, source.end, pass_a_day=pass_a_day)


@pytest.mark.parametrize("log_start", [2, 7, 8])
def test_what_retention_removes_in_a_long_comparison_is_no_deletion(
    scene: Scene, slow: SlowTopic, log_start: int
) -> None:
    """Before and behind the position, and all that there was."""
    slow.meanwhile = lambda: slow.retain(log_start)
    result = scene.bring(slow, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    assert scene.state() == {"ada": "1", "bob": "1", "cat": "2", "eve": "1", "fay": "1"}


def test_a_key_that_is_deleted_beside_what_retention_removes_stops_it(scene: Scene, slow: SlowTopic) -> None:
    def happens() -> None:
        slow.put(fay=None)
        slow.clean(drop_tombstones=True)
        slow.retain(2)

    slow.meanwhile = happens
    result = scene.bring(slow, reconcile=True)
    assert not result.committed
    assert "keys that were there have gone meanwhile" in str(result.failed["t-0"])


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("left", [0, 1])
def test_a_key_that_may_have_come_again_in_what_retention_has_removed_by_now_stays(
    scene: Scene, slow: SlowTopic, left: int, is_long: bool
) -> None:
    """That records are lost there the next ingest says."""

    def retention_is_faster() -> None:
        slow.put(dan="2", gus="1", hal="1")
        slow.retain(slow.end - left)

    slow.meanwhile, slow.pass_a_day = retention_is_faster, slow.pass_a_day if is_long else None
    result = scene.bring(slow, reconcile=True)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [0]
    assert scene.state() == {"ada": "1", "bob": "1", "cat": "2", "dan": "1", "eve": "1", "fay": "1"}
    slow.meanwhile = None
    assert f"offsets 8 to {10 - left} are no longer at its source" in str(scene.bring(slow).failed["t-0"])
    assert not scene.bring(slow, skip_lost=True).failed
    assert scene.state().items() >= slow.state().items()


@pytest.mark.parametrize("is_here", [False, True])
def test_a_log_that_is_read_for_the_first_time_is_read_from_where_it_begins_after_the_comparison(
    scene: Scene, is_here: bool
) -> None:
    if is_here:
        scene.store.create_topic("t", 1, COMPACT)
    source = SlowTopic()
    source.put(ada="1", bob="1", cat="1")
    source.before_the_look = lambda: source.retain(1)
    result = scene.bring(source, reconcile=True)
    assert not result.failed
    assert scene.state() == source.state() == {"bob": "1", "cat": "1"}


def test_what_retention_removes_before_it_is_read_stops_it_as_lost(scene: Scene, slow: SlowTopic) -> None:
    def retention_is_faster() -> None:
        slow.put(gus="1")
        slow.retain(6)

    here, slow.before_the_look = scene.state(), retention_is_faster
    result = scene.bring(slow, reconcile=True)
    assert "offsets 4 to 5 are no longer at its source, which begins at 6" in str(result.failed["t-0"])
    assert (result.committed, scene.state()) == ((), here)
