"""A table adopted as it is: what is lost is said exactly, no offset is given twice, no deleted key comes back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.errors import LogCorrupt
from keptlog.home import new_id
from keptlog.log.record import NewRecord, Record
from keptlog.log.sections import GIVEN_UP
from keptlog.log.segment import Segment
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.steps import Expire
from keptlog.passes.repair import Repairer
from keptlog.passes.verify import verify_log
from keptlog.table.metadata.file_metrics import data_file_of
from tests.logs import open_store
from tests.passes.story import DAY_MS, HOUR_MS, LOG, SETTINGS, START_MS, Story, T
from tests.table.foreign import (
    current_id,
    delete_rows,
    expire,
    insert,
    rows_at,
    set_properties,
    table_of,
    update_rows,
)
from tests.table.stores import staged


def test_an_adopted_rollback_across_an_append_says_which_offsets_are_lost_and_gives_none_twice(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"), ("c", "1"))
    story.append(("d", "1"))
    story.roll_back(first)
    proposal = story.repair(adopt=True)
    assert (proposal.lost, proposal.is_exact) == ({LOG: ((2, 4),)}, True)
    assert [record.offset for record in story.real.records()] == [0, 1]
    story.append(("e", "1"))
    assert [record.offset for record in story.real.records()] == [0, 1, 5]


def test_an_adopted_rollback_across_a_clean_loses_nothing_and_is_cleaned_again(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    before = current_id(story.home, T)
    story.clean()
    story.append(("c", "1"))
    story.clean()
    story.roll_back(before)
    proposal = story.repair(adopt=True)
    assert (proposal.lost, proposal.is_exact) == ({LOG: ((4, 4),)}, True)
    assert proposal.plan.state == {"log.p0.first-dirty-offset": str(GIVEN_UP), "log.p0.cleaning-to": "5"}
    story.real.clean(story.now_ms)
    assert [(record.key, record.value) for record in story.real.records()] == [(b"a", None), (b"b", b"2")]
    assert all(each.passed for each in verify_log(story.real.store, story.real.log, story.now_ms))


def test_an_adopted_rollback_across_an_expiry_keeps_the_horizon_that_the_tombstone_has(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    before = story.clean()
    horizons = [record.delete_horizon_ms for record in story.real.records()]
    story.clean(after_ms=2 * DAY_MS)
    story.roll_back(before)
    assert story.repair(adopt=True).lost == {}
    assert [record.delete_horizon_ms for record in story.real.records()] == horizons
    story.real.clean(story.now_ms)
    assert [record.key for record in story.real.records()] == [b"b"]


def test_an_adopted_delete_says_what_is_lost_and_an_update_where_others_wrote(story: Story) -> None:
    story.append(("c", "1"))
    delete_rows(story.home, "offset = 0", T)
    update_rows(story.home, [2], b"changed", T)
    proposal = story.repair(adopt=True)
    assert proposal.lost == {LOG: ((0, 0),)}
    spans = [(each.base_offset, each.last_offset) for each in proposal.foreign_segments[LOG]]
    assert spans == [(1, 1), (2, 2)]
    assert [(record.offset, record.value) for record in story.real.records()] == [(1, b"1"), (2, b"changed")]
    story.append(("d", "1"))
    story.clean()
    assert [record.offset for record in story.real.records()] == [1, 2, 3]


def test_adopted_offsets_behind_the_end_move_it(story: Story) -> None:
    insert(story.home, 7, 8, topic=T)
    proposal = story.repair(adopt=True)
    assert proposal.lost == {}
    assert story.real.log.log_end_offset == 9
    story.real.append([NewRecord(b"x", b"1", story.now_ms, 0)], story.now_ms)
    assert [record.offset for record in story.real.records()] == [0, 1, 7, 8, 9]


def test_a_deleted_key_stays_deleted_after_an_adoption_where_its_watermark_says_so(tmp_path: Path) -> None:
    marks = {"compaction.strategy": "timestamp", "keptlog.watermark.retention.ms": str(90 * DAY_MS)}
    story = Story(tmp_path, SETTINGS | marks)
    story.append(("a", "1"), ("b", "1"), at_ms=START_MS)
    before = current_id(tmp_path, T)
    story.append(("a", None), ("b", "2"))
    story.clean()
    story.clean(after_ms=2 * DAY_MS)
    assert story.real.log.watermarks_path
    story.roll_back(before)
    story.repair(adopt=True)
    assert [record.key for record in story.real.records()] == [b"a", b"b"]
    assert [record.key for _, record in story.real.store.read(T, latest=True)] == [b"b"]
    story.real.clean(story.now_ms)
    assert [record.key for record in story.real.records()] == [b"b"]


def test_adopted_files_below_the_log_start_go(story: Story) -> None:
    before = story.append(("c", "1"))
    story.real.store.delete_records(LOG, 2, new_id())
    story.roll_back(before)
    proposal = story.repair(adopt=True)
    assert (proposal.lost, len(proposal.plan.went)) == ({}, 1)
    assert story.real.log.log_start_offset == 2
    assert [segment.base_offset for segment in story.real.log.segments] == [2]


def test_where_the_snapshot_is_gone_an_adoption_tells_the_end_and_that_it_is_not_all(story: Story) -> None:
    first = current_id(story.home, T)
    last = story.append(("a", "2"))
    story.roll_back(first)
    expire(story.home, last, topic=T)
    proposal = story.repair(adopt=True)
    assert (proposal.lost, proposal.is_exact) == ({LOG: ((2, 2),)}, False)


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda home: insert(home, 1, topic=T), "inside of .* another program wrote it"),
        (lambda home: insert(home, 9, 8, topic=T), "t-0: G2 is broken: .*offsets do not rise"),
        (lambda home: insert(home, 9, partition=3, topic=T), "is in partition 3: another program wrote it"),
    ],
    ids=["overlap", "order", "partition"],
)
def test_what_is_no_log_is_not_adopted(story: Story, act: Callable[[Path], object], why: str) -> None:
    act(story.home)
    at = current_id(story.home, T)
    with pytest.raises(LogCorrupt, match=why):
        story.propose(adopt=True)
    assert current_id(story.home, T) == at
    story.repair()
    story.require_same()


@pytest.mark.parametrize("which", ["segment", "manifest"])
def test_where_a_repair_lacks_files_as_well_an_adoption_does_not_name_it(story: Story, which: str) -> None:
    """Another program's append takes the manifests of before over."""
    snapshot = table_of(story.home, T).current_snapshot()
    assert snapshot
    path = snapshot.manifests(table_of(story.home, T).io)[0].manifest_path
    lost = story.real.log.segments[0].path if which == "segment" else path
    insert(story.home, 50, topic=T)
    Path(lost.removeprefix("file://")).unlink()
    with pytest.raises(LogCorrupt, match=re.escape(Path(lost).name)) as refused:
        story.propose(adopt=True)
    assert "keptlog repair t lacks files as well: put them back from a copy of the storage first" in str(refused.value)
    assert "brings back what was acknowledged" not in str(refused.value)


def test_files_with_other_columns_are_not_adopted(story: Story) -> None:
    path = story.home / "nine.parquet"
    pq.write_table(rows_at(9).drop_columns(["headers"]), path)
    segment = Segment(f"file://{path}", 9, 9, START_MS, START_MS, 1, path.stat().st_size)
    with table_of(story.home, T).transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(data_file_of(0, segment))
    with pytest.raises(LogCorrupt, match="has other columns \\(headers is not there\\)"):
        story.propose(adopt=True)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("timestamp_type", 7, "has timestamp_type 7"),
        ("timestamp", None, "has nulls in timestamp"),
        ("partition", 3, "has partition 3"),
        ("headers", [None], "has nulls in headers"),
    ],
)
def test_files_with_values_that_no_record_has_are_not_adopted(
    story: Story, column: str, value: object, why: str
) -> None:
    rows = rows_at(9)
    at, field = rows.schema.get_field_index(column), rows.schema.field(column)
    kind = field.type if column != "headers" else pa.list_(field.type.value_type)
    path = story.home / "nine.parquet"
    pq.write_table(rows.set_column(at, pa.field(column, kind), pa.array([value], kind)), path)
    segment = Segment(f"file://{path}", 9, 9, START_MS, START_MS, 1, path.stat().st_size)
    with table_of(story.home, T).transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(data_file_of(0, segment))
    with pytest.raises(LogCorrupt, match=why):
        story.propose(adopt=True)


def test_files_without_metrics_are_not_adopted(story: Story) -> None:
    set_properties(story.home, {"write.metadata.metrics.column.offset": "none"}, T)
    insert(story.home, 9, topic=T)
    set_properties(story.home, {"write.metadata.metrics.column.offset": "full"}, T)
    with pytest.raises(LogCorrupt, match=r"has no complete metrics .* keptlog repair t brings back"):
        story.propose(adopt=True)
    story.repair()
    story.require_same()


def test_offsets_behind_the_position_at_a_source_are_not_adopted(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create_topic(T, 1, SETTINGS)
    segments = tuple(staged(store, T, 0, [Record(3, b"a", b"1", START_MS)]))
    store.ingest(T, [Arrival(OffsetRange(0, None, 3, 5), segments)], SourceIdentity("there"), 1, new_id())
    insert(tmp_path, 9, topic=T)
    with pytest.raises(LogCorrupt, match="reaches offset 9, behind the position 5 at its source"):
        Repairer(store).propose(T, is_adoption=True, now_ms=START_MS)
    proposal = Repairer(store).propose(T, now_ms=START_MS)
    assert proposal
    Repairer(store).repair(proposal, new_id(), now_ms=START_MS)
    assert [record.offset for _, record in store.read(T)] == [3]
    assert store.source_of(T).positions == (5,)


def test_a_log_that_was_given_up_takes_every_kind_of_pass(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    story.roll_back(first)
    story.repair(adopt=True)
    assert [step for step in story.real.cleaner.plan(now_ms=story.now_ms).steps if isinstance(step, Expire)] == []
    story.real.store.delete_records(LOG, 1, new_id())
    assert story.real.log.checkpoint == GIVEN_UP
    story.real.append([NewRecord(b"x", b"1", story.now_ms, 0)], story.now_ms)
    story.real.clean(story.now_ms + HOUR_MS)
    assert story.real.log.checkpoint == story.real.log.log_end_offset


def test_of_a_file_that_is_gone_all_offsets_count_as_lost_and_that_it_may_be_too_many_is_said(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"), ("c", "1"))
    Path(story.real.log.segments[-1].path.removeprefix("file://")).unlink()
    story.roll_back(first)
    proposal = story.repair(adopt=True)
    assert (proposal.lost, proposal.is_exact) == ({LOG: ((2, 3),)}, False)


def test_a_clean_that_does_not_reach_a_given_up_checkpoint_leaves_what_lay_below_it_closed_and_whole(
    story: Story,
) -> None:
    """The tombstone there has a delete horizon, as it was clean before."""
    story.real.store.alter_topic(T, {"internal.segment.bytes": "14"})
    story.append(("c", "1"), ("c", None), ("d", "1"))
    young_ms = story.now_ms
    story.clean()
    before = current_id(story.home, T)
    story.append(("e", "1"))
    story.roll_back(before)
    story.repair(adopt=True)
    assert (story.real.log.checkpoint, story.real.log.cleaning_to) == (GIVEN_UP, 5)
    story.real.store.alter_topic(T, {"min.compaction.lag.ms": str(story.now_ms + 1 - young_ms)})
    story.real.clean(story.now_ms)
    assert (story.real.log.checkpoint, story.real.log.cleaning_to) == (3, 5)
    results = verify_log(story.real.store, story.real.log, story.now_ms)
    assert [each.description for each in results if not each.passed] == []
    story.real.store.alter_topic(T, {"min.compaction.lag.ms": "0"})
    story.real.clean(story.now_ms)
    assert (story.real.log.checkpoint, story.real.log.cleaning_to) == (6, None)


def test_until_a_clean_ends_verify_says_that_it_can_not_tell_whether_records_are_as_they_were_appended(
    story: Story,
) -> None:
    story.append(("c", "1"))
    delete_rows(story.home, "offset = 1", T)
    story.repair(adopt=True)
    assert _g4(story) == (
        "No record was judged, for none need be as it was appended: a repair gave up the checkpoint; judged from 0 "
        "again."
    )
    story.append(("d", "1"))
    story.clean()
    assert _g4(story) == "The dirty section is as it was appended."


def _g4(story: Story) -> str:
    return next(
        each.description
        for each in verify_log(story.real.store, story.real.log, story.now_ms)
        if each.name == "G4" and each.passed
    )
