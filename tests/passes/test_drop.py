"""Records of a key are dropped from a log that has a source: wherever they lie, and nothing else changes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt, StalePlan
from keptlog.home import new_id
from keptlog.log.drop import DropResult, drop_step
from keptlog.log.record import Record
from keptlog.log.uncleanable import Backoff
from keptlog.passes.check import Outcome
from keptlog.passes.drop import Dropper
from keptlog.passes.verify import verify_log
from keptlog.storage.key_hash import KeyHasher
from keptlog.table.changes.mark import Failure
from keptlog.table.metadata.change import OPERATION
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import RealTwin, open_store
from tests.searching import Searcher

HASHER = KeyHasher(b"secret")
NOW_MS = 2_000_000_000_000
DAY_MS = 24 * 3_600_000
TOPIC = "t"


@dataclass
class Ingested:
    """A log that is filled from a source."""

    store: LogStore
    twin: RealTwin

    def ingest(self, *records: tuple[int, str, str | None], end: int | None = None, version: int = 0) -> None:
        """One segment of records at these offsets; the source ends behind the last of them."""
        headers = (("v", struct.pack(">q", version)),)
        made = [
            Record(offset, key.encode(), None if value is None else value.encode(), NOW_MS - DAY_MS, headers=headers)
            for offset, key, value in records
        ]
        position = self.store.source_of(TOPIC).positions[0]
        first = made[0].offset if position is None else position
        self.twin.ingest(made, first, end or made[-1].offset + 1)

    def drop(self, *keys: str, below: int | None = None) -> DropResult:
        end_offset = self.twin.log.log_end_offset if below is None else below
        (result,) = self.dropper.drop(
            self.store.describe_topic(TOPIC), {0: hashed(keys, end_offset)}, new_id(), now_ms=NOW_MS
        )
        return result

    @property
    def dropper(self) -> Dropper:
        return Dropper(self.store, self.twin.engine, HASHER)

    @property
    def records(self) -> list[tuple[int, str, str | None]]:
        return [
            (each.offset, (each.key or b"").decode(), None if each.value is None else each.value.decode())
            for each in self.twin.records()
        ]

    def clean(self, now_ms: int = NOW_MS) -> None:
        self.twin.clean(now_ms)


def hashed(keys: Sequence[str], end_offset: int) -> dict[bytes, int]:
    return {HASHER.hash(key.encode()): end_offset for key in keys}


def an_ingested_log(home: Path, **settings: str) -> Ingested:
    store = open_store(home)
    named = {name.replace("_", "."): value for name, value in settings.items()}
    store.create_topic(TOPIC, 1, {"cleanup.policy": "compact", "segment.ms": "1"} | named)
    return Ingested(store, RealTwin(store, in_process_engine(store.files)))


@pytest.fixture
def ingested(tmp_path: Path) -> Ingested:
    """Offsets 10 to 13 are clean, 15 to 22 dirty, the newest segment is active."""
    made = an_ingested_log(tmp_path)
    made.ingest((10, "a", "1"), (11, "b", "1"))
    made.ingest((12, "c", "1"), (13, "d", None))
    made.clean()
    made.ingest((15, "a", "2"), (17, "e", "1"), end=18)
    made.ingest((18, "a", None), (22, "a", "3"), end=25)
    return made


def require_sound(ingested: Ingested) -> None:
    results = verify_log(ingested.store, ingested.twin.log, NOW_MS)
    assert {each.name for each in results if each.outcome is not Outcome.OK} <= {"max_compaction_lag"}, results


def test_every_record_of_the_key_goes_whatever_section_it_lies_in_and_all_others_stay(ingested: Ingested) -> None:
    before = ingested.twin.log
    result = ingested.drop("a")
    assert ingested.records == [(11, "b", "1"), (12, "c", "1"), (13, "d", None), (17, "e", "1")]
    after = ingested.twin.log
    assert (after.log_start_offset, after.log_end_offset, after.checkpoint) == (10, 25, before.checkpoint)
    (hit,) = result.hits
    assert (hit.key_hash, hit.records, hit.lowest_offset, hit.highest_offset) == (HASHER.hash(b"a"), 4, 10, 22)
    require_sound(ingested)


def test_a_segment_without_the_key_is_kept_and_one_with_nothing_else_goes_whole(ingested: Ingested) -> None:
    before = {segment.base_offset: segment.path for segment in ingested.twin.log.segments}
    result = ingested.drop("a")
    after = {segment.base_offset: segment.path for segment in ingested.twin.log.segments}
    assert len(result.removed) == 3
    assert len(result.added) == 2
    assert set(before) == {10, 15, 18}
    assert set(after) == {11, 17}
    ingested.drop("c")
    again = {segment.base_offset: segment.path for segment in ingested.twin.log.segments}
    assert again[17] == after[17]


def test_delete_horizons_and_all_else_of_a_record_stay_as_they_were(ingested: Ingested) -> None:
    before = {record.offset: record for record in ingested.twin.records()}
    ingested.drop("a", "c")
    after = {record.offset: record for record in ingested.twin.records()}
    assert after == {offset: before[offset] for offset in (11, 13, 17)}
    assert after[13].delete_horizon_ms is not None


def test_what_lies_at_or_behind_the_end_counts_as_new(ingested: Ingested) -> None:
    ingested.drop("a", below=18)
    assert [offset for offset, key, _ in ingested.records if key == "a"] == [18, 22]
    ingested.drop("a", below=22)
    assert ingested.records[-1] == (22, "a", "3")


def test_each_key_has_an_end_of_its_own(ingested: Ingested) -> None:
    end_offsets = hashed(["a"], 16) | hashed(["e"], 18) | hashed(["b"], 5)
    ingested.dropper.drop(ingested.store.describe_topic(TOPIC), {0: end_offsets}, new_id(), now_ms=NOW_MS)
    assert [offset for offset, _, _ in ingested.records] == [11, 12, 13, 18, 22]


def test_dropped_again_nothing_changes_and_nothing_is_committed(ingested: Ingested) -> None:
    ingested.drop("a")
    snapshots = len(ingested.store.load_table(TOPIC).snapshots())
    assert ingested.drop("a").is_empty
    assert ingested.drop("nobody").is_empty
    assert len(ingested.store.load_table(TOPIC).snapshots()) == snapshots


def test_a_log_of_which_nothing_is_left_goes_on_where_it_ended(ingested: Ingested) -> None:
    ingested.drop("a", "b", "c", "d", "e")
    assert ingested.records == []
    assert ingested.twin.log.segments == ()
    require_sound(ingested)
    ingested.ingest((25, "a", "new"))
    ingested.clean(NOW_MS + DAY_MS)
    assert ingested.records == [(25, "a", "new")]
    require_sound(ingested)


def test_a_log_is_cleaned_on_after_a_drop_as_if_the_key_had_never_come(ingested: Ingested) -> None:
    ingested.drop("a")
    ingested.ingest((25, "e", "2"), (26, "a", "back"))
    ingested.clean(NOW_MS + DAY_MS)
    assert ingested.records == [(11, "b", "1"), (12, "c", "1"), (25, "e", "2"), (26, "a", "back")]
    require_sound(ingested)


def test_records_below_the_log_start_in_a_segment_that_is_still_there_go_too(ingested: Ingested) -> None:
    log = ingested.twin.log
    ingested.store.delete_records(log.topic_partition, 11, new_id())
    assert ingested.drop("a", below=11).dropped == 1


def test_watermarks_of_the_key_go_with_it(tmp_path: Path) -> None:
    ingested = an_ingested_log(
        tmp_path, compaction_strategy="header", compaction_strategy_header="v", delete_retention_ms="0"
    )
    ingested.ingest((0, "a", None), (1, "b", None), version=9)
    ingested.clean()
    ingested.twin.expire(NOW_MS + 1)
    marks = ingested.twin.log.watermarks_path
    assert marks
    assert ingested.records == []
    result = ingested.drop("a")
    assert (result.dropped, result.watermarks_dropped) == (0, 1)
    assert ingested.twin.log.watermarks_path not in {None, marks}
    ingested.ingest((5, "a", "late"), (6, "b", "late"), version=3)
    ingested.clean(NOW_MS + DAY_MS)
    assert ingested.records == [(5, "a", "late")], "of a nothing is remembered, of b that it was deleted"
    ingested.drop("b")
    assert ingested.store.logs(TOPIC)[0].watermarks_path is None
    require_sound(ingested)


def test_an_uncleanable_log_is_dropped_from_and_stays_marked(ingested: Ingested) -> None:
    log = ingested.twin.log
    failure = Failure(log.topic_partition, "it failed", log.checkpoint)
    ingested.store.mark_uncleanable(TOPIC, [failure], NOW_MS, Backoff(1, 1))
    ingested.drop("a")
    assert ingested.twin.log.uncleanable
    assert not [key for _, key, _ in ingested.records if key == "a"]


def test_a_topic_that_is_not_compacted_is_dropped_from_as_well(ingested: Ingested) -> None:
    ingested.store.alter_topic(TOPIC, {"cleanup.policy": "delete"})
    assert ingested.drop("a").dropped == 4


def test_a_topic_without_a_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="has no source"):
        an_ingested_log(tmp_path).drop("a", below=1)


def test_what_a_clean_has_replaced_meanwhile_makes_a_drop_stale(ingested: Ingested) -> None:
    store, engine = ingested.store, ingested.twin.engine
    step = drop_step(ingested.twin.log, hashed(["a"], 25), NOW_MS)
    outcomes = engine.drop([step], HASHER, {TOPIC: store.data_location(TOPIC)}, new_id())
    ingested.clean(NOW_MS + DAY_MS)
    before = ingested.records
    with pytest.raises(StalePlan, match="the log changed since it was planned"):
        store.swap(TOPIC, outcomes, new_id())
    assert ingested.records == before
    staged = [Path(path.removeprefix("file://")) for path in outcomes[0].staged_paths]
    assert staged
    assert not any(path.exists() for path in staged), "they hold what was to be erased, and never land"
    ingested.drop("a")
    assert not [key for _, key, _ in ingested.records if key == "a"]


def test_what_arrives_meanwhile_disturbs_nobody(ingested: Ingested) -> None:
    store, engine = ingested.store, ingested.twin.engine
    step = drop_step(ingested.twin.log, hashed(["a"], 25), NOW_MS)
    outcomes = engine.drop([step], HASHER, {TOPIC: store.data_location(TOPIC)}, new_id())
    ingested.ingest((25, "a", "new"))
    store.swap(TOPIC, outcomes, new_id())
    assert [offset for offset, key, _ in ingested.records if key == "a"] == [25]


def test_a_drop_that_lost_a_race_is_made_again(ingested: Ingested) -> None:
    """The first time a clean lands while records are dropped, after the segments were listed."""
    said: list[str] = []

    def progress(text: str) -> None:
        if not said:
            ingested.clean(NOW_MS + DAY_MS)
        said.append(text)

    hashes = {0: hashed(["a"], 25)}
    (result,) = ingested.dropper.drop(
        ingested.store.describe_topic(TOPIC), hashes, new_id(), now_ms=NOW_MS, progress=progress
    )
    assert any("the log changed since it was planned" in text for text in said), said
    assert result.dropped
    assert not [key for _, key, _ in ingested.records if key == "a"]


def test_a_damaged_live_segment_is_no_segment_without_the_key(ingested: Ingested) -> None:
    path = Path(ingested.twin.log.segments[0].path.removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LogCorrupt, match=path.name):
        ingested.drop("a")


def test_a_drop_is_a_snapshot_of_its_own_kind(ingested: Ingested) -> None:
    ingested.drop("a")
    snapshot = ingested.store.load_table(TOPIC).current_snapshot()
    assert snapshot
    assert snapshot.summary
    assert snapshot.summary[OPERATION] == "drop"


def test_what_was_dropped_is_gone_from_all_files_once_a_purge_has_been(ingested: Ingested) -> None:
    searcher = Searcher(ingested.store, ingested.twin.engine, HASHER)
    ingested.drop("a")
    a = HASHER.hash(b"a")
    still = [each for each in searcher.search(TOPIC, [a], new_id()) if not each.is_clear]
    assert [each.problem for each in still] == [None] * len(still) != []
    ingested.store.purge(TOPIC, NOW_MS + 10 * DAY_MS, 0)
    assert all(each.is_clear for each in searcher.search(TOPIC, [a], new_id()))


@pytest.mark.parametrize("what", ["a segment", "the watermarks"])
def test_a_live_file_that_is_lost_is_named_as_that_and_not_as_replaced(tmp_path: Path, what: str) -> None:
    made = an_ingested_log(tmp_path, compaction_strategy="timestamp", delete_retention_ms="0")
    made.ingest((10, "a", "1"), (11, "b", "1"))
    made.ingest((12, "b", None))
    made.clean()
    made.clean(NOW_MS + 2)
    log = made.twin.log
    lost = log.segments[0].path if what == "a segment" else log.watermarks_path
    assert lost
    Path(lost.removeprefix("file://")).unlink()

    with pytest.raises(LogCorrupt, match="is missing from storage though the table lists it; put the file") as told:
        made.drop("a")

    assert lost in str(told.value)
    assert "replaced" not in str(told.value)
