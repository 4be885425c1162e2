"""A repair loses nothing that was acknowledged, or says exactly what; then the log goes on as if nothing had been."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.home import new_id
from keptlog.log.record import NewRecord, Record
from keptlog.log.sections import GIVEN_UP
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.steps import Expire
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.repair import Repairer, RepairProposal
from keptlog.passes.verify import verify_log
from keptlog.table.manifests import FileChange
from tests.in_process import in_process_engine
from tests.logs import RealTwin, ReferenceTwin, open_store
from tests.table.foreign import (
    as_format_1_0,
    current_id,
    delete_rows,
    expire,
    insert,
    make_1_0,
    remove_main,
    roll_back,
    rows_at,
    set_main,
    set_properties,
    table_of,
    update_rows,
)
from tests.table.stores import staged

T = "t"
LOG = TopicPartition(T, 0)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 1_700_000_000_000
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1000", "delete.retention.ms": str(DAY_MS)}


@dataclass
class Story:
    """One log, as it really is and as the specification has it; what others do happens to the real one alone."""

    home: Path
    settings: dict[str, str]
    reference: ReferenceTwin = field(default_factory=ReferenceTwin)
    now_ms: int = START_MS

    def __post_init__(self) -> None:
        for twin in (self.real, self.reference):
            twin.create(self.settings)

    @property
    def real(self) -> RealTwin:
        store = open_store(self.home)
        return RealTwin(store, in_process_engine(store.files), T)

    def append(self, *pairs: tuple[str, str | None], at_ms: int | None = None) -> int:
        """Gives the snapshot."""
        self.now_ms += HOUR_MS
        new = [NewRecord(k.encode(), v.encode() if v else None, at_ms or self.now_ms, 0) for k, v in pairs]
        for twin in (self.real, self.reference):
            twin.append(new, self.now_ms)
        return current_id(self.home, T)

    def clean(self, after_ms: int = HOUR_MS) -> int:
        self.now_ms += after_ms
        for twin in (self.real, self.reference):
            twin.clean(self.now_ms)
        return current_id(self.home, T)

    def roll_back(self, snapshot_id: int) -> None:
        roll_back(self.home, snapshot_id, T)

    def propose(self, *, adopt: bool = False) -> RepairProposal | None:
        return Repairer(self.real.store).propose(T, is_adoption=adopt, now_ms=self.now_ms)

    def repair(self, *, adopt: bool = False) -> RepairProposal:
        proposal = self.propose(adopt=adopt)
        assert proposal
        results = Repairer(self.real.store).repair(proposal, new_id(), now_ms=self.now_ms)
        assert [each for each in results["t-0"] if not each.passed and each.name != "max_compaction_lag"] == []
        assert self.propose(adopt=adopt) is None
        return proposal

    def require_same(self) -> None:
        """The real log is what the specification says, and goes on as it does."""
        assert self.real.records() == self.reference.records()
        self.append(("a", "later"), ("new", "1"), ("b", None))
        self.clean()
        self.clean(after_ms=2 * DAY_MS)
        assert self.real.records() == self.reference.records()
        assert self.real.positions(self.now_ms) == self.reference.positions(self.now_ms)
        results = verify_log(self.real.store, self.real.log, self.now_ms)
        assert [each.name for each in results if not each.passed] == []


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """a and b with a value each, in a segment of their own."""
    story = Story(tmp_path, SETTINGS)
    story.append(("a", "1"), ("b", "1"))
    return story


def test_a_rollback_across_a_clean_is_mended_and_brings_no_deleted_key_back(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    before = current_id(story.home, T)
    story.clean()
    story.roll_back(before)
    assert len(story.real.records()) == 4
    proposal = story.repair()
    assert proposal.plan.came
    assert len(proposal.plan.went) == 2
    assert (proposal.lost, dict(proposal.plan.state)) == ({}, {})
    story.require_same()


def test_a_rollback_across_the_expiry_of_a_tombstone_is_mended(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    before = story.clean()
    story.clean(after_ms=2 * DAY_MS)
    assert b"a" not in {record.key for record in story.real.records()}
    story.roll_back(before)
    assert b"a" in {record.key for record in story.real.records()}
    story.repair()
    assert b"a" not in {record.key for record in story.real.records()}
    story.require_same()


def test_a_rollback_across_an_append_is_mended_and_no_acknowledged_record_is_lost(story: Story) -> None:
    before = current_id(story.home, T)
    story.append(("a", "2"), ("c", "1"))
    story.append(("c", None))
    story.roll_back(before)
    story.repair()
    assert [record.offset for record in story.real.records()] == [0, 1, 2, 3, 4]
    story.require_same()


def test_a_rollback_across_a_deletion_of_records_is_mended(story: Story) -> None:
    before = story.append(("c", "1"))
    story.real.store.delete_records(LOG, 2, new_id())
    story.roll_back(before)
    story.repair()
    assert [segment.base_offset for segment in story.real.log.segments] == [2]


def test_a_rollback_after_a_purge_is_mended_and_a_purge_of_the_repaired_log_keeps_what_is_live(story: Story) -> None:
    story.append(("a", "2"), ("c", "1"))
    before = story.clean()
    story.append(("d", "1"))
    story.clean()
    story.real.store.purge(T, time.time_ns() // 1_000_000, 0)
    story.roll_back(before)
    with pytest.raises(LogCorrupt, match="rolled back"):
        story.real.store.purge(T, time.time_ns() // 1_000_000 + DAY_MS, 0)
    story.repair()
    story.real.store.purge(T, time.time_ns() // 1_000_000 + DAY_MS, 0)
    story.require_same()


@pytest.mark.parametrize(
    "act",
    [
        lambda home: insert(home, 7, 8, topic=T),
        lambda home: delete_rows(home, "offset = 1", T),
        lambda home: update_rows(home, [1], b"changed", T),
        lambda home: table_of(home, T).overwrite(rows_at(0, 1)),
        lambda home: table_of(home, T).delete("partition = 0"),
    ],
    ids=["insert", "delete", "update", "overwrite", "delete all"],
)
def test_what_another_program_has_written_is_undone(story: Story, act: Callable[[Path], object]) -> None:
    story.append(("a", "2"))
    story.clean()
    act(story.home)
    proposal = story.repair()
    assert proposal.plan.foreign
    story.require_same()


def test_a_rollback_and_a_foreign_insert_are_undone_together(story: Story) -> None:
    before = current_id(story.home, T)
    story.append(("c", "1"))
    story.roll_back(before)
    insert(story.home, 50, topic=T)
    story.repair()
    story.require_same()


def test_a_snapshot_of_another_branch_is_undone(story: Story) -> None:
    table_of(story.home, T).manage_snapshots().create_branch(current_id(story.home, T), "experiment").commit()
    other = insert(story.home, 50, branch="experiment", topic=T)
    story.append(("c", "1"))
    set_main(story.home, other, T)
    story.repair()
    story.require_same()


def test_a_table_without_a_current_snapshot_gets_its_records_back(story: Story) -> None:
    story.append(("c", "1"))
    story.clean()
    remove_main(story.home, T)
    with pytest.raises(LogCorrupt, match=r"has no current snapshot that could be adopted; keptlog repair t brings"):
        story.propose(adopt=True)
    story.repair()
    story.require_same()


def test_a_topic_that_only_others_have_written_to_is_empty_again(tmp_path: Path) -> None:
    story = Story(tmp_path, SETTINGS)
    insert(tmp_path, 0, 1, topic=T)
    story.repair()
    assert story.real.records() == []
    story.append(("a", "1"))
    story.require_same()


def test_the_new_snapshot_counts_what_it_holds(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"), ("c", "1"))
    story.roll_back(first)
    insert(story.home, 50, topic=T)
    story.repair()
    snapshot = table_of(story.home, T).current_snapshot()
    assert snapshot
    assert snapshot.summary
    told = snapshot.summary.additional_properties
    names = ("total-records", "total-data-files", "added-data-files", "deleted-data-files", "total-delete-files")
    assert [told[name] for name in names] == ["4", "2", "1", "1", "0"]
    assert len(table_of(story.home, T).scan().to_arrow()) == 4


def test_what_an_older_keptlog_appended_to_a_rolled_back_table_is_kept_too(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    story.roll_back(first)
    with as_format_1_0(story.home, T):
        story.append(("c", "1"))
    assert [record.offset for record in story.real.records()] == [0, 1, 3]
    story.repair()
    assert [record.offset for record in story.real.records()] == [0, 1, 2, 3]
    story.require_same()


def test_what_an_older_keptlog_cleaned_of_a_rolled_back_table_is_judged_again(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    first = current_id(story.home, T)
    story.append(("a", "3"), ("c", "1"))
    story.clean()
    story.roll_back(first)
    with as_format_1_0(story.home, T):
        story.append(("b", "3"), ("d", "1"))
        story.real.clean(story.now_ms + HOUR_MS)
    proposal = story.repair()
    assert proposal.plan.state == {"log.p0.first-dirty-offset": str(GIVEN_UP)}
    assert story.real.log.checkpoint == GIVEN_UP
    assert story.real.positions(story.now_ms).first_dirty_offset == 0
    story.require_same()


def test_what_an_older_keptlog_appended_behind_a_foreign_file_is_kept_without_that(story: Story) -> None:
    delete_rows(story.home, "offset = 0", T)
    with as_format_1_0(story.home, T):
        story.append(("c", "1"))
    story.repair()
    story.require_same()


def test_a_topic_of_an_older_keptlog_is_repaired_like_any_other(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    make_1_0(story.home, T)
    story.roll_back(first)
    story.repair()
    story.require_same()


def test_a_second_repair_finds_nothing_to_do(story: Story) -> None:
    assert story.propose() is None
    assert story.propose(adopt=True) is None
    insert(story.home, 50, topic=T)
    story.repair()
    assert story.propose() is None


def test_a_repair_that_was_planned_before_somebody_committed_is_stale(story: Story) -> None:
    insert(story.home, 50, topic=T)
    proposal = story.propose()
    assert proposal
    insert(story.home, 51, topic=T)
    with pytest.raises(StalePlan, match="changed since its repair was planned"):
        story.real.store.repair(proposal.plan, new_id())
    story.repair()


def test_of_two_repairs_at_once_the_second_finds_it_done(story: Story) -> None:
    insert(story.home, 50, topic=T)
    proposal = story.propose()
    assert proposal
    story.repair()
    after = current_id(story.home, T)
    story.real.store.repair(proposal.plan, new_id())
    assert current_id(story.home, T) == after


def test_a_repair_that_is_killed_has_done_nothing_and_can_be_run_again(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(story.home, 50, topic=T)
    at = current_id(story.home, T)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileChange, "land", killed)
        with pytest.raises(KeyboardInterrupt):
            story.repair()
    assert current_id(story.home, T) == at
    story.repair()
    story.require_same()


def test_a_clean_that_was_planned_before_the_rollback_is_stale_or_right(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    plan = story.real.cleaner.plan(["t-0"], now_ms=story.now_ms + HOUR_MS, requested=True)
    outcomes = story.real.cleaner.rewrite(plan.steps, new_id())
    story.roll_back(first)
    with pytest.raises(LogCorrupt, match="rolled back"):
        story.real.store.swap(T, outcomes, new_id())
    story.repair()
    story.real.store.swap(T, outcomes, new_id())
    story.reference.clean(story.now_ms + HOUR_MS)
    story.require_same()


def test_a_repair_names_the_files_that_are_gone(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    path = story.real.log.segments[-1].path
    Path(path.removeprefix("file://")).unlink()
    story.roll_back(first)
    with pytest.raises(LogCorrupt, match=f"these files are gone: {path}; .* keptlog repair t --adopt"):
        story.propose()


def test_a_repair_says_that_the_snapshot_is_gone(story: Story) -> None:
    first = current_id(story.home, T)
    last = story.append(("a", "2"))
    story.roll_back(first)
    expire(story.home, last, topic=T)
    with pytest.raises(LogCorrupt, match=f"snapshot {last}, which its offsets belong to, was expired .* --adopt"):
        story.propose()


def test_a_repair_names_a_watermark_file_that_is_gone(story: Story) -> None:
    set_properties(story.home, {"log.p0.watermarks": "file:///nowhere/marks.arrow"}, T)
    insert(story.home, 50, topic=T)
    with pytest.raises(LogCorrupt, match=r"these files are gone: file:///nowhere/marks\.arrow"):
        story.propose()
    proposal = story.repair(adopt=True)
    assert proposal.plan.forgotten_watermarks == (0,)
    assert story.real.log.watermarks_path is None


# Adopting


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
    assert proposal.plan.state == {"log.p0.first-dirty-offset": str(GIVEN_UP)}
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
        (lambda home: insert(home, 1, topic=T), "inside of .* another program wrote one of them"),
        (lambda home: insert(home, 9, 8, topic=T), "t-0 breaks G2: .*offsets do not rise"),
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


def test_files_with_other_columns_are_not_adopted(story: Story) -> None:
    insert(story.home, 9, topic=T)
    (path,) = [each.file.file_path for each in table_of(story.home, T).scan("offset = 9").plan_files()]
    rows = pq.ParquetFile(path.removeprefix("file://")).read().drop_columns(["headers"])
    pq.write_table(rows, path.removeprefix("file://"))
    with pytest.raises(LogCorrupt, match="has other columns \\(headers is not there\\)"):
        story.propose(adopt=True)


def test_files_without_metrics_are_not_adopted(story: Story) -> None:
    set_properties(story.home, {"write.metadata.metrics.column.offset": "none"}, T)
    insert(story.home, 9, topic=T)
    set_properties(story.home, {"write.metadata.metrics.column.offset": "full"}, T)
    with pytest.raises(LogCorrupt, match=r"has no complete metrics .* keptlog repair t takes it out again"):
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
