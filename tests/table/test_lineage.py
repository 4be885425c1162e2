"""State and snapshot belong together, or nothing is written: whatever moved the snapshot is told by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table import CommitTableResponse

from keptlog.errors import Action, LogCorrupt
from keptlog.log.plan import make_retention_plan
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.mark import Failure
from keptlog.table.metadata.lineage import lineage_of, require_own
from keptlog.table.metadata.state import SNAPSHOT_ID
from keptlog.table.reading.cache import FOLDER, TopicCache
from keptlog.table.store import LogStore
from tests.table.foreign import (
    as_format_1_0,
    current_id,
    delete_rows,
    expire,
    insert,
    make_1_0,
    remove_main,
    roll_back,
    set_main,
    set_properties,
    table_of,
    update_rows,
)
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    clean,
    create,
    new_id,
    rewritten,
    step_for,
    store_at,
    store_over,
    values,
)

LOG = TopicPartition(TOPIC, 0)
DAY_MS = 24 * 3_600_000
Call = Callable[[], object]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A topic of three segments, compacted and retained."""
    store = create(tmp_path, config={"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)})
    append_each(store, [("a", "1"), ("b", "1")], [("a", "2")], [("c", "1")])
    return tmp_path


def refused(home: Path) -> str:
    with pytest.raises(LogCorrupt) as refusal:
        require_own(table_of(home))
    assert refusal.value.action is Action.FIX_DATA
    assert f"topic {TOPIC} " in str(refusal.value)
    assert f"keptlog repair {TOPIC}" in str(refusal.value)
    return str(refusal.value)


def test_every_commit_of_ours_says_which_snapshot_the_state_belongs_to(tmp_path: Path) -> None:
    store = create(tmp_path, config={"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)})
    require_own(table_of(tmp_path))
    assert SNAPSHOT_ID not in table_of(tmp_path).properties

    def moved() -> bool:
        require_own(table_of(tmp_path))
        return table_of(tmp_path).properties[SNAPSHOT_ID] == str(current_id(tmp_path))

    append_each(store, [("a", "1"), ("b", "1")], [("a", "2")])
    assert moved()
    clean(store)
    assert moved()
    append_each(store, [("a", "3")])
    store.delete_records(LOG, 3, new_id())
    assert moved()
    store.alter_topic(TOPIC, {"segment.ms": "7"})
    store.mark_uncleanable(TOPIC, [Failure(LOG, "x", None)], NOW_MS, Backoff(1, 1))
    store.purge(TOPIC, time.time_ns() // 1_000_000 + DAY_MS)
    assert moved()
    store.retain(TOPIC, make_retention_plan(store.logs(TOPIC), NOW_MS + 30 * DAY_MS).steps, new_id())
    assert moved()
    store.create_topic("in", 1, {})
    store.ingest("in", [Arrival(OffsetRange(0, None, 5, 5), ())], SourceIdentity("there"), 1, new_id())
    assert table_of(tmp_path, "in").properties[SNAPSHOT_ID] == str(current_id(tmp_path, "in"))


def test_a_rollback_is_told_with_both_snapshots(home: Path) -> None:
    first, last = table_of(home).history()[0].snapshot_id, current_id(home)
    roll_back(home, first)
    assert f"it was rolled back from snapshot {last} of 20" in refused(home)
    assert f" to snapshot {first} of 20" in refused(home)


def test_the_way_back_is_as_good_as_no_rollback(home: Path) -> None:
    first, last = table_of(home).history()[0].snapshot_id, current_id(home)
    roll_back(home, first)
    set_main(home, last)
    require_own(table_of(home))


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda home: insert(home, 7, 8), "append, 1 file added"),
        (lambda home: insert(home, 0), "append, 1 file added"),
        (lambda home: delete_rows(home, "offset = 0"), "overwrite, 1 file added, 1 file removed"),
        (lambda home: delete_rows(home, "offset = 2"), "delete, 1 file removed"),
        (lambda home: update_rows(home, [1], b"changed"), "append, 1 file added"),
    ],
    ids=["insert behind the end", "insert below it", "delete", "delete a file", "update"],
)
def test_a_commit_of_another_program_is_told_by_snapshot_operation_and_files(
    home: Path, act: Callable[[Path], int], told: str
) -> None:
    snapshot = act(home)
    said = refused(home)
    assert "another program changed it: " in said
    assert f"snapshot {snapshot} of 20" in said
    assert told in said
    assert "rolled back" not in said


def test_an_insert_into_a_gap_of_offsets_is_told_too(home: Path) -> None:
    clean(store_at(home))
    assert 0 not in {offset for _, offset, _ in values(store_at(home))}
    insert(home, 0)
    assert "append, 1 file added" in refused(home)


def test_what_spark_says_of_itself_is_told(home: Path) -> None:
    table = table_of(home)
    says = {"engine-name": "spark", "engine-version": "4.1.4", "spark.app.id": "local-17"}
    table.append(table.scan(row_filter="offset = 0").to_arrow(), snapshot_properties=says)
    assert "append by spark 4.1.4 (application local-17), 1 file added" in refused(home)


def test_of_many_foreign_commits_the_last_are_told_and_the_others_counted(home: Path) -> None:
    snapshots = [insert(home, offset) for offset in range(10, 15)]
    said = refused(home)
    assert [str(each) in said for each in snapshots] == [False, False, True, True, True]
    assert "; and 2 more before" in said


def test_a_rollback_and_then_a_foreign_commit_are_both_told(home: Path) -> None:
    first = table_of(home).history()[0].snapshot_id
    roll_back(home, first)
    snapshot = insert(home, 9)
    assert f"to snapshot {first} of " in refused(home)
    assert f", and another program changed it: snapshot {snapshot} of " in refused(home)


def test_what_an_older_keptlog_commits_beside_us_is_ours(home: Path) -> None:
    with as_format_1_0(home):
        append_each(store_at(home), [("d", "1")])
    with as_format_1_0(home):
        clean(store_at(home))
    assert table_of(home).properties[SNAPSHOT_ID] != str(current_id(home))
    require_own(table_of(home))
    append_each(store_at(home), [("e", "1")])
    assert table_of(home).properties[SNAPSHOT_ID] == str(current_id(home))


def test_what_an_older_keptlog_commits_on_a_rolled_back_table_hides_nothing(home: Path) -> None:
    roll_back(home, table_of(home).history()[0].snapshot_id)
    with as_format_1_0(home):
        append_each(store_at(home), [("d", "1")])
    assert "rolled back" in refused(home)
    assert "an older keptlog went on from there with 1 commit" in refused(home)


def test_what_an_older_keptlog_commits_on_a_foreign_snapshot_hides_nothing(home: Path) -> None:
    snapshot = delete_rows(home, "offset = 0")
    with as_format_1_0(home):
        append_each(store_at(home), [("d", "1")])
    assert f"another program changed it: snapshot {snapshot} of " in refused(home)
    assert "rolled back" not in refused(home)


def test_snapshots_that_expire_below_what_an_older_keptlog_went_on_with_change_nothing(home: Path) -> None:
    recorded = current_id(home)
    for value in "123":
        with as_format_1_0(home):
            append_each(store_at(home), [("d", value)])
    history = [entry.snapshot_id for entry in table_of(home).history()]
    for gone in history[: history.index(recorded) + 2]:
        expire(home, gone)
        require_own(table_of(home))


def test_a_rollback_is_seen_although_the_snapshot_of_the_state_has_expired(home: Path) -> None:
    history = [entry.snapshot_id for entry in table_of(home).history()]
    roll_back(home, history[1])
    expire(home, history[2], history[0])
    said = refused(home)
    assert f"snapshot {history[2]}, which its offsets belong to, has been expired, and the current one is " in said
    assert f"snapshot {history[1]} of 20" in said


def test_a_rollback_below_an_expired_snapshot_is_seen_although_an_older_keptlog_went_on(home: Path) -> None:
    history = [entry.snapshot_id for entry in table_of(home).history()]
    roll_back(home, history[1])
    with as_format_1_0(home):
        append_each(store_at(home), [("d", "1")])
    expire(home, history[2], history[0])
    assert "has been expired" in refused(home)


def test_a_table_without_a_current_snapshot_is_told_as_that(home: Path) -> None:
    remove_main(home)
    assert "it has no current snapshot any more, and its offsets belong to snapshot" in refused(home)


def test_a_snapshot_of_another_branch_is_foreign_on_main_and_not_beside_it(home: Path) -> None:
    last = current_id(home)
    table_of(home).manage_snapshots().create_branch(last, "experiment").commit()
    snapshot = insert(home, 50, branch="experiment")
    require_own(table_of(home))
    append_each(store_at(home), [("d", "1")])
    set_main(home, snapshot)
    assert f"to snapshot {last} of " in refused(home)
    assert f"snapshot {snapshot} of " in refused(home)


def test_a_tag_on_an_old_snapshot_is_no_branch_that_main_has_lost(home: Path) -> None:
    history = [entry.snapshot_id for entry in table_of(home).history()]
    table_of(home).manage_snapshots().create_tag(history[0], "before").commit()
    make_1_0(home)
    expire(home, history[1])
    require_own(table_of(home))
    with as_format_1_0(home):
        append_each(store_at(home), [("d", "1")])
    require_own(table_of(home))


def test_a_topic_of_an_older_keptlog_is_ours_and_gets_the_property_with_its_next_snapshot(home: Path) -> None:
    make_1_0(home)
    require_own(table_of(home))
    (log,) = store_at(home).logs(TOPIC)
    failure = Failure(log.topic_partition, "it failed", log.checkpoint)
    store_at(home).mark_uncleanable(TOPIC, [failure], NOW_MS, Backoff(1, 1))
    assert SNAPSHOT_ID not in table_of(home).properties
    append_each(store_at(home), [("d", "1")])
    assert table_of(home).properties[SNAPSHOT_ID] == str(current_id(home))


def test_a_foreign_commit_on_a_topic_of_an_older_keptlog_is_told_unless_that_went_on(home: Path) -> None:
    snapshot = insert(home, 50)
    make_1_0(home)
    assert str(snapshot) in refused(home)
    roll_back(home, table_of(home).history()[-2].snapshot_id)
    require_own(table_of(home))

    delete_rows(home, "offset = 0")
    with as_format_1_0(home):
        append_each(store_at(home), [("d", "1")])
    require_own(table_of(home))


def test_a_rollback_of_a_topic_of_an_older_keptlog_is_told_also_if_that_went_on(home: Path) -> None:
    make_1_0(home)
    roll_back(home, table_of(home).history()[0].snapshot_id)
    assert "rolled back" in refused(home)
    with as_format_1_0(home):
        append_each(store_at(home), [("d", "1")])
    assert "rolled back" in refused(home)


def test_a_topic_that_only_another_program_has_written_to_is_refused(tmp_path: Path) -> None:
    create(tmp_path)
    snapshot = insert(tmp_path, 0, 1)
    assert f"another program changed it: snapshot {snapshot} of " in refused(tmp_path)


def test_what_is_no_snapshot_id_is_refused_with_what_to_do(home: Path) -> None:
    set_properties(home, {SNAPSHOT_ID: "last"})
    with pytest.raises(LogCorrupt, match=f"property {SNAPSHOT_ID}='last' is no snapshot's id; remove it"):
        lineage_of(table_of(home))


def _ingest(store: LogStore) -> Call:
    store.create_topic("in", 1, {})
    return lambda: store.ingest(TOPIC, [], SourceIdentity("there"), 1, new_id())


def _swap(store: LogStore) -> Call:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    return lambda: store.swap(TOPIC, [outcome], new_id())


def _retain(store: LogStore) -> Call:
    steps = make_retention_plan(store.logs(TOPIC), NOW_MS + 30 * DAY_MS).steps
    return lambda: store.retain(TOPIC, steps, new_id())


WRITES: dict[str, Callable[[LogStore], Call]] = {
    "append": lambda store: lambda: append_each(store, [("d", "1")]),
    "ingest": _ingest,
    "clean": _swap,
    "retain": _retain,
    "delete records": lambda store: lambda: store.delete_records(LOG, 1, new_id()),
    "alter": lambda store: lambda: store.alter_topic(TOPIC, {"segment.ms": "7"}),
    "mark": lambda store: lambda: store.mark_uncleanable(TOPIC, [Failure(LOG, "x", None)], NOW_MS, Backoff(1, 1)),
    "purge": lambda store: lambda: store.purge(TOPIC, time.time_ns() // 1_000_000 + DAY_MS),
    "judge": lambda store: lambda: store.logs(TOPIC),
    "look": lambda store: lambda: store.observe(TOPIC),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("moved", ["rolled back", "deleted from"])
def test_every_write_is_refused_and_changes_nothing(home: Path, name: str, moved: str) -> None:
    store = store_at(home)
    call = WRITES[name](store)
    if moved == "rolled back":
        roll_back(home, table_of(home).history()[0].snapshot_id)
    else:
        delete_rows(home, "offset = 0")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with pytest.raises(LogCorrupt, match=f"nothing is written to it: .*keptlog repair {TOPIC}"):
        call()
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_reading_and_deleting_the_topic_go_on(home: Path) -> None:
    store = store_at(home)
    roll_back(home, table_of(home).history()[0].snapshot_id)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"1")]
    assert store.describe_topic(TOPIC).partitions == 1
    assert store.source_of(TOPIC).source is None
    assert store.delete_topic(TOPIC, NOW_MS).deleted_files


def test_a_rollback_between_check_and_commit_refuses_the_append(home: Path) -> None:
    """The commit names the snapshot that was looked at; the next round looks again."""
    store = store_at(home)
    first = table_of(home).history()[0].snapshot_id
    real = store.committer.catalog
    commit = real.commit_table
    rolled: list[bool] = []

    def rolled_back_first(*arguments: object) -> object:
        if not rolled:
            rolled.append(True)
            roll_back(home, first)
        return commit(*arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real, "commit_table", rolled_back_first)
        with pytest.raises(LogCorrupt, match="it was rolled back"):
            append_each(store, [("d", "1")])
    assert rolled


def test_what_was_remembered_before_anybody_asked_counts_as_none(home: Path) -> None:
    store = LogStore(open_catalog(home), {}, time.sleep, new_id, TopicCache(home))
    store.observe(TOPIC)
    path = home / FOLDER / f"{TOPIC}.json"
    entry = path.read_bytes()
    assert b'"lineage":"own"' in entry
    roll_back(home, table_of(home).history()[0].snapshot_id)
    with pytest.raises(LogCorrupt, match="rolled back"):
        store.observe(TOPIC)
    assert path.read_bytes() == entry


def test_a_commit_that_another_program_took_back_before_ours_landed_is_a_lost_race(home: Path) -> None:
    """The snapshot is the one that ours was built on, but its sequence number was given out (simulated, seed 929)."""
    faulty = FaultyCatalog(open_catalog(home))
    before = current_id(home)

    def too_late(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        insert(home, 50)
        roll_back(home, before)
        return commit()

    faulty.faults = [too_late]
    append_each(store_over(faulty), [("d", "4")])
    assert faulty.commits == 2
    assert [value for _, _, value in values(store_at(home))] == [b"1", b"1", b"2", b"1", b"4"]
    require_own(table_of(home))
