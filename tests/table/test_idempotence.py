"""What is sent twice under one run id is done once, also after a purge has expired the snapshot that told so."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table import CommitTableResponse

from keptlog.errors import InvalidConfig, LogCorrupt, StalePlan
from keptlog.log.record import NewRecord, Record
from keptlog.log.retention import retention_of
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.steps import Retain
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.metadata import runs
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    create,
    files_below,
    new_records,
    rewritten,
    staged,
    step_for,
    store_at,
    store_over,
    values,
)

LOG = TopicPartition(TOPIC, 0)
DAY_MS = 24 * 3_600_000
LATER_MS = 2**45
"""A purge at this time expires all snapshots but the current one."""


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return create(tmp_path, config={"cleanup.policy": "compact,delete", "retention.ms": "1", "segment.ms": "1"})


def purge(store: LogStore, now_ms: int = LATER_MS) -> None:
    """Expire what was done up to now: an append comes behind it, and then a purge."""
    append_each(store, [("other", "x")])
    assert store.purge(TOPIC, now_ms).expired_snapshots


def test_an_append_that_is_repeated_after_purges_is_told_what_it_brought_and_adds_nothing(store: LogStore) -> None:
    first = store.append(TOPIC, new_records(("a", "1"), ("b", "2")), "run", NOW_MS)
    for _ in range(3):
        purge(store)
    before = values(store), store.metadata_locations()
    assert store.append(TOPIC, new_records(("a", "1"), ("b", "2")), "run", NOW_MS) == replace(first, is_repeated=True)
    assert (values(store), store.metadata_locations()) == before


def test_other_records_under_a_used_run_id_are_not_appended_and_the_answer_says_so(store: LogStore) -> None:
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store)
    told = store.append(TOPIC, new_records(("b", "2"), ("c", "3")), "run", NOW_MS)
    assert (told.is_repeated, told.records, told.run_id) == (True, 1, "run")
    assert [value for _, _, value in values(store)] == [b"1", b"x"]


def test_an_append_without_a_run_id_is_a_new_one_each_time(store: LogStore) -> None:
    ids = {store.append(TOPIC, new_records(("a", "1")), None, NOW_MS).run_id for _ in range(2)}
    assert len(ids) == 2
    assert len(values(store)) == 2


def test_a_deletion_that_is_repeated_after_a_purge_deletes_no_more(store: LogStore) -> None:
    append_each(store, [("a", "1")], [("b", "2")])
    first = store.delete_records(LOG, -1, "run")
    assert (first.log_start_offset, first.segments, first.is_repeated) == (2, 2, False)
    purge(store)
    assert store.delete_records(LOG, -1, "run") == replace(first, is_repeated=True)
    assert [value for _, _, value in values(store)] == [b"x"]


def test_a_clean_that_is_committed_again_after_a_purge_has_landed(store: LogStore) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.swap(TOPIC, [outcome], "run")
    purge(store)
    before = store.metadata_locations()
    store.swap(TOPIC, [outcome], "run")
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [outcome], "another")
    assert store.metadata_locations() == before
    assert [value for _, _, value in values(store)] == [b"2", b"x"]


def test_an_ingest_that_is_committed_again_after_a_purge_has_landed(tmp_path: Path) -> None:
    store, users = create(tmp_path), SourceIdentity("users")
    segments = tuple(staged(store, TOPIC, 0, [Record(7, b"a", b"1", NOW_MS)]))
    first = [Arrival(OffsetRange(0, None, 5, 9), segments)]
    store.ingest(TOPIC, first, users, 1, "run")
    store.ingest(TOPIC, [Arrival(OffsetRange(0, 9, 9, 12), ())], users, 1, "next")
    assert store.purge(TOPIC, LATER_MS).expired_snapshots
    before = store.metadata_locations()
    store.ingest(TOPIC, first, users, 1, "run")
    with pytest.raises(StalePlan):
        store.ingest(TOPIC, first, users, 1, "another")
    assert store.metadata_locations() == before
    assert values(store) == [(0, 7, b"1")]


def test_a_retention_that_is_committed_again_after_a_purge_has_landed(store: LogStore) -> None:
    append_each(store, [("a", "1")], [("b", "2")])
    log = store.logs(TOPIC)[0]
    old = retention_of(log, 2 * NOW_MS)
    step = Retain(LOG, old.segments, 2, log.checkpoint, log.log_start_offset, 2 * NOW_MS)
    store.retain(TOPIC, [step], "run")
    purge(store)
    before = store.metadata_locations()
    store.retain(TOPIC, [step], "run")
    assert store.metadata_locations() == before


def test_two_purges_at_once_forget_nothing(store: LogStore, tmp_path: Path) -> None:
    faulty = FaultyCatalog(open_catalog(tmp_path))
    for number in range(4):
        store.append(TOPIC, new_records(("a", "1")), f"run-{number}", NOW_MS)

    def overtaken(commit: object) -> CommitTableResponse:
        append_each(store_at(tmp_path), [("b", "2")])
        store_at(tmp_path).purge(TOPIC, LATER_MS)
        return commit()  # type: ignore[operator,no-any-return]

    faulty.faults = [overtaken]
    purger = store_over(faulty)
    purger.purge(TOPIC, LATER_MS)
    threads = [threading.Thread(target=store_at(tmp_path).purge, args=(TOPIC, LATER_MS)) for _ in range(2)]
    append_each(store, [("c", "3")])
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = len(values(store))
    assert all(store.append(TOPIC, [], f"run-{number}", NOW_MS).is_repeated for number in range(4))
    assert len(values(store)) == before


def remembered(home: Path) -> list[Path]:
    return sorted((home / "warehouse").rglob("receipts/runs/*.json"))


def test_a_run_is_remembered_for_as_long_as_kafka_remembers_a_producer(tmp_path: Path) -> None:
    create(tmp_path)
    store = store_at(tmp_path, {"producer.id.expiration.ms": str(DAY_MS // 2)})
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store)
    purge(store, LATER_MS + DAY_MS // 2)
    assert store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated
    purge(store, LATER_MS + DAY_MS // 2 + 1)
    assert len(remembered(tmp_path)) == 2
    assert not store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated


def test_what_a_purge_remembers_grows_with_what_is_new_only(store: LogStore, tmp_path: Path) -> None:
    append_each(store, [("a", "1")])
    for number in range(5):
        purge(store, LATER_MS + number)
    assert [path.read_text().count("sequence_number") for path in remembered(tmp_path)] == [1] * 5


def test_a_topic_that_was_created_again_remembers_no_run_of_the_one_before(store: LogStore, tmp_path: Path) -> None:
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store)
    [path] = remembered(tmp_path)
    content = path.read_bytes()
    store.delete_topic(TOPIC, NOW_MS)
    store.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    append_each(store, [("b", "2")], [("b", "3")])
    store.purge(TOPIC, LATER_MS)
    path.write_bytes(content)  # left behind by a deletion that was killed
    assert not store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated


def test_a_file_that_a_killed_purge_has_half_written_is_read_over(store: LogStore, tmp_path: Path) -> None:
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store)
    [path] = remembered(tmp_path)
    path.with_name(f"{LATER_MS}-killed.json").write_bytes(path.read_bytes()[:-5])
    assert store.append(TOPIC, [], "run", NOW_MS).is_repeated


def test_a_half_written_file_keeps_no_append_out_where_older_numbers_are_forgotten_for_their_age(
    tmp_path: Path,
) -> None:
    """Else one killed purge refuses all appends of a topic until its file is forgotten too (simulation, 107012)."""
    create(tmp_path)
    store = store_at(tmp_path, {"producer.id.expiration.ms": str(DAY_MS // 2)})
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store)
    purge(store, LATER_MS + DAY_MS)
    [newer] = remembered(tmp_path)
    newer.with_name(newer.name.replace(".json", "-killed.json")).write_bytes(newer.read_bytes()[:-5])
    assert not store.append(TOPIC, new_records(("c", "3")), "another", NOW_MS).is_repeated


@pytest.mark.parametrize("content", [b"", b'{"topic_id":"a", "chan', bytes(range(256)), bytes(200), b"{}", b"[]"])
def test_what_a_damaged_file_alone_could_tell_is_refused_and_not_done_twice(
    store: LogStore, tmp_path: Path, content: bytes
) -> None:
    append_each(store, [("a", "1")])
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store)
    [path] = remembered(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(content)
    before = values(store), store.metadata_locations()
    for repeat in (
        lambda: store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS),
        lambda: store.delete_records(LOG, -1, "run"),
    ):
        with pytest.raises(LogCorrupt, match=rf"^topic {TOPIC}: {path.as_uri()} is no .* put the file back .* delete"):
            repeat()
    assert (values(store), store.metadata_locations()) == before
    assert not store.append(TOPIC, new_records(("b", "2")), None, NOW_MS).is_repeated
    path.write_bytes(whole)
    assert store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated


def test_a_pipe_in_the_place_of_what_a_purge_remembers_is_damage_and_no_outage(store: LogStore, tmp_path: Path) -> None:
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store)
    [path] = remembered(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LogCorrupt, match=r"is no .*it is a named pipe, and no file.* put the file back .* delete"):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    [damage] = runs.damaged(store.files, store.load_table(TOPIC), [path.as_uri()])
    assert "it is a named pipe" in str(damage)


def test_what_another_file_tells_is_told_although_one_is_damaged(store: LogStore, tmp_path: Path) -> None:
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    purge(store, LATER_MS)
    purge(store, LATER_MS + 1)
    remembered(tmp_path)[-1].write_bytes(b"")
    assert store.append(TOPIC, [], "run", NOW_MS).is_repeated


def put_back(home: Path) -> LogStore:
    """A topic that was put back to before a run: a file tells of that, and the next append gets its number."""
    store = create(home)
    append_each(store, [("z", "0")])
    shutil.copy(home / "catalog.db", home / "older.db")
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    table = store.load_table(TOPIC)
    runs.remember(store.files, table, table.metadata.snapshots, "lost", LATER_MS)
    shutil.move(home / "older.db", home / "catalog.db")
    return store_at(home)


def expire_all_but_the_newest(home: Path) -> None:
    table = load_topic_table(open_catalog(home), TOPIC)
    older = [each.snapshot_id for each in table.metadata.snapshots if each != table.current_snapshot()]
    table.maintenance.expire_snapshots().by_ids(older).commit()


def test_a_number_that_has_a_snapshot_is_no_run_of_a_time_that_was_put_back(tmp_path: Path) -> None:
    store = put_back(tmp_path)
    append_each(store, [("x", "1")])
    expire_all_but_the_newest(tmp_path)
    assert not store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated


def test_a_number_that_was_remembered_again_is_no_run_of_a_time_that_was_put_back(tmp_path: Path) -> None:
    store = put_back(tmp_path)
    store.append(TOPIC, new_records(("x", "1")), "new", NOW_MS)
    table = store.load_table(TOPIC)
    runs.remember(store.files, table, table.metadata.snapshots, "a-purge", LATER_MS + 1)
    append_each(store, [("y", "1")])
    expire_all_but_the_newest(tmp_path)
    assert store.append(TOPIC, [], "new", NOW_MS).is_repeated
    assert not store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated


def test_what_another_program_has_expired_keeps_no_run_id_out(store: LogStore, tmp_path: Path) -> None:
    append_each(store, [("a", "1")], [("b", "2")])
    table = load_topic_table(open_catalog(tmp_path), TOPIC)
    table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[0].snapshot_id).commit()
    assert not store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated


def test_of_two_appends_at_once_under_one_run_id_one_lands_and_the_other_leaves_no_file(
    store: LogStore, tmp_path: Path
) -> None:
    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "1"))
        store_at(tmp_path).append(TOPIC, new_records(("a", "1")), "run", NOW_MS)

    assert store.append(TOPIC, overtaken(), "run", NOW_MS).is_repeated
    assert values(store) == [(0, 0, b"1")]
    assert len(files_below(tmp_path)) == 1


def test_of_two_appends_at_once_one_lands_even_if_a_purge_came_between(store: LogStore, tmp_path: Path) -> None:
    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "1"))
        other = store_at(tmp_path)
        other.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
        purge(other)

    assert store.append(TOPIC, overtaken(), "run", NOW_MS).is_repeated
    assert values(store) == [(0, 0, b"1"), (0, 1, b"x")]


@pytest.mark.parametrize("run_id", ["", "a/b", "../x", ".", "-x", "a b", "é", "x" * 101, "a\nb", "a\n"])
def test_a_run_id_that_can_not_be_part_of_a_file_name_is_refused(store: LogStore, run_id: str) -> None:
    for call in (
        lambda: store.append(TOPIC, [], run_id, NOW_MS),
        lambda: store.delete_records(LOG, 0, run_id),
        lambda: store.swap(TOPIC, [], run_id),
        lambda: store.retain(TOPIC, [], run_id),
        lambda: store.ingest(TOPIC, [], SourceIdentity("users"), 1, run_id),
    ):
        with pytest.raises(InvalidConfig, match=r"run id .* is not possible: use 1 to 100"):
            call()


@pytest.mark.parametrize("run_id", ["x" * 100, "8f14e45f-ceea-467f-a8d1-0_2.b", "25c63d2477cf41f89e91e862f26b45c9"])
def test_a_run_id_of_other_systems_is_taken(store: LogStore, run_id: str) -> None:
    assert store.append(TOPIC, new_records(("a", "1")), run_id, NOW_MS).run_id == run_id
    assert values(store) == [(0, 0, b"1")]
