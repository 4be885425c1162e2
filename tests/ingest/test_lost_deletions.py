"""A deletion that the source's cleaner removed before it was read is never missed without a word."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from keptlog.errors import IngestStopped
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.result import IngestResult
from keptlog.log.lost_deletions import SeenCurrent
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.storage.erasure_secret import load_hasher
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.memory import MemorySource
from tests.logs import open_store

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
BEGINNING_MS = 1_800_000_000_000
COMPACTED = MemorySource({"a": (20,)}, kept_ms=DAY_MS)


@dataclass
class Scene:
    """One store, and a clock that only the test moves."""

    store: LogStore
    now_ms: int = BEGINNING_MS
    runs: int = 0
    seen: dict[str, SeenCurrent] = field(default_factory=dict)

    def bring(self, source: MemorySource, *, after_ms: int = 0, skip_lost: bool = False) -> IngestResult:
        self.now_ms += after_ms
        self.runs += 1
        ingest = Ingest(self.store, in_process_engine(self.store.files), lambda: self.now_ms)
        plans = ingest.plan(source, skip_lost=skip_lost, seen=self.seen)
        return ingest.carry_out(plans, f"run-{self.runs}")

    def position(self, partition: int = 0) -> int | None:
        return self.store.source_of("a").positions[partition]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(open_store(tmp_path))


def grown(end: int, gone: Collection[int] = (), source: MemorySource = COMPACTED) -> MemorySource:
    return replace(source, ends={"a": (end,)}, gone=gone)


def test_what_is_read_later_than_tombstones_are_kept_and_has_gaps_is_stopped_with_the_choice(scene: Scene) -> None:
    scene.bring(COMPACTED)
    result = scene.bring(grown(40, gone=[30]), after_ms=DAY_MS + 1)
    assert scene.position() == 20
    assert not result.committed
    [(name, error)] = result.failed.items()
    assert (name, type(error)) == ("a-0", IngestStopped)
    assert str(error) == (
        "it was read up to offset 20 as of 2027-01-15T08:00:00.000Z, longer ago than delete.retention.ms=86400000 at "
        "its source, and offsets are missing there since: tombstones may be gone, and what they deleted would stay "
        "here: compare with all that is there and delete here what is gone (--reconcile), go on without (--skip-lost), "
        "or ingest it into another topic (--into a-again)"
    )
    assert not scene.bring(grown(40, gone=[30]), skip_lost=True).failed
    assert scene.position() == 40
    assert not scene.bring(grown(50, gone=[30, 45]), after_ms=DAY_MS).failed


def test_whoever_is_sent_to_another_topic_is_told_that_erased_keys_come_back_there(
    scene: Scene, tmp_path: Path
) -> None:
    scene.bring(COMPACTED)
    request = ErasureRequest("r1", ("a",), (b"ada",), is_here=True)
    hasher = partial(load_hasher, tmp_path, {}, lambda: bytes(range(32)))
    eraser = Eraser(scene.store, in_process_engine(scene.store.files), hasher, lambda: "erasing")
    eraser.request(eraser.propose(request, now_ms=scene.now_ms), now_ms=scene.now_ms)
    [error] = scene.bring(grown(40, gone=[30]), after_ms=DAY_MS + 1).failed.values()
    assert "(--into a-again); keys were erased in topic a, and come back with what is read again" in str(error)


@pytest.mark.parametrize(
    ("after_ms", "gone", "kept_ms"),
    [(DAY_MS, [30], DAY_MS), (9 * DAY_MS, [], DAY_MS), (9 * DAY_MS, [30], None), (DAY_MS, [30], 2 * DAY_MS)],
    ids=["in time", "no gap", "not compacted", "kept longer"],
)
def test_nothing_is_stopped_without_need(scene: Scene, after_ms: int, gone: list[int], kept_ms: int | None) -> None:
    source = replace(COMPACTED, kept_ms=kept_ms)
    scene.bring(source)
    result = scene.bring(grown(40, gone, source), after_ms=after_ms)
    assert (scene.position(), result.failed, result.warnings) == (40, {}, ())


@pytest.mark.parametrize(
    ("before", "now", "is_stopped"),
    [(True, False, True), (True, None, True), (False, False, False), (False, True, True)],
    ids=["not any more", "and nobody says it now", "never", "since then"],
)
def test_a_source_that_is_compacted_or_was_at_the_position_is_asked_for_tombstones(
    scene: Scene, before: bool, now: bool | None, is_stopped: bool
) -> None:
    scene.bring(replace(COMPACTED, is_compacted=before))
    later = replace(grown(40, gone=[30]), is_compacted=now)
    assert list(scene.bring(later, after_ms=DAY_MS + 1).failed) == (["a-0"] if is_stopped else [])
    assert list(scene.bring(later).failed) == (["a-0"] if is_stopped else [])


def test_what_was_read_since_its_source_is_not_compacted_any_more_is_stopped_by_nothing(scene: Scene) -> None:
    scene.bring(replace(COMPACTED, is_compacted=True))
    source = replace(COMPACTED, is_compacted=False)
    scene.bring(grown(40, source=source), after_ms=HOUR_MS)
    assert not scene.bring(grown(60, gone=[50], source=source), after_ms=9 * DAY_MS).failed


def test_a_part_that_could_not_be_read_leaves_it_remembered_that_the_source_was_compacted(scene: Scene) -> None:
    scene.bring(replace(COMPACTED, is_compacted=True))
    source = replace(COMPACTED, is_compacted=False)
    scene.bring(replace(grown(40, source=source), part_offsets=5, broken_at={"a": 32}), after_ms=DAY_MS - 1)
    assert scene.position() == 30
    assert list(scene.bring(grown(40, gone=[35], source=source), after_ms=2).failed) == ["a-0"]


def test_one_partition_that_is_stopped_stops_no_other(scene: Scene) -> None:
    scene.bring(replace(COMPACTED, ends={"a": (20, 40)}))
    result = scene.bring(replace(COMPACTED, ends={"a": (40, 50)}, gone=[30]), after_ms=2 * DAY_MS)
    assert list(result.failed) == ["a-0"]
    assert [scene.position(0), scene.position(1)] == [20, 50]


def test_an_ingest_that_finds_nothing_new_keeps_the_time_up_to_date_once_an_hour(scene: Scene) -> None:
    scene.bring(COMPACTED)
    locations = [scene.store.metadata_locations()["a"]]
    for _ in range(48):
        assert not scene.bring(COMPACTED, after_ms=HOUR_MS // 2).committed
        locations.append(scene.store.metadata_locations()["a"])
    assert len(set(locations)) == 25
    assert not scene.bring(grown(40, gone=[30]), after_ms=DAY_MS).failed


def test_what_somebody_else_has_seen_counts(scene: Scene) -> None:
    """A sensor that looks every minute starts no run for a topic that is idle."""
    scene.bring(COMPACTED)
    at_ms = BEGINNING_MS + 9 * DAY_MS
    scene.seen = {"a-0": SeenCurrent(20, at_ms), "a-1": SeenCurrent(20, 7), "b-0": SeenCurrent(20, 7)}
    assert not scene.bring(grown(40, gone=[30]), after_ms=10 * DAY_MS).failed


def test_what_was_seen_at_another_position_does_not_count(scene: Scene) -> None:
    """The log was truncated after the look, so what lies behind its end was there then."""
    scene.bring(COMPACTED)
    scene.seen = {"a-0": SeenCurrent(30, BEGINNING_MS + 9 * DAY_MS)}
    assert list(scene.bring(grown(40, gone=[25]), after_ms=10 * DAY_MS).failed) == ["a-0"]


def test_a_part_that_could_not_be_read_leaves_the_time_as_it_was(scene: Scene) -> None:
    scene.bring(COMPACTED)
    broken = replace(grown(40), part_offsets=5, broken_at={"a": 32})
    assert list(scene.bring(broken, after_ms=DAY_MS - 1).failed) == ["a-0"]
    assert scene.position() == 30
    assert scene.store.source_of("a").as_of_ms == {0: BEGINNING_MS}
    assert "longer ago than" in str(scene.bring(grown(40, gone=[35]), after_ms=2).failed["a-0"])


def test_a_first_read_that_breaks_off_knows_when_it_began(scene: Scene) -> None:
    scene.bring(replace(COMPACTED, part_offsets=5, broken_at={"a": 12}))
    assert scene.position() == 10
    assert scene.store.source_of("a").as_of_ms == {0: BEGINNING_MS}


@pytest.mark.parametrize("told", ["", '{"end_offset":19,"as_of_ms":1}'], ids=["of an older keptlog", "of another end"])
def test_a_position_of_an_unknown_time_is_gone_on_with_and_said(scene: Scene, told: str) -> None:
    scene.bring(COMPACTED)
    table = scene.store.load_table("a")
    table.transaction().set_properties({"log.p0.as-of": told}).commit_transaction()
    [warning] = scene.bring(grown(40, gone=[30]), after_ms=HOUR_MS).warnings
    assert warning == (
        "a-0: it was read at a time that is not known, up to offset 20, and offsets are missing there since: if it was "
        "longer ago than delete.retention.ms=86400000 at its source, keys may be here that are deleted there "
        "(--reconcile finds them)"
    )
    assert not scene.bring(grown(60, gone=[30, 50]), after_ms=HOUR_MS).warnings


def test_a_clock_that_went_back_is_said(scene: Scene) -> None:
    scene.bring(COMPACTED)
    [warning] = scene.bring(grown(40, gone=[30]), after_ms=-HOUR_MS).warnings
    assert "as of 2027-01-15T08:00:00.000Z, which is to come" in warning
    assert not scene.bring(grown(60, gone=[30, 50]), after_ms=DAY_MS).warnings


def test_a_time_that_is_none_names_its_property(scene: Scene) -> None:
    scene.bring(COMPACTED)
    table = scene.store.load_table("a")
    table.transaction().set_properties({"log.p0.as-of": "yesterday"}).commit_transaction()
    error = scene.bring(grown(40)).failed["a"]
    assert "property log.p0.as-of='yesterday' is no time of a position" in str(error)
